// SPDX-License-Identifier: Apache-2.0
// What a call becomes in a worker Pod.
#include <set>

#include "unit/cluster/pod_server.hpp"
#include "value/reader.hpp"

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

}
