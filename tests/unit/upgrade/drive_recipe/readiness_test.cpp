// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "upgrade/drive_recipe/readiness.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::drive;
using value::Node;

namespace {

Node yaml(const std::string& text) {
    Diagnostics faults;
    auto documents = value::read_yaml(text, "test", faults);
    REQUIRE(faults.empty());
    return documents.front().root;
}

std::string problem(const std::string& text, const std::vector<Node>& builds = {}) {
    return readiness_problem(yaml(text), builds);
}

Node build(int number, const std::string& phase) {
    return yaml("{kind: Build, metadata: {name: b-" + std::to_string(number) +
                ", annotations: {openshift.io/build.number: '" + std::to_string(number) +
                "'}, ownerReferences: [{uid: u1}]}, status: {phase: " + phase + "}}");
}

}  // namespace

TEST_SUITE("drive::recipe") {

TEST_CASE("what keeps an object that is being deleted is named") {
    const std::string head =
        "{kind: Namespace, metadata: {name: a, deletionTimestamp: t}, status: {phase: Terminating";
    CHECK(problem(head + "}}") == "Namespace a is being deleted");
    CHECK(problem(head + ", conditions: [{type: NamespaceContentRemaining, status: 'True', message: some}, "
                         "{type: NamespaceFinalizersRemaining, status: 'True', message: x.test/y left}]}}") ==
          "Namespace a is being deleted (x.test/y left)");
    CHECK(deletion_obstacle(yaml("{kind: Job, metadata: {finalizers: [foregroundDeletion]}}")).empty());
    CHECK(deletion_obstacle(yaml("{kind: Job, metadata: {finalizers: [x.test/y, foregroundDeletion, z]}}")) ==
          " (finalizers: x.test/y, z)");
}

TEST_CASE("a DaemonSet is ready when its controller has seen it and every wanted Pod is updated and available") {
    const std::string head =
        "{kind: DaemonSet, metadata: {name: a, namespace: ns, generation: 2}, status: {observedGeneration: ";
    CHECK(problem(head + "2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}").empty());
    CHECK_FALSE(
        problem(head + "1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}").empty());
    CHECK_FALSE(
        problem(head + "2, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}").empty());
    CHECK(problem(head + "2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}") ==
          "DaemonSet ns/a: 1 of 2 Pods are updated and available");
    CHECK(problem(head + "2, desiredNumberScheduled: 0}}").empty());
    CHECK(problem("{kind: DaemonSet, metadata: {name: a}, spec: {updateStrategy: {type: OnDelete}}, status: "
                  "{desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}") ==
          "DaemonSet a: 1 of 2 Pods are updated and available (updateStrategy OnDelete: delete the older ones)");
    CHECK_FALSE(problem("{kind: DaemonSet, metadata: {name: a, generation: 1}}").empty());
}

TEST_CASE("claims, load balancers, ReplicaSets and Modules are not ready because they exist") {
    const std::string claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ns}";
    CHECK(problem(claim + ", status: {phase: Bound}}").empty());
    CHECK(problem(claim + "}") == "PersistentVolumeClaim ns/c is in phase Pending, expected Bound");
    CHECK_THROWS_WITH_AS(static_cast<void>(problem(claim + ", status: {phase: Lost}}")),
                         "PersistentVolumeClaim ns/c has lost its PersistentVolume", Error);

    const std::string service = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: ";
    CHECK(problem(service + "ClusterIP}}").empty());
    CHECK(problem(service + "LoadBalancer}, status: {loadBalancer: {}}}") ==
          "Service s: its load balancer has no address yet");
    CHECK(problem(service + "LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}").empty());
    CHECK(problem(service + "LoadBalancer, externalIPs: [192.0.2.1]}}").empty());
    CHECK(problem("{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: s}, status: {conditions: "
                  "[{type: Ready, status: 'True'}]}}")
              .empty());

    const std::string set = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, generation: 2}, spec: "
                            "{replicas: 2}, status: {observedGeneration: ";
    CHECK(problem(set + "1, availableReplicas: 2}}") == "ReplicaSet r: its controller has not seen it yet");
    CHECK(problem(set + "2, availableReplicas: 1}}") == "ReplicaSet r: 1 of 2 Pods are available");
    CHECK(problem(set + "2, availableReplicas: 2}}").empty());

    const std::string module = "{apiVersion: kmm.sigs.x-k8s.io/v1beta1, kind: Module, metadata: {name: m}, spec: ";
    CHECK(problem(module + "{moduleLoader: {}}}") == "Module m: its controller has not seen it yet");
    CHECK(problem(module + "{moduleLoader: {}}, status: {moduleLoader: {nodesMatchingSelectorNumber: 3, desiredNumber: "
                           "2, availableNumber: 2}}}") == "Module m: moduleLoader is available on 2 of 3 nodes");
    CHECK(problem(module + "{moduleLoader: {}}, status: {moduleLoader: {nodesMatchingSelectorNumber: 3, desiredNumber: "
                           "3, availableNumber: 3}}}")
              .empty());
    CHECK(problem(module + "{devicePlugin: {}}, status: {devicePlugin: {nodesMatchingSelectorNumber: 1}}}") ==
          "Module m: devicePlugin is available on 0 of 1 node");
}

TEST_CASE("a Deployment is ready when no Pod of before is left: those that are available may be the old ones") {
    const std::string head =
        "{kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, "
        "updatedReplicas: 2, ";
    CHECK(problem(head + "availableReplicas: 2, replicas: 2}}").empty());
    CHECK(problem(head + "availableReplicas: 2, replicas: 4}}") == "Deployment a: 2 Pods of before are still there");
    CHECK_FALSE(problem(head + "availableReplicas: 1, replicas: 2}}").empty());
}

TEST_CASE("a StatefulSet is ready without the Pods below its partition, which are to stay as they are") {
    const auto set = [](const char* partition, const char* status) {
        return std::string("{kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3, updateStrategy: "
                           "{rollingUpdate: {partition: ") +
               partition + "}}}, status: {replicas: 3, " + status + "}}";
    };
    CHECK(problem(set("2", "updatedReplicas: 1, readyReplicas: 3")).empty());
    CHECK(problem(set("0", "updatedReplicas: 1, readyReplicas: 3")) ==
          "StatefulSet a: 1 of 3 Pods are updated and available");
    CHECK_FALSE(problem(set("2", "updatedReplicas: 1, readyReplicas: 2")).empty());
    CHECK(problem(set("5", "updatedReplicas: 0, readyReplicas: 3")).empty());
}

TEST_CASE("a StatefulSet with minReadySeconds needs available Pods; its partition is an ordinal") {
    const std::string head = "{kind: StatefulSet, metadata: {name: a}, spec: {replicas: 2, ";
    CHECK_FALSE(problem(head + "minReadySeconds: 30}, status: {replicas: 2, updatedReplicas: 2, readyReplicas: 2, "
                               "availableReplicas: 0}}")
                    .empty());
    CHECK(problem(head + "minReadySeconds: 30}, status: {replicas: 2, updatedReplicas: 2, readyReplicas: 2, "
                         "availableReplicas: 2}}")
              .empty());
    const std::string later = head + "ordinals: {start: 5}, updateStrategy: {rollingUpdate: {partition: 6}}}, ";
    CHECK_FALSE(problem(later + "status: {replicas: 2, updatedReplicas: 0, readyReplicas: 2}}").empty());
    CHECK(problem(later + "status: {replicas: 2, updatedReplicas: 1, readyReplicas: 2}}").empty());
}

TEST_CASE("what does not go on by itself is said") {
    CHECK(problem("{kind: Deployment, metadata: {name: a}, spec: {paused: true}, status: {replicas: 1, "
                  "availableReplicas: 1}}") ==
          "Deployment a: 0 of 1 Pods are updated and available (spec.paused: no Pod is replaced)");
    CHECK(problem("{kind: Job, metadata: {name: a}, spec: {suspend: true}}") ==
          "Job a is not complete (spec.suspend: it does not run)");
}

TEST_CASE("a status of before the last change says nothing; some kinds need their condition") {
    const std::string stale = "{kind: Driver, metadata: {name: a, generation: 2}, status: {";
    const std::string ready = "conditions: [{type: Ready, status: 'True'";
    const std::string unseen = "Driver a: its controller has not seen it yet";
    CHECK(problem(stale + "observedGeneration: 1, " + ready + "}]}}") == unseen);
    CHECK(problem(stale + ready + ", observedGeneration: 1}]}}") == unseen);
    CHECK(problem(stale + "observedGeneration: 2, " + ready + ", observedGeneration: 2}]}}").empty());
    CHECK(problem(stale + ready + "}]}}").empty());
    const std::string service = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}";
    CHECK(problem(service + "}") == "APIService a: condition Available is not set yet");
    CHECK(problem(service + ", status: {conditions: [{type: Available, status: 'True'}]}}").empty());
    CHECK(problem("{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}}") ==
          "Certificate a: condition Ready is not set yet");
    const std::string run = "{apiVersion: shipwright.io/v1beta1, kind: BuildRun, metadata: {name: a}";
    const auto with = [&](const char* status) {
        return run + ", status: {conditions: [{type: Succeeded, status: " + status + "}]}}";
    };
    CHECK_FALSE(problem(run + "}").empty());
    CHECK_FALSE(problem(with("Unknown")).empty());
    CHECK(problem(with("'True'")).empty());
    CHECK_THROWS_AS(static_cast<void>(problem(with("'False'"))), Error);
}

TEST_CASE("a Pod is ready when it has succeeded, a Job when it is complete; those that failed never will be") {
    CHECK(problem("{kind: Pod, metadata: {name: a}, status: {phase: Succeeded}}").empty());
    CHECK_FALSE(problem("{kind: Pod, metadata: {name: a}, status: {phase: Running}}").empty());
    CHECK_THROWS_AS(static_cast<void>(problem("{kind: Pod, metadata: {name: a}, status: {phase: Failed}}")), Error);
    CHECK(
        problem("{kind: Job, metadata: {name: a}, status: {conditions: [{type: Complete, status: 'True'}]}}").empty());
    CHECK_FALSE(problem("{kind: Job, metadata: {name: a}, status: {active: 1}}").empty());
    CHECK_THROWS_AS(static_cast<void>(problem(
                        "{kind: Job, metadata: {name: a}, status: {conditions: [{type: Failed, status: 'True'}]}}")),
                    Error);
}

TEST_CASE("a Build of what the BuildConfig said before does not count") {
    const auto config = [](const std::string& spec) {
        return "{kind: BuildConfig, metadata: {name: c, namespace: ns, uid: u1}, spec: {" + spec + "}}";
    };
    const auto built = [](const std::string& phase, const std::string& spec) {
        auto made = build(1, phase);
        made.set("spec", yaml("{" + spec + "}"));
        return std::vector<Node>{made};
    };
    const std::string output = "output: {to: {name: 'driver:1'}}, strategy: {dockerStrategy: {buildArgs: "
                               "[{name: V, value: '1'}], from: {kind: ";
    const auto old = "source: {git: {uri: u, ref: v1, httpProxy: p}}, " + output + "DockerImage}}}";
    const auto now = "source: {git: {uri: u, ref: v1}}, " + output + "ImageStreamTag}}}";
    CHECK(problem(config(now), built("Complete", old)).empty());
    const auto changed = [&](const std::string& from, const std::string& to) {
        auto text = now;
        return config(text.replace(text.find(from), from.size(), to));
    };
    const auto hint = [](const char* member) {
        return std::string("BuildConfig ns/c: ") + member +
               " has changed since Build b-1 was started: oc start-build c -n ns";
    };
    CHECK(problem(changed("driver:1", "driver:2"), built("Complete", old)) == hint("spec.output"));
    CHECK(problem(changed("ref: v1", "ref: v2"), built("Failed", old)) == hint("spec.source"));
    CHECK(problem(changed("value: '1'", "value: '2'"), built("Complete", old)) == hint("spec.strategy"));
    CHECK(problem(config("source: {dockerfile: a}"), built("Complete", "source: {dockerfile: b, binary: {}}")).empty());
}

TEST_CASE("of a BuildConfig the newest Build counts") {
    const std::string config =
        "{kind: BuildConfig, metadata: {name: c, namespace: n, uid: u1}, status: {lastVersion: 2}}";
    CHECK(problem(config, {build(1, "Failed"), build(2, "Complete")}).empty());
    CHECK_FALSE(problem(config, {build(1, "Complete")}).empty());
    CHECK_FALSE(problem(config, {build(1, "Complete"), build(2, "Running")}).empty());
    CHECK_FALSE(problem(config, {}).empty());
    CHECK_THROWS_AS(static_cast<void>(problem(config, {build(1, "Complete"), build(2, "Failed")})), Error);
}

TEST_CASE("other kinds are ready when they exist and no condition denies it") {
    CHECK(problem("{kind: Secret, metadata: {name: a}}").empty());
    CHECK(problem("{kind: Certificate, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'True'}]}}")
              .empty());
    CHECK(problem("{kind: Certificate, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False', "
                  "message: no issuer}]}}") == "Certificate a: condition Ready is False: no issuer");
    CHECK_FALSE(problem("{kind: Secret, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}}").empty());
    CHECK_FALSE(problem("{kind: CustomResourceDefinition, metadata: {name: a}}").empty());
    CHECK_FALSE(problem("{kind: Namespace, metadata: {name: a}, status: {phase: Terminating}}").empty());
}

TEST_CASE("what is waited for, and which logs") {
    CHECK(is_gated(yaml("{kind: Job, metadata: {annotations: {helm.sh/hook: pre-install}}}")));
    CHECK(is_gated(yaml("{kind: DaemonSet, metadata: {annotations: {specialresource.openshift.io/wait: 'true'}}}")));
    CHECK_FALSE(
        is_gated(yaml("{kind: DaemonSet, metadata: {annotations: {specialresource.openshift.io/wait: 'false'}}}")));
    CHECK(is_gated(yaml("{kind: CustomResourceDefinition, metadata: {name: a}}")));
    const auto with = [](const std::string& kind, const std::string& pattern) {
        return yaml("{kind: " + kind +
                    ", metadata: {name: a, annotations: {specialresource.openshift.io/wait-for-logs: '" + pattern +
                    "'}}}");
    };
    CHECK(log_pattern_fault(with("DaemonSet", "done|ok")).empty());
    CHECK_FALSE(log_pattern_fault(with("DaemonSet", "(")).empty());
    CHECK_FALSE(log_pattern_fault(with("ConfigMap", "done")).empty());
    CHECK(log_matches("modules? loaded$", "module loaded"));
    CHECK_FALSE(log_matches("loaded", "loaded" + std::string(100, '.')));
    CHECK(log_matches("loaded", "loaded" + std::string(94, '.')));
}

TEST_CASE("how many Pods there must be before their logs count") {
    CHECK(wanted_pods(yaml("{kind: DaemonSet, status: {desiredNumberScheduled: 3}}")) == 3);
    CHECK(wanted_pods(yaml("{kind: DaemonSet}")) == 0);
    CHECK(wanted_pods(yaml("{kind: Deployment, spec: {replicas: 0}}")) == 0);
    CHECK(wanted_pods(yaml("{kind: StatefulSet, spec: {replicas: 2}}")) == 2);
    CHECK(wanted_pods(yaml("{kind: Deployment, spec: {}}")) == 1);
    CHECK(wanted_pods(yaml("{kind: Job, spec: {}}")) == 1);
}

TEST_CASE("a copy for a kernel whose nodes lack the label of the kernel covers nothing") {
    const auto set = yaml(
        "{spec: {template: {spec: {nodeSelector: {gpu: 'yes', feature.node.kubernetes.io/kernel-version.full: k1}}}}}");
    const auto node = [](const std::string& name, const std::string& kernel, const std::string& labels) {
        return yaml("{metadata: {name: " + name + ", labels: {" + labels +
                    "}}, status: {nodeInfo: {kernelVersion: " + kernel + "}}}");
    };
    const std::vector<Node> nodes{node("a", "k1", "gpu: 'yes'"),
                                  node("b", "k1", "gpu: 'yes', feature.node.kubernetes.io/kernel-version.full: k1"),
                                  node("c", "k1", "gpu: 'no'"), node("d", "k2", "gpu: 'yes'")};
    CHECK(nodes_without_kernel_label(set, "k1", nodes) == std::vector<std::string>{"a"});
}

TEST_CASE("every reason of kubelets why an image is missing is named, others are not") {
    const auto text = [](const std::string& reason) {
        return missing_image({yaml("{metadata: {namespace: demo, name: a-1}, status: {initContainerStatuses: [{image: "
                                   "'r/a:1-', state: {waiting: {reason: " + reason + ", message: m}}}]}}")});
    };
    for (const std::string reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                                     "SignatureValidationFailed", "RegistryUnavailable", "ImageInspectError"})
        CHECK(text(reason) == "image r/a:1- of Pod demo/a-1 cannot be pulled: " + reason + ": m");
    CHECK(text("PodInitializing").empty());
}

}
