// SPDX-License-Identifier: Apache-2.0
// Lines that nodes share against one decision a pair.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "plan/decide/order.hpp"
#include "plan/fleet/lines.hpp"
#include "plan/fleet/make_plan.hpp"
#include "support/sanitized.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

std::string text(const plan::Entry& entry) {
    std::string out = entry.node + " " + entry.kernel + " " + entry.boot_id + " " + entry.namespace_ + "/" +
                      entry.module + " " + entry.version + " " + entry.mapping_text + " " + entry.image + " " +
                      std::string(plan::to_string(entry.action)) + " " + entry.reason + " " + entry.message;
    if (entry.config) { out += " " + entry.config->container_image + " " + entry.config->modprobe.module_name; }
    if (entry.order) { out += " order " + std::to_string(*entry.order); }
    for (const auto& name : entry.needs) { out += " needs " + name; }
    return out + "\n";
}

std::string text(const Diagnostics& diagnostics) {
    std::string out;
    for (const auto& diagnostic : diagnostics) {
        out += diagnostic.code + ": " + diagnostic.message + ": " + diagnostic.hint + "\n";
    }
    return out;
}

/// Nodes of few kernels, taints and labels, some with what KMM leaves on them; Modules that may conflict.
api::Objects random_fleet(std::mt19937& random) {
    const auto roll = [&](unsigned sides) { return random() % sides; };
    api::Objects objects;
    for (unsigned i = 0; i < 30; ++i) {
        api::Node node = build::node(
            roll(8) == 0 ? "" : "6.1.0-" + std::to_string(50 + roll(3)) + (roll(5) == 0 ? "-amd64+" : "-amd64"));
        node.meta.name = "node-" + std::to_string(100 + i);
        node.boot_id = roll(6) == 0 ? "" : "boot-" + std::to_string(i);
        node.meta.labels = {{"kmm", roll(3) == 0 ? "no" : "yes"}, {"host", node.meta.name}};
        if (roll(4) == 0) { node.taints.push_back(api::Taint{"k", "v", "NoSchedule"}); }
        if (roll(5) == 0) { node.ready = "False"; }
        if (roll(6) == 0) { build::set_labels(node, "v1", roll(3) == 0 ? "" : "v1", "v1"); }
        if (roll(12) == 0) { node.meta.labels[api::label_version_device_plugin("drivers", "m1")] = "v1"; }
        if (roll(4) == 0) { node.meta.labels[api::label_device_plugin_ready("drivers", "kmm-hello")] = ""; }
        objects.nodes.push_back(node);
        if (roll(4) == 0 && !node.kernel_version.empty()) {
            objects.node_modules_configs.push_back(build::loaded(build::module(roll(2) == 0 ? "" : "v1"), node));
            auto& config = objects.node_modules_configs.back();
            config.meta.name = node.meta.name;
            if (roll(2) == 0) {  // with entries that share their parts with those of another node
                const auto& other =
                    objects.node_modules_configs[roll(static_cast<unsigned>(objects.node_modules_configs.size()))];
                config.spec = other.spec;
                config.status = other.status;
                for (auto& entry : config.status) { entry.boot_id = roll(3) == 0 ? "before" : node.boot_id; }
                if (roll(4) == 0) { config.spec.clear(); }
            }
        }
    }
    for (unsigned i = 0; i < 6; ++i) {
        api::Module module = build::module(roll(3) == 0 ? "v1" : "");
        if (i > 0) { module.meta.name = "m" + std::to_string(i); }
        if (roll(3) == 0) {
            module.module_loader->container.kernel_mappings = {build::literal("6.1.0-51-amd64", "r/x:y"),
                                                               build::regexp("^6.*-52-")};
        }
        if (roll(6) == 0) { module.module_loader->container.kernel_mappings = {build::regexp("(")}; }
        if (roll(3) == 0) { module.tolerations.push_back(api::Toleration{"k", "Exists", "", "", std::nullopt}); }
        if (roll(4) == 0) { module.selector = {{"host", "node-105"}}; }
        module.module_loader->container.modprobe.module_name = roll(2) == 0 ? "same-one" : "m_" + std::to_string(i);
        auto& container = module.module_loader->container;
        if (roll(4) == 0) { container.in_tree_modules_to_remove = std::vector<std::string>{"same-one", "m-2"}; }
        if (roll(5) == 0) {
            module.meta.annotations[std::string(plan::k_annotation_needs)] =
                "drivers/m2, drivers/kmm-hello, drivers/none";
        }
        objects.modules.push_back(module);
    }
    return objects;
}

}  // namespace

TEST_SUITE("plan::lines") {
    TEST_CASE("what nodes share is what each of them would get alone") {
        std::mt19937 random(4711);
        std::size_t shared = 0, own = 0;
        std::map<std::string, std::size_t> codes;
        const std::size_t rounds = test::sanitized() ? 12 : 60;
        for (std::size_t round = 0; round < rounds; ++round) {
            const api::Objects objects = random_fleet(random);
            for (const bool next : {false, true}) {
                plan::Options options;
                options.next = next;
                options.missing_images = {"r/x:*", "*-6.1.0-52*", "nothing/*"};
                options = plan::complete(options, objects);
                std::string lines, alone;
                std::set<std::size_t> numbers;
                const auto diagnostics = plan::visit_plan(objects, options, [&](const plan::Line& line) {
                    lines += text(line.own());
                    (line.shared == plan::k_own_entry ? own : shared) += 1;
                    if (line.shared != plan::k_own_entry) { numbers.insert(line.shared); }
                });
                CHECK((numbers.empty() || *numbers.rbegin() + 1 == numbers.size()));
                for (const auto& node : objects.nodes) {
                    api::Objects one = objects;
                    one.nodes = {node};
                    for (const auto& entry : plan::make_plan(one, options).entries) { alone += text(entry); }
                }
                CHECK(lines == alone);
                // With a worker Pod of some other Module each node gets its own decision.
                api::Objects unlike = objects;
                for (const auto& node : unlike.nodes) {
                    api::Pod& pod = unlike.pods.emplace_back();
                    pod.meta.name = "pod-of-" + node.meta.name;
                    pod.meta.labels = {{std::string(api::k_label_worker_action), "ModuleLoad"},
                                       {std::string(api::k_label_module_name), "none"}};
                    pod.node_name = node.meta.name;
                }
                std::string decided_alone;
                const auto findings = plan::visit_plan(unlike, options, [&](const plan::Line& line) {
                    REQUIRE(line.shared == plan::k_own_entry);
                    decided_alone += text(line.own());
                });
                CHECK(lines == decided_alone);
                CHECK(text(diagnostics) == text(findings));
                for (const auto& finding : findings) { ++codes[finding.code]; }
            }
        }
        CHECK(shared > 16 * rounds);
        CHECK(own > 16 * rounds);
        for (const std::string code :
             {"kernel-unmapped", "kernel-plus", "version-labels-stuck", "label-key-leftover", "in-tree-needed",
              "cordon-unloads", "needs-not-loaded", "missing-unmatched", "module-conflict", "bad-regexp"}) {
            CAPTURE(code);
            CHECK((codes[code] > 0 || test::sanitized()));
        }
    }

    TEST_CASE("nodes with the same labels and entries share decisions, also where KMM runs") {
        api::Objects objects;
        objects.modules = {build::module("v1")};
        for (int i = 0; i < 8; ++i) {
            objects.nodes.push_back(build::node());
            auto& node = objects.nodes.back();
            node.meta.name = "node-" + std::to_string(i);
            node.boot_id = "boot-" + std::to_string(i);
            build::set_labels(node, "v1", "v1", "v1");
            node.meta.labels[api::label_ready("drivers", "kmm-hello")] = "";
            auto config = i == 0 ? build::loaded(objects.modules[0], node) : objects.node_modules_configs[0];
            config.meta.name = node.meta.name;
            config.status[0].boot_id = node.boot_id;
            objects.node_modules_configs.push_back(config);
        }
        objects.nodes[5].meta.labels.erase(api::label_version_worker_pod("drivers", "kmm-hello"));
        objects.node_modules_configs[6].status[0].boot_id = "before";
        objects.node_modules_configs[7].spec[0].config.edit().container_image = "r/other:1";
        std::map<std::size_t, std::size_t> nodes_of;
        std::string seen;
        (void)plan::visit_plan(objects, {}, [&](const plan::Line& line) {
            ++nodes_of[line.shared];
            seen += std::string(plan::to_string(line.entry.action)) + " " + line.own().boot_id + ", ";
        });
        CHECK(seen ==
              "keep boot-0, keep boot-1, keep boot-2, keep boot-3, keep boot-4, blocked boot-5, load boot-6, keep "
              "boot-7, ");
        CHECK(nodes_of[0] == 5);
    }

    TEST_CASE("a conflict counts its nodes, whether they share the decision or not") {
        api::Objects objects;
        for (const auto* name : {"node-c", "node-a", "node-b"}) {
            objects.nodes.push_back(build::node());
            objects.nodes.back().meta.name = name;
        }
        objects.node_modules_configs = {build::loaded(build::module(), objects.nodes[2])};
        objects.node_modules_configs[0].meta.name = "node-b";
        objects.modules = {build::module(), build::module()};
        objects.modules[1].meta.name = "other";
        const auto diagnostics = plan::visit_plan(objects, {}, [](const plan::Line&) {});
        REQUIRE(diagnostics.size() == 1);
        CHECK(diagnostics[0].message ==
              "Modules drivers/kmm-hello and drivers/other both load the kernel module kmm_hello on 3 nodes, first "
              "node-a");
    }
}
