// SPDX-License-Identifier: Apache-2.0
// What a call becomes in a worker Pod.
#include <set>

#include "render/worker_task.hpp"
#include "unit/cluster/pod_server.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::kube::test;
using namespace kmm::worker_pods;
using cluster::CallEnd;
using cluster::PodRunner;
using cluster::WorkerCall;
using value::Node;

TEST_SUITE("cluster::unit") {

TEST_CASE("worker Pods in a namespace of their own: Modules of one name in two namespaces have Pods of two names") {
    std::set<std::string> names;
    for (const char* of : {"drivers", "network"}) {
        PodServer server({k_ended});
        auto options = server.options();
        options.module_namespace = of;
        PodRunner runner(server.client(), options);
        CHECK(runner.run(load_call()).end == CallEnd::completed);
        const Node pod = tree(server.body_of("POST"));
        CHECK(pod.get_string({"metadata", "namespace"}) == "drivers");
        CHECK(pod.get_string({"metadata", "labels", "kmmtools.dev/module-namespace"}) == of);
        names.insert(pod.get_string({"metadata", "name"}));
    }
    CHECK(names.size() == 2);
}

TEST_CASE("a worker Pod: what goes with the config beside the Secret is in the annotation") {
    PodServer server({k_ended});
    auto runner = server.runner();
    WorkerCall call = load_call();
    call.stdin_text +=
        "---\n{\"apiVersion\":\"kmmtools/v1\",\"kind\":\"ImagePolicy\",\"signatureKeys\":[\"line 1\\nline 2\\n\"]}\n";
    call.args.emplace_back("--policy-in-input");
    CHECK(runner.run(call).end == CallEnd::completed);
    const Node pod = tree(server.body_of("POST"));
    Diagnostics faults;
    const auto documents =
        value::read_any(pod.get_string({"metadata", "annotations", "kmmtools.dev/worker-config"}), "config", faults);
    CHECK(faults.empty());
    REQUIRE(documents.size() == 2);
    CHECK(documents.back().root.get_string({"kind"}) == "ImagePolicy");
    CHECK(documents.back().root.find("signatureKeys")->items().front().text() == "line 1\nline 2\n");
    CHECK(value::to_json(*pod.find_path({"spec", "containers"})->items().front().find("args")) ==
          R"(["load","/etc/kmm-worker/config.yaml","--policy-in-input","-o","json"])");
    CHECK(server.body_of("POST").find("e30=") == std::string::npos);
}

/// "NAME PATH ro" or "NAME PATH rw" of each directory of the host that the Pod mounts, by the names of its volumes.
std::vector<std::string> host_mounts(const render::WorkerTask& task) {
    const auto spec = *render::worker_task_pod(task).find("spec");
    std::vector<std::string> found;
    for (const auto& volume : spec.find("volumes")->items()) {
        const auto path = volume.get_string({"hostPath", "path"});
        if (path.empty()) continue;
        for (const auto& mount : spec.find("containers")->items().front().find("volumeMounts")->items())
            if (mount.get_string({"name"}) == volume.get_string({"name"}))
                found.push_back(mount.get_string({"name"}) + " " + path +
                                (mount.find("readOnly") != nullptr ? " ro" : " rw"));
    }
    return found;
}

TEST_CASE("directories of the host in worker Pods: manifests/admission has the same list") {
    using Mounts = std::vector<std::string>;
    render::WorkerTask task;
    task.node = "node-a";
    task.firmware_host_path = "/lib/firmware";
    task.args = {"load", "-"};
    const Mounts changing{"lib-modules /lib/modules ro", "state /run/kmm-worker rw", "cache /var/lib/kmm-worker rw",
                          "lib-firmware /lib/firmware rw"};
    CHECK(host_mounts(task) == changing);
    task.args = {"unload", "-"};
    CHECK(host_mounts(task) == changing);
    task.args = {"check", "-"};
    CHECK(host_mounts(task) == Mounts{"lib-modules /lib/modules ro", "proc /proc ro", "sys /sys ro",
                                      "state /run/kmm-worker ro", "cache /var/lib/kmm-worker rw",
                                      "lib-firmware /lib/firmware ro"});
    task.args = {"status", "kmm_hello"};
    task.firmware_host_path.clear();
    CHECK(host_mounts(task) ==
          Mounts{"lib-modules /lib/modules ro", "proc /proc ro", "sys /sys ro", "state /run/kmm-worker ro"});
}

TEST_CASE("a pull Secret in a worker Pod: its logins at registries") {
    render::WorkerTask task;
    task.args = {"check", "-"};
    task.pull_secret = "pull";
    CHECK(value::to_json(render::worker_task_pod(task)).find("pull-secret") == std::string::npos);
    task.pull_secret_keys = {".dockerconfigjson"};
    CHECK(value::to_json(render::worker_task_pod(task))
              .find(R"({"items":[{"key":".dockerconfigjson","path":".dockerconfigjson"}],"secretName":"pull"})") !=
          std::string::npos);
}

TEST_CASE("worker Pods of a Kubernetes upgrade") {
    render::WorkerTask task;
    task.namespace_ = "kube-system";
    task.module = "kubernetes";
    task.node = "node-a";
    task.image = "registry.example/kmm-worker@sha256:0";
    task.args = {"kubernetes", "facts", "-o", "json"};
    const auto spec_of = [&] { return *render::worker_task_pod(task).find("spec"); };
    const auto text_of = [&](std::string_view member) {
        const Node spec = spec_of();
        const Node* found = spec.find(member);
        return found == nullptr ? std::string() : value::to_json(*found);
    };
    const auto container = [&] { return value::to_json(spec_of().find("containers")->items().front()); };
    CHECK(render::worker_task_name(task).starts_with("kmm-upgrade-kubernetes-facts-node-a-kubernetes-"));
    CHECK(text_of("hostNetwork") == "true");
    CHECK(text_of("hostPID").empty());
    CHECK(text_of("priorityClassName") == R"("system-node-critical")");
    CHECK(text_of("volumes") == R"([{"hostPath":{"path":"/","type":"Directory"},"name":"node"}])");
    CHECK(container().find(R"("readOnly":true)") != std::string::npos);
    CHECK(container().find(R"("privileged":true)") == std::string::npos);
    CHECK(container().find(R"({"add":["DAC_READ_SEARCH","SYS_CHROOT","SYS_PTRACE"],"drop":["ALL"]})") !=
          std::string::npos);
    CHECK(container().find(R"({"name":"KMM_NODE_ROOT","value":"/host"})") != std::string::npos);
    task.has_apparmor_field = false;
    CHECK(container().find("appArmorProfile") == std::string::npos);
    CHECK(value::to_json(render::worker_task_pod(task)).find("container.apparmor.security") != std::string::npos);
    for (const char* verb : {"images", "backup", "control-plane", "kubelet", "repair", "restore"}) {
        CAPTURE(verb);
        task.args = {"kubernetes", verb};
        CHECK(render::is_worker_change(render::worker_task_verb(task.args)));
        CHECK(text_of("hostPID") == "true");
        CHECK(text_of("volumes") == "[]");
        CHECK(container().find(R"("privileged":true)") != std::string::npos);
        CHECK(container().find(R"({"name":"KMM_NODE_NAMESPACES","value":"/proc/1/ns"})") != std::string::npos);
    }
}

}
