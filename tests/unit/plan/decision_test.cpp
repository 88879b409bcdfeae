// SPDX-License-Identifier: Apache-2.0
// One test per row of KMM's decision table, through the whole judgement.
#include <doctest/doctest.h>

#include "plan/fleet/make_plan.hpp"
#include "plan/kmm/resolve.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;
using plan::Action;

namespace {

plan::Verdict judge(const api::Node& node, const api::Module& module, const api::NodeModulesConfig* config,
                    bool next = false) {
    plan::Options options;
    options.next = next;
    return plan::judge(plan::NodeView{&node, config}, plan::Resolver(module), options);
}

void check(const plan::Verdict& verdict, int row, Action action, const char* reason) {
    REQUIRE(verdict.row != nullptr);
    CHECK(verdict.row->number == row);
    CHECK(plan::to_string(verdict.entry.action) == plan::to_string(action));
    CHECK(verdict.entry.reason == reason);
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("row 1: a mapping fault leaves the entry as it is") {
        const api::Node node = build::node();
        api::Module module = build::module();
        const auto config = build::loaded(module, node);
        module.module_loader->container.kernel_mappings = {build::regexp("(")};
        const auto verdict = judge(node, module, &config);
        check(verdict, 1, Action::blocked, "bad-regexp");
        CHECK(verdict.wanted == config.spec[0]);
    }

    TEST_CASE("row 2: no mapping removes the entry") {
        const api::Node node = build::node();
        api::Module module = build::module();
        const auto config = build::loaded(module, node);
        module.module_loader->container.kernel_mappings = {build::literal("5.10.0-1")};
        const auto verdict = judge(node, module, &config);
        check(verdict, 2, Action::unload, "no-kernel-mapping");
        CHECK_FALSE(verdict.wanted.has_value());
        CHECK(verdict.entry.config == config.status[0].config);
    }

    TEST_CASE("row 3: no mapping and no entry is nothing") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::literal("5.10.0-1")};
        check(judge(build::node(), module, nullptr), 3, Action::none, "no-kernel-mapping");
    }

    TEST_CASE("row 4: an unversioned Module is written") {
        const api::Node node = build::node();
        const api::Module module = build::module();
        const auto verdict = judge(node, module, nullptr);
        check(verdict, 4, Action::load, "not-loaded");
        REQUIRE(verdict.wanted.has_value());
        CHECK(verdict.wanted->service_account_name == "default");
        CHECK(verdict.wanted->tolerations->size() == 3);
        CHECK(verdict.wanted->config->container_image == "registry.example/kmm-hello:x-6.1.0-56-amd64");

        const auto config = build::loaded(module, node);
        check(judge(node, module, &config), 4, Action::keep, "up-to-date");
    }

    TEST_CASE("row 4: another configuration reloads, another kernel or boot loads") {
        api::Node node = build::node();
        api::Module module = build::module();
        const auto config = build::loaded(module, node);
        module.module_loader->container.modprobe.parameters = {"debug=1"};
        check(judge(node, module, &config), 4, Action::reload, "config-changed");
        check(judge(node, module, &config, true), 4, Action::unload, "config-changed");
        CHECK(judge(node, module, &config).entry.message.ends_with("same image, other settings: parameters"));
        module.module_loader->container.in_tree_modules_to_remove = std::vector<std::string>{"old"};
        CHECK(judge(node, module, &config)
                  .entry.message.ends_with("same image, other settings: inTreeModulesToRemove, parameters"));
        module.module_loader->container.in_tree_modules_to_remove.reset();
        module.module_loader->container.modprobe.parameters.clear();
        node.boot_id = "b2";
        check(judge(node, module, &config), 4, Action::load, "node-rebooted");
        node.ready = "False";
        check(judge(node, module, &config), 4, Action::load, "node-rebooted");
        check(judge(node, module, &config, true), 4, Action::none, "node-rebooted");
        node.kernel_version = "6.1.0-57-amd64";
        check(judge(node, module, &config), 4, Action::load, "kernel-changed");
    }

    TEST_CASE("row 5: the worker label equals the version") {
        api::Node node = build::node();
        build::set_labels(node, "v1", "v1", "v1");
        const api::Module module = build::module("v1");
        check(judge(node, module, nullptr), 5, Action::load, "not-loaded");
        const auto config = build::loaded(module, node);
        check(judge(node, module, &config), 5, Action::keep, "up-to-date");
    }

    TEST_CASE("row 5: a first label is walked to its end; the very next pass only moves labels") {
        api::Node node = build::node();
        build::set_labels(node, "v1", "", "");
        const api::Module module = build::module("v1");
        check(judge(node, module, nullptr), 5, Action::load, "not-loaded");
        check(judge(node, module, nullptr, true), 7, Action::none, "version-label-missing");
    }

    TEST_CASE("row 5: moving the label to the Module's version reloads") {
        api::Node node = build::node();
        build::set_labels(node, "v2", "v1", "v1");
        const auto config = build::loaded(build::module("v1"), node);
        const api::Module module = build::module("v2");
        const auto verdict = judge(node, module, &config);
        check(verdict, 5, Action::reload, "version-changed");
        CHECK(verdict.entry.image == "registry.example/kmm-hello:v2-6.1.0-56-amd64");
        check(judge(node, module, &config, true), 6, Action::keep, "version-held");
    }

    TEST_CASE("row 6: the label holds the old version") {
        api::Node node = build::node();
        build::set_labels(node, "v1", "v1", "v1");
        const auto config = build::loaded(build::module("v1"), node);
        const api::Module module = build::module("v2");
        const auto verdict = judge(node, module, &config);
        check(verdict, 6, Action::keep, "version-held");
        CHECK(verdict.wanted == config.spec[0]);
        check(judge(node, module, nullptr), 6, Action::none, "version-label-differs");
        node.kernel_version = "6.1.0-57-amd64";
        check(judge(node, module, &config), 6, Action::blocked, "entry-for-other-kernel");
    }

    TEST_CASE("row 6: a label moved to a version that the Module does not have unloads") {
        api::Node node = build::node();
        build::set_labels(node, "v3", "v1", "v1");
        const auto config = build::loaded(build::module("v1"), node);
        check(judge(node, build::module("v2"), &config), 6, Action::unload, "version-label-differs");
    }

    TEST_CASE("row 7: no label removes the entry") {
        api::Node node = build::node();
        const api::Module module = build::module("v1");
        const auto config = build::loaded(module, node);
        check(judge(node, module, &config), 7, Action::unload, "version-label-missing");
        check(judge(node, module, nullptr), 7, Action::none, "version-label-missing");
        build::set_labels(node, "", "v1", "v1");
        check(judge(node, module, &config), 7, Action::unload, "version-label-missing");
        check(judge(node, module, &config, true), 5, Action::keep, "up-to-date");
    }

    TEST_CASE("row 8: a node that is no longer eligible is unloaded") {
        const api::Module module = build::module();
        const auto config = build::loaded(module, build::node());
        api::Node cordoned = build::node();
        cordoned.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
        const auto verdict = judge(cordoned, module, &config);
        check(verdict, 8, Action::unload, "taint-not-tolerated");
        CHECK(verdict.entry.message.find("node.kubernetes.io/unschedulable:NoSchedule") != std::string::npos);
        api::Node unlabelled = build::node();
        unlabelled.meta.labels.clear();
        check(judge(unlabelled, module, &config), 8, Action::unload, "selector-mismatch");
        check(judge(unlabelled, module, nullptr), 0, Action::none, "selector-mismatch");
        unlabelled.boot_id = "b2";
        check(judge(unlabelled, module, &config), 8, Action::none, "selector-mismatch");
    }

    TEST_CASE("stuck labels block, unless the worker label has arrived") {
        const api::Module module = build::module("v2");
        api::Node node = build::node();
        build::set_labels(node, "v2", "", "v1");
        check(judge(node, module, nullptr), 7, Action::blocked, "version-labels-stuck");
        api::Node arrived = build::node();
        build::set_labels(arrived, "v2", "v2", "v1");
        check(judge(arrived, module, nullptr), 5, Action::load, "not-loaded");
    }

    TEST_CASE("a node without a kernel version is blocked") {
        check(judge(build::node(""), build::module(), nullptr), 1, Action::blocked, "kernel-unknown");
    }

    TEST_CASE("a Module without moduleLoader keeps what there is; one being deleted unloads") {
        const api::Node node = build::node();
        api::Module module = build::module();
        const auto config = build::loaded(module, node);
        module.meta.deleting = true;
        CHECK(judge(node, module, &config).entry.reason == "module-deleting");
        CHECK(judge(node, module, &config).entry.action == Action::unload);
        module.meta.deleting = false;
        module.module_loader.reset();
        CHECK(judge(node, module, &config).entry.reason == "no-module-loader");
        CHECK(judge(node, module, &config).entry.action == Action::keep);
        CHECK(judge(node, module, nullptr).entry.action == Action::none);
    }

    TEST_CASE("the table is total") {
        using namespace plan;
        for (const auto e : {Eligibility::eligible, Eligibility::not_eligible}) {
            for (const auto m : {MappingState::fault, MappingState::none, MappingState::found}) {
                for (const auto c : {Configured::yes, Configured::no}) {
                    for (const auto w :
                         {WorkerLabel::unversioned, WorkerLabel::equal, WorkerLabel::differs, WorkerLabel::missing}) {
                        CHECK_NOTHROW(static_cast<void>(decide(Situation{e, m, c, w})));
                    }
                }
            }
        }
    }
}

TEST_SUITE("plan::unit") {
    TEST_CASE("a missing image leaves the entry, and takes the module out when the labels have moved") {
        api::Node node = build::node();
        const api::Module old = build::module();
        const auto config = build::loaded(old, node);
        api::Module module = build::module();
        module.module_loader->container.modprobe.parameters = {"debug=1"};
        plan::Options options;
        options.missing_images = {"registry.example/kmm-hello:*"};
        const auto judged = [&](const api::NodeModulesConfig* there) {
            return plan::judge(plan::NodeView{&node, there}, plan::Resolver(module), options);
        };
        auto verdict = judged(&config);
        check(verdict, 4, Action::blocked, "image-missing");
        CHECK(verdict.wanted == config.spec[0]);
        CHECK(judged(nullptr).wanted == std::nullopt);
        options.missing_images = {"registry.example/kmm-hello"};
        check(judged(&config), 4, Action::reload, "config-changed");

        options.missing_images = {"*:v2-?.1.0-*"};
        module = build::module("v2");
        const auto first = build::loaded(build::module("v1"), node);
        build::set_labels(node, "v2", "v1", "v1");
        verdict = judged(&first);
        check(verdict, 5, Action::unload, "image-missing");
        CHECK(verdict.entry.version == "v1");
        CHECK(verdict.entry.message.find("unload v1") != std::string::npos);
    }

    TEST_CASE("an image that can be built is there in the end, not in the next pass") {
        const api::Node node = build::node();
        api::Module module = build::module();
        module.module_loader->container.build.emplace();
        plan::Options options;
        options.missing_images = {"*"};
        check(plan::judge(plan::NodeView{&node, nullptr}, plan::Resolver(module), options), 4, Action::load,
              "not-loaded");
        options.next = true;
        check(plan::judge(plan::NodeView{&node, nullptr}, plan::Resolver(module), options), 4, Action::blocked,
              "image-missing");
    }

    TEST_CASE("the unload policy: a cordon does not unload") {
        api::Node node = build::node();
        node.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
        api::Module module = build::module();
        const auto config = build::loaded(module, node);
        const auto judged = [&] { return judge(node, module, &config); };
        check(judged(), 8, Action::unload, "taint-not-tolerated");
        for (const auto* policy : {"on-delete", "never"}) {
            CAPTURE(policy);
            module.meta.annotations = {{"kmmtools.dev/unload-policy", policy}};
            check(judged(), 8, Action::keep, "unload-policy");
            CHECK(judged().entry.message.find("node.kubernetes.io/unschedulable:NoSchedule") != std::string::npos);
            CHECK(judged().wanted == config.spec[0]);
        }
        module.meta.annotations = {{"kmmtools.dev/unload-policy", "always"}};
        check(judged(), 8, Action::unload, "taint-not-tolerated");
    }

    TEST_CASE("the unload policy: on-delete lets a deletion and a replacement through, never nothing") {
        const api::Node node = build::node();
        api::Module module = build::module();
        const auto config = build::loaded(module, node);
        const auto judged = [&] { return judge(node, module, &config).entry; };
        module.meta.annotations = {{"kmmtools.dev/unload-policy", "on-delete"}};
        module.module_loader->container.modprobe.parameters = {"debug=1"};
        CHECK(judged().action == Action::reload);
        module.meta.deleting = true;
        CHECK(judged().action == Action::unload);
        module.meta.annotations = {{"kmmtools.dev/unload-policy", "never"}};
        CHECK(judged().reason == "unload-policy");
        CHECK(judged().action == Action::keep);
        module.meta.deleting = false;
        CHECK(judged().action == Action::blocked);
        CHECK(judged().reason == "unload-policy");
        CHECK(judged().config == config.status[0].config);
    }

    TEST_CASE("the unload policy: on-delete lets the version labels move, but not take out") {
        api::Node node = build::node();
        build::set_labels(node, "v2", "v1", "v1");
        const auto config = build::loaded(build::module("v1"), node);
        api::Module module = build::module("v2");
        module.meta.annotations = {{"kmmtools.dev/unload-policy", "on-delete"}};
        check(judge(node, module, &config), 5, Action::reload, "version-changed");
        node.meta.labels = {{"kmm", "yes"}};
        build::set_labels(node, "", "v1", "v1");
        check(judge(node, module, &config), 7, Action::keep, "unload-policy");
    }

    TEST_CASE("a worker Pod at work is what the next pass waits for") {
        const api::Node node = build::node();
        const api::Module module = build::module();
        const auto config = build::loaded(module, node);
        api::Pod pod;
        pod.meta.name = "kmm-worker-node-a-kmm-hello";
        pod.meta.namespace_ = "drivers";
        pod.meta.labels = {{"kmm.node.kubernetes.io/module.name", "kmm-hello"},
                           {"kmm.node.kubernetes.io/worker-action", "Unload"}};
        pod.node_name = "node-a";
        pod.phase = "Running";
        api::Objects objects;
        objects.nodes = {node};
        objects.modules = {module};
        objects.node_modules_configs = {config};
        objects.pods = {pod};
        const auto entry = [&](bool next) {
            plan::Options options;
            options.next = next;
            return plan::make_plan(objects, options).entries.at(0);
        };
        CHECK(entry(true).action == Action::none);
        CHECK(entry(true).reason == "worker-running");
        CHECK(entry(true).message.find("unloader kmm-worker-node-a-kmm-hello") != std::string::npos);
        CHECK(entry(false).action == Action::reload);  // an unloader is never cancelled: KMM 1333
        CHECK(entry(false).reason == "worker-running");
        objects.pods[0].phase = "Succeeded";
        CHECK(entry(true).action == Action::load);
        objects.pods[0].meta.labels["kmm.node.kubernetes.io/worker-action"] = "Load";
        objects.node_modules_configs[0].status.clear();
        CHECK(entry(true).action == Action::keep);
        objects.pods[0].worker_restarts = 3;
        objects.pods[0].phase = "Running";
        CHECK(entry(true).reason == "worker-running");
        CHECK(entry(true).message.find("fails") != std::string::npos);
        objects.pods[0].meta.annotations["kmm.node.kubernetes.io/worker-config"] =
            "containerImage: old\ninsecurePull: false\nkernelVersion: 6.1.0-56-amd64\nmodprobe: {moduleName: "
            "kmm_hello}\n";
        CHECK(entry(true).reason == "worker-stale");
        objects.pods[0].node_name = "node-b";
        CHECK(entry(true).action == Action::load);
    }

    TEST_CASE("a dotted name keeps the label controller away") {
        api::Node node = build::node();
        api::Module module = build::module("v1");
        module.meta.name = "a.b";
        node.meta.labels[api::label_version_module("drivers", "a.b")] = "v1";
        check(judge(node, module, nullptr), 7, Action::blocked, "version-labels-misread");
        node.meta.labels[api::label_version_worker_pod("drivers", "a.b")] = "v1";
        check(judge(node, module, nullptr), 5, Action::load, "not-loaded");
    }
}
