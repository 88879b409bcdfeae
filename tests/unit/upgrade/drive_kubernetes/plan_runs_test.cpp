// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "upgrade/drive_kubernetes/agent.hpp"
#include "upgrade/drive_kubernetes/plan_runs.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::drive;
using kubernetes::Step;
using kubernetes::Version;

namespace {

Version v(const char* text) { return *Version::parse(text); }
Step control_planes(const char* version) { return {Step::Part::control_planes, v(version)}; }
Step kubelets(const char* version) { return {Step::Part::kubelets, v(version)}; }

kubernetes::Observation cluster_of(const char* control_plane, const char* kubelet,
                                   std::initializer_list<const char*> masters,
                                   std::initializer_list<const char*> workers) {
    kubernetes::Observation seen;
    for (const auto* name : masters) {
        seen.control_plane_nodes.emplace_back(name);
        for (const auto component : kubernetes::k_components) {
            kubernetes::Running running;
            running.component = component;
            running.node = name;
            running.version = v(control_plane);
            seen.control_plane.push_back(running);
        }
    }
    for (const auto& names : {masters, workers})
        for (const auto* name : names) {
            kubernetes::Running running;
            running.component = "kubelet";
            running.node = name;
            running.version = v(kubelet);
            seen.kubelets.push_back(running);
        }
    return seen;
}

}  // namespace

TEST_SUITE("drive::kubernetes") {

TEST_CASE("kubelets that follow the control planes at once go with them in one run") {
    const auto hops = [](std::vector<Step> steps) { return hops_of({std::move(steps), "", ""}); };
    CHECK(hops({control_planes("v1.35.4"), kubelets("v1.35.4")}) == std::vector<Hop>{{"v1.35.4", "v1.35.4"}});
    CHECK(hops({control_planes("v1.34.4"), control_planes("v1.35.4"), kubelets("v1.35.4")}) ==
          std::vector<Hop>{{"v1.34.4", ""}, {"v1.35.4", "v1.35.4"}});
    CHECK(hops({kubelets("v1.34.4"), control_planes("v1.35.4")}) == std::vector<Hop>{{"", "v1.34.4"}, {"v1.35.4", ""}});
    CHECK(hops({}).empty());
    CHECK(to_string(Hop{"v1.35.4", "v1.34.4"}) == "control planes v1.35.4, kubelets v1.34.4");
}

TEST_CASE("a run has control planes first, then the other nodes, each by name; workers only where kubelets change") {
    const auto seen = cluster_of("v1.34.4", "v1.33.2", {"m2", "m1"}, {"w2", "a1"});
    KubernetesRequest request;
    request.subject.target = "v1.35.4";
    const auto names = [](const upgrade::Run& run) {
        std::vector<std::string> all;
        for (const auto& node : run.nodes) all.push_back(node.name);
        return all;
    };
    const auto both = plan_run(request, seen, {{"v1.35.4", "v1.35.4"}});
    CHECK(names(both) == std::vector<std::string>{"m1", "m2", "a1", "w2"});
    CHECK(both.to_version == "v1.35.4");
    CHECK(upgrade::kubernetes::read(both.nodes[0]).from_control_plane == "v1.34.4");
    CHECK(both.nodes[0].from_version == "v1.33.2");
    CHECK(upgrade::kubernetes::read(both.nodes[0]).kept_kubelet.empty());
    CHECK_FALSE(upgrade::kubernetes::is_control_plane(both.nodes[2]));

    request.etcd_leader = "m1";
    CHECK(names(plan_run(request, seen, {{"v1.35.4", "v1.35.4"}})) == std::vector<std::string>{"m2", "m1", "a1", "w2"});
    request.etcd_leader = "a1";  // not a control plane
    CHECK(names(plan_run(request, seen, {{"v1.35.4", "v1.35.4"}})) == std::vector<std::string>{"m1", "m2", "a1", "w2"});

    const auto first = plan_run(request, seen, {{"v1.34.9", ""}, {"v1.35.4", "v1.35.4"}});
    CHECK(names(first) == std::vector<std::string>{"m1", "m2"});
    CHECK(first.from_version == "v1.34.4");
    CHECK(first.nodes[0].current_version == "v1.34.4");
    CHECK(upgrade::kubernetes::read(first.nodes[0]).kept_kubelet == "v1.33.2");
    CHECK(upgrade::kubernetes::subject_of(first).rest ==
          std::vector<std::string>{"control planes v1.35.4, kubelets v1.35.4"});
}

TEST_CASE("nothing to do is said only where every version is the target's") {
    kubernetes::Catalogue catalogue;
    for (const auto* text : {"v1.35.3", "v1.35.4", "v1.35.5"}) {
        kubernetes::VersionEntry entry;
        entry.version = v(text);
        catalogue.versions.push_back(entry);
    }
    catalogue.versions[1].downgrade_to = {v("v1.35.3")};
    const auto path = [&](const kubernetes::Observation& seen, const char* target) {
        return path_to(catalogue, seen, v(target)).steps;
    };
    CHECK(path(cluster_of("v1.35.4", "v1.35.4", {"m1"}, {"w1"}), "v1.35.4").empty());
    // A way back: kubelets first; once they are there, the control planes alone.
    CHECK(path(cluster_of("v1.35.4", "v1.35.4", {"m1"}, {"w1"}), "v1.35.3") ==
          std::vector<Step>{kubelets("v1.35.3"), control_planes("v1.35.3")});
    CHECK(path(cluster_of("v1.35.4", "v1.35.3", {"m1"}, {"w1"}), "v1.35.3") ==
          std::vector<Step>{control_planes("v1.35.3")});
    // One of two control planes is back already.
    auto mixed = cluster_of("v1.35.4", "v1.35.3", {"m1", "m2"}, {});
    for (auto& running : mixed.control_plane)
        if (running.node == "m1") running.version = v("v1.35.3");
    CHECK(path(mixed, "v1.35.3") == std::vector<Step>{control_planes("v1.35.3")});
    CHECK(path(mixed, "v1.35.4") == std::vector<Step>{control_planes("v1.35.4"), kubelets("v1.35.4")});
    // A kubelet of another patch is no success.
    CHECK(path(cluster_of("v1.35.4", "v1.35.5", {"m1"}, {}), "v1.35.4") == std::vector<Step>{kubelets("v1.35.4")});
    CHECK_THROWS_AS(static_cast<void>(path(cluster_of("v1.35.4", "v1.35.4", {"m1"}, {}), "v1.35.9")), Error);
    CHECK_THROWS_AS(static_cast<void>(path(cluster_of("v1.35.5", "v1.35.5", {"m1"}, {}), "v1.35.4")), Error);
}

TEST_CASE("a node's facts: the lowest of its manifests counts, and none if one has no version") {
    const auto sight = [](const char* text) {
        Diagnostics faults;
        return read_sight(value::read_json(text, "facts", faults).front().root);
    };
    const auto seen = sight(
        R"({"node": "cp1", "bootID": "b", "controlPlane": true, "manifestsWhole": true, "kubelet": {"running": "v1.34.4"}, "manifests": [
        {"component": "etcd", "version": "3.6.5-0"}, {"component": "kube-apiserver", "version": "v1.35.4"},
        {"component": "kube-controller-manager", "version": "v1.34.4"}, {"component": "kube-scheduler", "version": "v1.35.4"}]})");
    CHECK(seen.node == "cp1");
    CHECK(seen.control_plane == v("v1.34.4"));
    CHECK(seen.kubelet == v("v1.34.4"));
    CHECK(seen.are_manifests_whole == true);
    const auto gap = sight(
        R"({"node": null, "controlPlane": true, "manifestsWhole": false, "kubelet": {"running": null}, "manifests": [
        {"component": "kube-apiserver", "version": null}, {"component": "kube-controller-manager", "version": "v1.34.4"}, {"component": "kube-scheduler", "version": "v1.35.4"}]})");
    CHECK_FALSE(gap.node);
    CHECK_FALSE(gap.control_plane);
    CHECK_FALSE(gap.kubelet);
    CHECK(gap.are_manifests_whole == false);
}


namespace {

/// Replies of its list, then a step's document.
struct Replies final : cluster::NodeRunner {
    explicit Replies(std::vector<cluster::WorkerReply> given) : replies(std::move(given)) {}
    std::vector<cluster::WorkerReply> replies;
    std::size_t calls = 0;
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall&) override {
        if (calls++ < replies.size()) return replies[calls - 1];
        cluster::WorkerReply reply;
        reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "KubernetesNodeStep"}});
        return reply;
    }
    [[nodiscard]] std::string describe() const override { return "fake"; }
};

struct HastyClock final : sys::Clock {
    std::chrono::milliseconds time{0};
    [[nodiscard]] std::int64_t now_unix() const override { return 0; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return time; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        time += duration;
        return true;
    }
};

/// Takes a step, which is answered by `runner`; what was told on the way.
std::vector<std::string> told_of_step(Replies& runner) {
    HastyClock clock;
    std::vector<std::string> told;
    NodeAgent agent(runner, clock, [] { return false; },
                    [&](const std::string&, const std::string& text) { told.push_back(text); });
    static_cast<void>(agent.step("cp1", {"control-plane"}, Deadline(clock, std::chrono::minutes(10))));
    return told;
}

cluster::WorkerReply refused(const std::string& code) {
    cluster::WorkerReply reply;
    reply.exit_code = 143;
    reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                           {"kind", "Error"},
                                           {"code", code},
                                           {"message", "interrupted; the job goes on"}});
    return reply;
}

cluster::WorkerReply ended(cluster::CallEnd end, int exit_code = 0, bool started = true) {
    cluster::WorkerReply reply;
    reply.end = end;
    reply.exit_code = exit_code;
    reply.started = started;
    return reply;
}

}  // namespace

TEST_CASE("a step whose worker was stopped on the node goes on there: it is asked for again") {
    Replies runner({refused("interrupted"), refused("interrupted")});
    CHECK(told_of_step(runner).size() == 1);
    CHECK(runner.calls == 3);
    Replies failed({refused("kubeadm-failed")});
    CHECK_THROWS_AS(told_of_step(failed), Error);
}

TEST_CASE("a step that has never begun does not go on: the node is asked again, and it is said once") {
    const auto gone = ended(cluster::CallEnd::unreachable), shell = ended(cluster::CallEnd::completed, 1, false);
    Replies runner({gone, gone, gone, shell});
    CHECK(told_of_step(runner) ==
          std::vector<std::string>{"node cp1 cannot be reached; it is asked again",
                                   "node cp1: the login shell ended with exit code 1 before it started kmm-worker; it "
                                   "is asked again"});
    CHECK(runner.calls == 5);
    Replies lost({ended(cluster::CallEnd::unknown), gone});
    CHECK(told_of_step(lost).back() == "node cp1 cannot be reached; the step goes on there and is asked for again");
}

TEST_CASE("a node that cannot start kmm-worker ends the step at once") {
    Replies runner({ended(cluster::CallEnd::completed, 127)});
    CHECK_THROWS_WITH_AS(told_of_step(runner), "node cp1: kmm-worker cannot be run there", Error);
    CHECK(runner.calls == 1);
}

}
