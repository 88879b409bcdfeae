// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "api/codec.hpp"
#include "render/manifests.hpp"
#include "unit/plan/build.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;

namespace {

/// node-a is to be reloaded from v1 to v2.
api::Objects upgrade() {
    api::Objects objects;
    objects.nodes = {build::node()};
    build::set_labels(objects.nodes[0], "v2", "v1", "v1");
    objects.node_modules_configs = {build::loaded(build::module("v1"), objects.nodes[0])};
    objects.modules = {build::module("v2")};
    return objects;
}

std::vector<std::string> actions(const std::vector<value::Node>& pods) {
    std::vector<std::string> result;
    for (const auto& pod : pods) {
        result.push_back(pod.get_string({"metadata", "labels", "kmm.node.kubernetes.io/worker-action"}));
    }
    return result;
}

render::Options worker(render::WorkerStyle style = render::WorkerStyle::pull) {
    render::Options options;
    options.worker_style = style;
    options.worker_image = "kmm-worker:test";
    return options;
}

std::vector<value::Node> worker_pods(const api::Objects& objects, const render::Options& options = worker()) {
    constexpr std::array what{render::What::worker_pods};
    return render::render(objects, options, what).objects;
}

}  // namespace

TEST_SUITE("render::unit") {
    TEST_CASE("settled configurations read back as what the plan wants") {
        const auto documents = render::node_modules_configs(upgrade());
        REQUIRE(documents.size() == 2);
        api::Objects read;
        Diagnostics diagnostics;
        for (const auto& root : documents) {
            value::Document document;
            document.root = root;
            api::decode(document, read, diagnostics);
        }
        CHECK(diagnostics.empty());
        REQUIRE(read.node_modules_configs.size() == 1);
        const auto& config = read.node_modules_configs[0];
        REQUIRE(config.spec.size() == 1);
        CHECK(config.spec[0].version == "v2");
        CHECK(config.spec[0].config->container_image == "registry.example/kmm-hello:v2-6.1.0-56-amd64");
        CHECK(config.meta.labels.count(api::label_module_configured("drivers", "kmm-hello")) == 1);
        const auto& labels = read.nodes.at(0).meta.labels;
        CHECK(labels.at(api::label_version_worker_pod("drivers", "kmm-hello")) == "v2");
        CHECK(labels.at(api::label_version_schedule_pod("drivers", "kmm-hello")) == "v2");
        CHECK(labels.at(api::label_version_ready("drivers", "kmm-hello")) == "v2");
        CHECK(labels.at(api::label_ready("drivers", "kmm-hello")).empty());
    }

    TEST_CASE("a reload is an unload Pod with the old configuration and a load Pod with the new") {
        const auto pods = worker_pods(upgrade());
        CHECK(actions(pods) == std::vector<std::string>{"Unload", "Load"});
        std::vector<std::string> images;
        for (const auto& pod : pods) {
            CHECK(pod.get_string({"metadata", "name"}) == "kmm-worker-node-a-kmm-hello");
            CHECK(pod.get_string({"spec", "nodeName"}) == "node-a");
            CHECK(pod.find_path({"spec", "initContainers"}) == nullptr);
            Diagnostics diagnostics;
            const auto config = value::read_yaml(
                pod.get_string({"metadata", "annotations", "kmm.node.kubernetes.io/worker-config"}), "-", diagnostics);
            REQUIRE(config.size() == 1);
            images.push_back(api::decode_module_config(config[0], diagnostics).container_image);
            CHECK(diagnostics.empty());
        }
        CHECK(images == std::vector<std::string>{"registry.example/kmm-hello:v1-6.1.0-56-amd64",
                                                 "registry.example/kmm-hello:v2-6.1.0-56-amd64"});
    }

    TEST_CASE("the next pass only moves labels") {
        render::Options next = worker();
        next.plan.next = true;
        CHECK(worker_pods(upgrade(), next).empty());
    }

    TEST_CASE("a Module that is loaded needs no Pod") {
        api::Objects objects = upgrade();
        objects.nodes = {build::node()};
        build::set_labels(objects.nodes[0], "v1", "v1", "v1");
        objects.modules = {build::module("v1")};
        CHECK(worker_pods(objects).empty());
    }

    TEST_CASE("the pull Secret is mounted, and its file is named by its type") {
        api::Objects objects = upgrade();
        objects.node_modules_configs.clear();
        objects.modules[0].image_repo_secret = "pull";
        const auto text = [&] { return value::to_yaml(worker_pods(objects).at(0)); };
        CHECK(text().find("/var/run/kmm/pull-secrets/pull/.dockerconfigjson") != std::string::npos);
        objects.secrets.resize(1);
        objects.secrets[0].meta.namespace_ = "drivers";
        objects.secrets[0].meta.name = "pull";
        objects.secrets[0].type = "kubernetes.io/dockercfg";
        objects.secrets[0].data[".dockercfg"] = "very-secret";
        CHECK(text().find("/var/run/kmm/pull-secrets/pull/.dockercfg") != std::string::npos);
        CHECK(text().find("very-secret") == std::string::npos);
    }

    TEST_CASE("firmware needs the hosts' directory and a privileged Pod") {
        api::Objects objects = upgrade();
        objects.node_modules_configs.clear();
        objects.modules[0].module_loader->container.modprobe.firmware_path = "/firmware";
        render::Options options = worker();
        options.operator_config.worker_firmware_host_path = "";
        CHECK_THROWS_AS(static_cast<void>(worker_pods(objects, options)), Error);
        const auto pods = worker_pods(objects);
        REQUIRE(pods.size() == 1);
        const value::Node& container = pods[0].find_path({"spec", "containers"})->items().at(0);
        CHECK(container.find_path({"securityContext", "privileged"})->as_bool() == true);
    }

    TEST_CASE("same objects, same bytes") {
        std::string first, second;
        for (const auto& node : render::node_modules_configs(upgrade())) { first += value::to_yaml(node); }
        for (const auto& node : render::node_modules_configs(upgrade())) { second += value::to_yaml(node); }
        CHECK(first == second);
        CHECK_FALSE(first.empty());
    }

    TEST_CASE("unloading needs no pull Secret") {
        api::Objects objects = upgrade();
        objects.modules[0].image_repo_secret = "pull";
        objects.node_modules_configs[0].status[0].image_repo_secret = "pull";
        const auto pods = worker_pods(objects);
        REQUIRE(pods.size() == 2);
        CHECK(value::to_yaml(pods[0]).find("pull-secret") == std::string::npos);
        CHECK(value::to_yaml(pods[1]).find("--authfile") != std::string::npos);
    }

    TEST_CASE("style extract is the Pod of KMM") {
        api::Objects objects = upgrade();
        objects.modules[0].image_repo_secret = "pull";
        objects.modules[0].module_loader->container.modprobe.modules_loading_order = {"a", "b", "c"};
        objects.nodes[0].kernel_version += "+";
        constexpr std::array what{render::What::worker_pods};
        const auto rendered = render::render(objects, worker(render::WorkerStyle::extract), what);
        REQUIRE(rendered.objects.size() == 2);
        REQUIRE(rendered.findings.size() == 1);
        CHECK(rendered.findings[0].code == "kernel-plus");
        for (const auto& pod : rendered.objects) {
            CHECK(pod.find_path({"metadata", "finalizers"})->items().at(0).text() ==
                  "kmm.node.kubernetes.io/nodemodulesconfig-reconciler");
            const value::Node& init = pod.find_path({"spec", "initContainers"})->items().at(0);
            CHECK(init.get_string({"name"}) == "image-extractor");
            CHECK(init.find("args")->items().at(0).text() ==
                  "\nmkdir -p /tmp/opt/lib/modules;\ncp -R /opt/lib/modules/6.1.0-56-amd64 /tmp/opt/lib/modules;\n");
        }
        const value::Node& load = rendered.objects[1];
        CHECK(load.get_string({"metadata", "annotations", "kmm.node.kubernetes.io/modules-order"}) ==
              "softdep a pre: b\nsoftdep b pre: c\n");
        CHECK(rendered.objects[0].find_path({"metadata", "annotations", "kmm.node.kubernetes.io/modules-order"}) ==
              nullptr);
        const auto& args = load.find_path({"spec", "containers"})->items().at(0).find("args")->items();
        REQUIRE(args.size() == 3);
        CHECK(args[0].text() == "kmod");
        CHECK(args[1].text() == "load");
        CHECK(load.find_path({"spec", "imagePullSecrets"})->items().at(0).get_string({"name"}) == "pull");
    }

    TEST_CASE("with modprobedDir the Pods of KMM are privileged and copy its files") {
        api::Objects objects = upgrade();
        auto& modprobe = objects.modules[0].module_loader->container.modprobe;
        modprobe.modprobed_dir = "/etc/my files";
        modprobe.modules_loading_order = {"a", "b"};  // beside each other
        objects.node_modules_configs[0].status[0].config.edit().modprobe.modprobed_dir = "/etc/modprobe.d";
        constexpr std::array what{render::What::worker_pods};
        const auto pods = render::render(objects, worker(render::WorkerStyle::extract), what).objects;
        REQUIRE(pods.size() == 2);
        for (const auto& pod : pods) {
            const value::Node& container = pod.find_path({"spec", "containers"})->items().at(0);
            CHECK(container.find_path({"securityContext", "privileged"})->as_bool() == true);
        }
        const auto script = [](const value::Node& pod) {
            return pod.find_path({"spec", "initContainers"})->items().at(0).find("args")->items().at(0).text();
        };
        CHECK(script(pods[0]).find("src=/etc/modprobe.d;\ndst=/tmp/etc/modprobe.d;\n") != std::string::npos);
        CHECK(script(pods[1]).find("src='/etc/my files';\ndst='/tmp/etc/my files';\n") != std::string::npos);
        const std::string load = value::to_yaml(pods[1]);
        CHECK(load.find("mountPath: \"/etc/modprobe.d/softdep.conf\"") != std::string::npos);
        CHECK(load.find("subPath: softdep.conf") != std::string::npos);
        const auto own = worker_pods(objects);
        CHECK(value::to_yaml(own.at(1)).find("privileged") == std::string::npos);
    }

    TEST_CASE("the order of the input does not show") {
        api::Objects objects;
        for (const char* name : {"node-a", "node-b", "node-c"}) {
            objects.nodes.push_back(build::node());
            objects.nodes.back().meta.name = name;
        }
        for (const char* name : {"a", "b", "c"}) {
            objects.modules.push_back(build::module());
            objects.modules.back().meta.name = name;
            objects.modules.back().module_loader->container.build.emplace();
            objects.modules.back().device_plugin =
                value::Node::mapping({{"container", value::Node::mapping({{"image", "i"}})}});
        }
        std::vector<render::What> what;
        for (const auto& row : render::whats()) { what.push_back(row.what); }
        const auto text = [&](const api::Objects& input) {
            std::string result;
            for (const auto& object : render::render(input, worker(), what).objects) {
                result += value::to_yaml(object);
            }
            return result;
        };
        const std::string expected = text(objects);
        CHECK(expected.find("DaemonSet") != std::string::npos);
        do {
            api::Objects input = objects;
            Diagnostics diagnostics;
            api::finish(input, diagnostics);
            CHECK(text(input) == expected);
        } while (std::next_permutation(objects.nodes.begin(), objects.nodes.end(),
                                       [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; }) ||
                 std::next_permutation(objects.modules.begin(), objects.modules.end(),
                                       [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; }));
    }

    TEST_CASE("file names are unique, sorted as applied and stable") {
        const auto objects = render::render_needed(upgrade(), worker()).objects;
        const auto names = render::file_names(objects);
        REQUIRE(names.size() == objects.size());
        CHECK(names == std::vector<std::string>{"00-namespace_drivers", "60-nodemodulesconfig_node-a", "70-node_node-a",
                                                "90-pod_drivers_kmm-worker-node-a-kmm-hello_1-unload",
                                                "90-pod_drivers_kmm-worker-node-a-kmm-hello_2-load"});
    }
}
