// SPDX-License-Identifier: Apache-2.0
// Traps of Modules and fleets, order between Modules, imagined changes.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/glob.hpp"
#include "plan/decide/order.hpp"
#include "plan/decide/policy.hpp"
#include "plan/fleet/make_plan.hpp"
#include "plan/fleet/upgrade_view.hpp"
#include "plan/fleet/what_if.hpp"
#include "plan/lint/lint.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

using Codes = std::vector<std::string>;

Codes codes_of(const Diagnostics& diagnostics) {
    Codes result;
    for (const auto& diagnostic : diagnostics) { result.push_back(diagnostic.code); }
    std::sort(result.begin(), result.end());
    return result;
}

/// Codes of one Module, image-by-tag left out: the Module of these tests is named by a tag.
Codes lint(const api::Module& module) {
    Diagnostics diagnostics;
    plan::lint_module(module, diagnostics);
    Codes result = codes_of(diagnostics);
    std::erase(result, "image-by-tag");
    return result;
}

Codes fleet(const api::Objects& objects) { return codes_of(plan::make_plan(objects, {}).diagnostics); }

api::Module needing(const char* name, const char* needs) {
    api::Module module = build::module();
    module.meta.name = name;
    if (*needs != '\0') { module.meta.annotations["kmmtools.dev/needs"] = needs; }
    return module;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("parameters that the kernel takes otherwise than they are meant") {
        const auto of = [](std::vector<std::string> parameters) {
            api::Module module = build::module();
            module.module_loader->container.modprobe.parameters = std::move(parameters);
            return lint(module);
        };
        CHECK(of({"a=1", "b=x y", "c=\"d = e\"", "quiet", "f=", "g=a=b", "h=\"x i=1\"", "j=-1"}).empty());
        for (const char* odd : {"a = 1", "a =1", "a= 1", "a=${KERNEL_FULL_VERSION}", "a=$KERNEL_VERSION", "a=1 b=2",
                                "a=1 ", "-f", "--force"}) {
            CAPTURE(odd);
            CHECK(of({odd}) == Codes{"odd-parameter"});
        }
        CHECK(of({"a-b=1", "a_b=2"}) == Codes{"odd-parameter"});
        CHECK(of({"=1", "", "a=1", "a=1"}).empty());
    }

    TEST_CASE("Secrets that are not among those of their namespace") {
        api::Objects objects;
        objects.modules = {build::module()};
        objects.modules[0].image_repo_secret = "pul";
        auto& container = objects.modules[0].module_loader->container;
        container.sign = api::Sign{};
        container.sign->cert_secret = "cert";
        container.sign->key_secret = "other";
        container.kernel_mappings[0].build = api::Build{};
        container.kernel_mappings[0].build->secrets = {"token"};
        const auto found = [&] {
            Diagnostics diagnostics;
            plan::check_secrets(objects, plan::Reading::part, diagnostics);
            return codes_of(diagnostics);
        };
        CHECK(found().empty());
        const auto add_secret = [&](const char* ns) {
            objects.secrets.emplace_back().meta.name = "pull";
            objects.secrets.back().meta.namespace_ = ns;
        };
        add_secret("elsewhere");
        CHECK(found().empty());
        container.sign->key_secret = "pull";
        CHECK(found() == Codes{"secret-unknown"});  // that one is in another namespace
        container.sign->key_secret = "other";
        add_secret("drivers");
        CHECK(found() == Codes(4, "secret-unknown"));
        Diagnostics diagnostics;
        plan::check_secrets(objects, plan::Reading::part, diagnostics);
        CHECK(diagnostics[0].hint == "did you mean pull?");
    }

    TEST_CASE("Secrets that an API server does not have, unless a document adds them") {
        api::Objects objects;
        objects.modules = {build::module()};
        objects.modules[0].image_repo_secret = "pull";
        objects.modules[0].module_loader->container.sign = api::Sign{};
        objects.modules[0].module_loader->container.sign->cert_secret = "not-asked-for";
        const auto found = [&](const plan::SecretNames& absent) {
            Diagnostics diagnostics;
            plan::check_secrets(objects, absent, diagnostics);
            return codes_of(diagnostics);
        };
        CHECK(found({}).empty());
        CHECK(found({{"elsewhere", "pull"}}).empty());
        CHECK(found({{"drivers", "pull"}}) == Codes(1, "secret-unknown"));
        objects.secrets.emplace_back().meta.name = "pull";
        objects.secrets.back().meta.namespace_ = "drivers";
        CHECK(found({{"drivers", "pull"}}).empty());
    }

    TEST_CASE("images: a port is no tag, a tag is no digest") {
        api::Module module = build::module();
        const auto image_codes = [&](const char* image) {
            module.module_loader->container.container_image = image;
            Diagnostics diagnostics;
            plan::lint_module(module, diagnostics);
            return codes_of(diagnostics);
        };
        CHECK(image_codes("host:5000/img") == Codes{"image-port-tag"});
        CHECK(image_codes("host/img:${KERNEL_FULL_VERSION//+/_}") == Codes{});  // a template with a fault of its own
        CHECK(image_codes("host:5000/img:v1") == Codes{"image-by-tag"});
        CHECK(image_codes("img:v1") == Codes{"image-by-tag"});
        CHECK(image_codes("quay.io//img:v1") == Codes{});
        CHECK(image_codes("host:5000/img@sha256:00").empty());
        CHECK(image_codes("host/img").empty());  // a rule of KMM's, reported there
    }

    TEST_CASE("paths and names") {
        api::Module module = build::module();
        auto& container = module.module_loader->container;
        container.modprobe.dir_name = "/opt/$(id)";
        container.modprobe.firmware_path = "/fw dir";
        container.sign.emplace();
        container.sign->files_to_sign = {"/opt/a.ko", "/opt/../etc/passwd", "/opt/a..b.ko"};
        CHECK(lint(module) == Codes{"path-characters", "path-characters", "sign-outside"});
        const auto directory_codes = [](const std::string& name) {
            api::Module named = build::module();
            named.module_loader->container.modprobe.dir_name = name;
            return lint(named);
        };
        for (const auto* fine : {"/opt", "/", "/lib", "/opt/lib/modules-extra", "/opt/lib/firmware"}) {
            CHECK_MESSAGE(directory_codes(fine).empty(), fine);
        }
        for (const auto* deep : {"/lib/modules", "/opt/lib/modules/", "/opt/lib/modules/6.1.0-18-amd64"}) {
            CHECK_MESSAGE(directory_codes(deep) == Codes{"dirname-modules"}, deep);
        }
        CHECK(directory_codes("/opt/${KERNEL_FULL_VERSION}") == Codes{"path-variable"});
        CHECK(directory_codes("/opt/lib/modules/$KERNEL_VERSION") == Codes{"dirname-modules", "path-variable"});
        const auto length_codes = [](std::size_t length) {
            api::Module named = build::module();
            named.meta.namespace_ = "drivers";
            named.meta.name = std::string(length - 7, 'a');
            return lint(named);
        };
        CHECK(length_codes(39).empty());
        CHECK(length_codes(40) == Codes{"name-too-long"});
        CHECK(length_codes(41).empty());  // a rule of KMM's, reported there
    }

    TEST_CASE("traps of a fleet") {
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.modules = {build::module()};
        CHECK(fleet(objects).empty());
        objects.modules[0].module_loader->container.kernel_mappings = {build::literal("5.10.0-1")};
        CHECK(fleet(objects) == Codes{"kernel-unmapped"});
        objects.nodes[0].meta.labels.clear();
        CHECK(fleet(objects).empty());

        objects.nodes = {build::node("6.1.0+")};
        objects.modules = {build::module()};
        CHECK(fleet(objects) == Codes{"kernel-plus"});

        objects.nodes = {build::node()};
        objects.modules = {build::module("v1")};
        build::set_labels(objects.nodes[0], "v1", "", "v1");
        CHECK(fleet(objects) == Codes{"version-labels-stuck"});
        objects.nodes[0].meta.labels[api::label_version_device_plugin("drivers", "kmm-hello")] = "v1";
        CHECK(fleet(objects) == Codes{"label-key-leftover", "version-labels-stuck"});

        objects.nodes.clear();
        objects.modules = {build::module("v1"), build::module("v1")};
        objects.modules[0].meta.namespace_ = "a-b";
        objects.modules[0].meta.name = "c";
        objects.modules[1].meta.namespace_ = "a";
        objects.modules[1].meta.name = "b-c";
        CHECK(fleet(objects) == Codes{"label-collision"});
    }

    TEST_CASE("a cordon that unloads a driver in use, and one that loses a version") {
        api::Objects objects;
        objects.modules = {build::module()};
        objects.nodes = {build::node()};
        objects.node_modules_configs = {build::loaded(objects.modules[0], objects.nodes[0])};
        objects.nodes[0].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
        CHECK(fleet(objects).empty());
        objects.nodes[0].meta.labels[api::label_device_plugin_ready("drivers", "kmm-hello")] = "";
        CHECK(fleet(objects) == Codes{"cordon-unloads"});
        objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "on-delete";
        CHECK(fleet(objects).empty());

        objects.nodes[0].meta.labels = {{"kmm", "yes"}};
        build::set_labels(objects.nodes[0], "v1", "v1", "v1");
        objects.modules = {build::module("v2")};
        objects.node_modules_configs = {build::loaded(build::module("v1"), objects.nodes[0])};
        CHECK(fleet(objects) == Codes{"cordon-loses-version"});
    }

    TEST_CASE("an in-tree module that another Module loads") {
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.modules = {build::module(), build::module()};
        objects.modules[1].meta.name = "other";
        auto& other = objects.modules[1].module_loader->container;
        other.modprobe.module_name = "other";
        other.in_tree_modules_to_remove = std::vector<std::string>{"kmm-hello"};
        CHECK(fleet(objects) == Codes{"in-tree-needed"});
        other.in_tree_modules_to_remove = std::vector<std::string>{"other"};
        CHECK(fleet(objects).empty());
    }

    TEST_CASE("a kernel module that one Module has in its loading order and another one loads") {
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.modules = {build::module(), build::module(), build::module()};
        objects.modules[1].meta.name = "other";
        objects.modules[2].meta.name = "third";
        auto& other = objects.modules[1].module_loader->container.modprobe;
        auto& third = objects.modules[2].module_loader->container.modprobe;
        other.module_name = "other";
        other.modules_loading_order = {"other", "kmm-hello"};
        third.module_name = "third";
        CHECK(fleet(objects) == Codes{"module-conflict"});
        third.modules_loading_order = {"third", "shared"};
        other.modules_loading_order = {"other", "shared"};
        CHECK(fleet(objects) == Codes{"module-conflict"});
        objects.modules[2].selector = {{"no", "node"}};
        CHECK(fleet(objects).empty());
    }

    TEST_CASE("a node of another operating system that a Module selects") {
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.modules = {build::module()};
        objects.nodes[0].meta.labels["kubernetes.io/os"] = "linux";
        CHECK(fleet(objects).empty());
        objects.nodes[0].meta.labels["kubernetes.io/os"] = "windows";
        CHECK(fleet(objects) == Codes{"node-not-linux"});
        objects.nodes[0].taints = {{"os", "windows", "NoSchedule"}};
        CHECK(fleet(objects).empty());
    }

    TEST_CASE("order: ranks, and circles by their path") {
        std::vector<api::Module> modules{needing("c", "drivers/b , drivers/a"), needing("b", "drivers/a"),
                                         needing("a", ""), needing("d", "")};
        CHECK(plan::load_order(modules) == std::map<std::string, std::size_t>{
                                               {"drivers/a", 0}, {"drivers/b", 1}, {"drivers/c", 2}, {"drivers/d", 0}});
        Diagnostics diagnostics;
        plan::check_needs(modules, diagnostics);
        CHECK(diagnostics.empty());
        modules[0] = needing("c", "drivers/b");
        modules[2] = needing("a", "drivers/c");
        plan::check_needs(modules, diagnostics);
        REQUIRE(codes_of(diagnostics) == Codes{"needs-cycle"});
        CHECK(diagnostics[0].message.find("drivers/a -> drivers/c -> drivers/b -> drivers/a") != std::string::npos);
        diagnostics.clear();
        modules = {needing("a", "drivers/a"), needing("b", "x,drivers/none,drivers/a,drivers/a,")};
        plan::check_needs(modules, diagnostics);
        CHECK(codes_of(diagnostics) == Codes{"bad-needs", "bad-needs", "bad-needs", "needs-cycle", "needs-unknown"});
    }

    TEST_CASE("order: entries carry it, and say what is not loaded") {
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.modules = {needing("a", ""), needing("b", "drivers/a")};
        objects.modules[0].module_loader->container.modprobe.module_name = "a";
        auto plan = plan::make_plan(objects, {});
        CHECK(plan.diagnostics.empty());
        CHECK(plan.entries[0].order == 0);
        CHECK(plan.entries[1].order == 1);
        CHECK(plan.entries[1].needs == std::vector<std::string>{"drivers/a"});
        objects.modules[0].selector = {{"no", "node"}};
        plan = plan::make_plan(objects, {});
        CHECK(codes_of(plan.diagnostics) == Codes{"needs-not-loaded"});
        objects.modules[1].meta.annotations.clear();
        CHECK_FALSE(plan::make_plan(objects, {}).entries[1].order.has_value());
    }

    TEST_CASE("a bad unload policy is reported, a --missing that matches nothing too") {
        api::Module module = build::module();
        Diagnostics diagnostics;
        module.meta.annotations["kmmtools.dev/unload-policy"] = "on-delete";
        plan::check_policy(module, diagnostics);
        CHECK(diagnostics.empty());
        module.meta.annotations["kmmtools.dev/unload-policy"] = "Never";
        plan::check_policy(module, diagnostics);
        CHECK(codes_of(diagnostics) == Codes{"bad-unload-policy"});
        CHECK(plan::unload_policy(module) == plan::UnloadPolicy::always);
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.modules = {build::module()};
        plan::Options options;
        options.missing_images = {"*kmm-hello*", "nothing"};
        CHECK(codes_of(plan::make_plan(objects, options).diagnostics) == Codes{"missing-unmatched"});
    }

    TEST_CASE("globs") {
        for (const auto& [pattern, text, matches] : {std::tuple{"a*c", "abbc", true},
                                                     {"a*c", "abbcd", false},
                                                     {"*", "", true},
                                                     {"", "", true},
                                                     {"", "a", false},
                                                     {"?", "a", true},
                                                     {"?", "", false},
                                                     {"*v2-*", "r/i:v2-6", true},
                                                     {"a**b*", "ab", true},
                                                     {"*aab", "aaab", true}}) {
            CAPTURE(pattern);
            CAPTURE(text);
            CHECK(base::glob_matches(pattern, text) == matches);
        }
    }

    TEST_CASE("what if: reboots, taints and labels, of one node or all") {
        api::Objects objects;
        objects.nodes = {build::node(), build::node()};
        objects.nodes[1].meta.name = "node-b";
        CHECK(plan::split_node(objects, "node-a=k=v").node == "node-a");
        CHECK(plan::split_node(objects, "node-a=k=v").text == "k=v");
        CHECK_FALSE(plan::split_node(objects, "node-c=k").node.has_value());
        plan::reboot(objects, "node-b", "6.1.0-60-amd64");
        CHECK(objects.nodes[0].boot_id == "b1");
        CHECK(objects.nodes[1].boot_id == "what-if");
        CHECK(objects.nodes[1].kernel_version == "6.1.0-60-amd64");
        plan::reboot(objects, std::nullopt, "");
        CHECK(objects.nodes[0].boot_id == "what-if");
        CHECK(objects.nodes[0].kernel_version == "6.1.0-56-amd64");

        plan::set_taint(objects, plan::split_node(objects, "node-a=dedicated=gpu:NoSchedule"));
        CHECK(objects.nodes[0].taints == std::vector<api::Taint>{{"dedicated", "gpu", "NoSchedule"}});
        CHECK_FALSE(plan::split_node(objects, "node-a:NoSchedule").node.has_value());
        plan::set_taint(objects, plan::split_node(objects, "node-a:node.kubernetes.io/unschedulable:NoExecute"));
        CHECK(objects.nodes[0].taints.size() == 2);
        CHECK(objects.nodes[1].taints.empty());
        plan::set_taint(objects, {std::nullopt, "dedicated-"});
        CHECK(objects.nodes[0].taints.size() == 1);

        plan::set_label(objects, {std::nullopt, "pool=x"});
        plan::set_label(objects, {"node-b", "kmm-"});
        CHECK(objects.nodes[0].meta.labels == api::Labels{{"kmm", "yes"}, {"pool", "x"}});
        CHECK(objects.nodes[1].meta.labels == api::Labels{{"pool", "x"}});
        for (const auto* bad : {"", "x", "=v", "k=v=w", "bad key=v", "-"}) {
            CAPTURE(bad);
            CHECK_THROWS_AS(plan::set_label(objects, {std::nullopt, bad}), Error);
        }
        for (const auto* bad : {"", "x", "k=v", "k:Nothing", ":NoSchedule", "k=v v:NoSchedule"}) {
            CAPTURE(bad);
            CHECK_THROWS_AS(plan::set_taint(objects, {std::nullopt, bad}), Error);
        }
    }

    TEST_CASE("what if: a misspelt node is no change of all nodes") {
        api::Objects objects;
        objects.nodes = {build::node()};
        objects.nodes[0].meta.labels = {{"node-x", "known"}};
        objects.modules = {build::module("v1")};
        const auto refused = [&](const char* text) -> std::string {
            try {
                plan::check_node_name(objects, plan::split_node(objects, text));
            } catch (const Error& error) {
                CHECK(error.code() == "node-not-found");
                return error.hint().empty() ? "-" : error.hint();
            }
            return "";
        };
        CHECK(refused("node-b=dedicated:NoSchedule") ==
              "did you mean node-a? *=node-b=dedicated:NoSchedule applies to all nodes");
        CHECK(refused("node-b:dedicated:NoSchedule") != "");
        CHECK(refused("node-b=k=v") == "did you mean node-a?");
        CHECK(refused("gpu-7=k=v:NoSchedule") == "write NODE=KEY..., or leave NODE out for all nodes");
        // A key that is in use, one unlike any node, a name, all nodes, and a change without a place for a node.
        for (const auto* good : {"node-x=v:NoSchedule", "dedicated=gpu:NoSchedule", "node-a=k=v", "*=node-b=v",
                                 "example.com/node-b=v", "node-b-"}) {
            CAPTURE(good);
            CHECK(refused(good).empty());
        }
        const auto all = plan::split_node(objects, "*=k=v");
        CHECK(all.says_all);
        CHECK(all.text == "k=v");
    }

    TEST_CASE("an upgrade: nodes in order, steps, blockers") {
        api::Objects objects;
        objects.nodes = {build::node(), build::node(), build::node(), build::node(), build::node()};
        const std::vector<std::string> names{"old", "new", "fresh", "tainted", "unselected"};
        for (std::size_t i = 0; i < names.size(); ++i) { objects.nodes[i].meta.name = names[i]; }
        build::set_labels(objects.nodes[0], "v1", "v1", "v1");
        build::set_labels(objects.nodes[1], "v2", "v2", "v2");
        objects.nodes[3].taints = {{"k", "", "NoSchedule"}};
        objects.nodes[4].meta.labels.clear();
        objects.node_modules_configs = {build::loaded(build::module("v1"), objects.nodes[0]),
                                        build::loaded(build::module("v2"), objects.nodes[1])};
        objects.modules = {build::module("v2")};
        const auto nodes = plan::upgrade_nodes(objects, objects.modules[0], {});
        REQUIRE(nodes.size() == 4);
        CHECK(nodes[0].node == "fresh");
        CHECK(nodes[0].steps == std::vector<std::string>{"check", "load", "validate"});
        CHECK(nodes[1].node == "new");
        CHECK(nodes[1].steps.empty());
        CHECK(nodes[1].reason.empty());
        CHECK(nodes[2].current == "v1");
        CHECK(nodes[2].steps == std::vector<std::string>{"check", "unload", "load", "validate"});
        CHECK(nodes[3].reason == "taint-not-tolerated");
        plan::Options options;
        options.missing_images = {"*:v2-*"};
        CHECK(plan::upgrade_nodes(objects, objects.modules[0], options)[2].reason == "image-missing");
        // kmm-upgrade leaves a cordoned node out, whatever the policy keeps there.
        objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "on-delete";
        objects.nodes[0].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
        const auto cordoned = plan::upgrade_nodes(objects, objects.modules[0], {})[2];
        CHECK(cordoned.reason == "taint-not-tolerated");
        CHECK(cordoned.message.ends_with(": node.kubernetes.io/unschedulable:NoSchedule"));
    }
}
