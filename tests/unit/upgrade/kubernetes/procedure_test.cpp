// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "unit/upgrade/engine/make_run.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/kubernetes/subject.hpp"

using namespace kmm;
using namespace kmm::upgrade;
namespace k8s = kmm::upgrade::kubernetes;

namespace {

/// Control planes cp1.. and workers w1.. at v1.34.4, on the way to v1.35.4.
Run cluster_run(int control_planes, int workers, const Options& options = {},
                const Procedure& procedure = k8s::procedure_kubernetes()) {
    Run run;
    run.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
    run.procedure = procedure.table().name();
    run.rules = &procedure;
    run.state = "upgrade-started";
    run.from_version = "v1.34.4";
    run.to_version = "v1.35.4";
    run.options = options;
    k8s::Subject subject;
    subject.target = subject.control_plane = subject.kubelet = "v1.35.4";
    set_subject(run, subject);
    for (int index = 0; index < control_planes + workers; ++index) {
        k8s::Node node;
        node.is_control_plane = index < control_planes;
        node.name =
            node.is_control_plane ? "cp" + std::to_string(index + 1) : "w" + std::to_string(index + 1 - control_planes);
        node.from_version = node.current_version = "v1.34.4";
        if (node.is_control_plane) node.control_plane = node.from_control_plane = "v1.34.4";
        run.nodes.push_back(record_of(std::move(node)));
    }
    return run;
}

std::vector<std::string> words(const std::vector<NodeStep>& steps) {
    std::vector<std::string> all;
    for (const auto& step : steps) all.push_back((step.node.empty() ? "" : step.node + " ") + step.step);
    return all;
}

/// States of the run, in the order in which it came into them.
std::vector<std::string> states(const test::Journal& journal) {
    std::vector<std::string> all;
    for (const auto& entry : journal.entries) {
        const auto* node = entry.payload.find("node");
        const auto to = entry.payload.get_string({"to"});
        if ((node == nullptr || node->text().empty()) && !to.empty()) all.push_back(to);
    }
    return all;
}

}  // namespace

TEST_SUITE("upgrade::kubernetes") {

TEST_CASE("an upgrade passes through the states of StarlingX, in order") {
    test::Journal journal(cluster_run(2, 1));
    const auto steps = words(journal.walk());
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(states(journal) == std::vector<std::string>{"downloading-images", "downloaded-images",
                                                      "upgrading-first-master", "upgraded-first-master",
                                                      "upgrading-second-master", "upgraded-second-master",
                                                      "upgrading-kubelets", "upgraded-kubelets", "upgrade-complete"});
    CHECK(steps == std::vector<std::string>{"cp1 prepare", "cp2 prepare", "w1 prepare", "cp1 control-plane",
                                            "cp2 control-plane", "cp1 kubelet", "cp1 validate", "cp2 kubelet",
                                            "cp2 validate", "w1 kubelet", "w1 validate"});
}

TEST_CASE("networking is a step of the run, before or after the first control plane") {
    for (const bool is_first : {false, true}) {
        CAPTURE(is_first);
        auto run = cluster_run(1, 0, {}, is_first ? k8s::procedure_networking_first() : k8s::procedure_kubernetes());
        auto subject = k8s::subject_of(run);
        subject.networking = "/srv/networking";
        set_subject(run, subject);
        test::Journal journal(run);
        const auto steps = words(journal.walk());
        CHECK(journal.run.state == "upgrade-complete");
        const auto at = [&](const char* step) { return std::find(steps.begin(), steps.end(), step) - steps.begin(); };
        CHECK((at("networking") < at("cp1 control-plane")) == is_first);
        CHECK(at("networking") < static_cast<std::ptrdiff_t>(steps.size()));
    }
}

TEST_CASE("a way back is offered where there is one") {
    struct Row { const char* what; bool is_back; };
    for (const auto& row : {Row{"nothing is known of etcd", true}, Row{"etcd stays", true}, Row{"etcd is newer", false},
                            Row{"another kubelet is newer", false}, Row{"the minor stays", true}}) {
        CAPTURE(row.what);
        const std::string what = row.what;
        auto run = cluster_run(2, 0);
        auto subject = k8s::subject_of(run);
        auto done = k8s::read(run.nodes[0]), failed = k8s::read(run.nodes[1]);
        failed.state = "upgrading-control-plane-failed";
        failed.touched = 1;
        failed.backup = "b";
        if (what.starts_with("etcd")) failed.etcd = failed.etcd_now = "3.6.5-0";
        if (what == "etcd is newer") failed.etcd_now = "3.6.6-0";
        if (what == "another kubelet is newer" || what == "the minor stays") {
            done.state = "done";
            done.touched = 1;
        }
        if (what == "the minor stays") {
            subject.target = subject.control_plane = subject.kubelet = "v1.34.6";
            set_subject(run, subject);
        }
        run.nodes = {record_of(done), record_of(failed)};
        CHECK(next_commands(run) ==
              std::vector<std::string>{"kmm-upgrade retry cp2", row.is_back ? "kmm-upgrade abort --rollback current"
                                                                            : "kmm-upgrade abort"});
    }
}

TEST_CASE("the command for left-out nodes has what a start asks for") {
    Options options;
    options.drain = true;
    auto run = cluster_run(1, 1, options);
    auto subject = k8s::subject_of(run);
    subject.way = "packages";
    set_subject(run, subject);
    const std::string start = "kmm-upgrade start kubernetes v1.35.4 ";
    CHECK(describe(run).again_for_left_out == start + "--switch packages --ignore-checks versions-uniform");
    subject.way = "binaries";
    subject.directory = "/srv/my binaries";
    subject.versions_file = "/srv/versions.yaml";
    subject.is_without_snapshot = true;
    subject.ignored_checks = {"api-health", "versions-uniform"};
    set_subject(run, subject);
    run.options.drain = false;
    run.options.via = Via::self;
    run.options.worker_image = "r/worker@sha256:0";
    CHECK(describe(run).again_for_left_out ==
          start + "--switch binaries --from '/srv/my binaries' --via self --worker-image r/worker@sha256:0 --versions "
                  "/srv/versions.yaml --no-etcd-snapshot --no-drain --ignore-checks api-health,versions-uniform");
}

TEST_CASE("a single control plane has no second-master") {
    test::Journal journal(cluster_run(1, 1));
    static_cast<void>(journal.walk());
    const auto seen = states(journal);
    CHECK(std::find(seen.begin(), seen.end(), "upgrading-second-master") == seen.end());
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("control planes go one at a time, whatever --max-unavailable says; workers as many as it says") {
    Options options;
    options.max_unavailable = 3;
    options.drain = true;
    auto run = cluster_run(3, 4, options);
    test::Journal journal(run);
    std::size_t most_control_planes = 0, most_workers = 0;
    for (;;) {
        const auto next = next_steps(journal.run, {});
        if (next.next == Next::finished || next.next == Next::pause) break;
        if (next.next == Next::move) {
            journal.add(next.event);
            continue;
        }
        const bool prepares = journal.run.state == "downloading-images";
        std::size_t control_planes = 0, workers = 0;
        for (const auto& step : next.steps) (step.node.starts_with("cp") ? control_planes : workers) += 1;
        if (!prepares) {
            most_control_planes = std::max(most_control_planes, control_planes);
            most_workers = std::max(most_workers, workers);
            CHECK((control_planes == 0 || workers == 0));
        }
        for (const auto& step : next.steps) journal.begin(step);
        for (const auto& step : next.steps) journal.end(step, true);
    }
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(most_control_planes == 1);
    CHECK(most_workers == 3);
}

TEST_CASE("a node that fails goes back to where it last rested, and the run goes on from there") {
    struct Row {
        const char* step;
        const char* restart;
    };
    for (const auto& [step, restart] :
         {Row{"prepare", "pending"}, Row{"control-plane", "prepared"}, Row{"kubelet", "control-plane-upgraded"},
          Row{"validate", "control-plane-upgraded"}}) {
        CAPTURE(step);
        test::Journal journal(cluster_run(2, 1));
        static_cast<void>(journal.walk([&](const NodeStep& each) { return each.node == "cp1" && each.step == step; }));
        REQUIRE(journal.run.paused);
        const auto& failed = *journal.run.find("cp1");
        CHECK(is_failed_node_state(failed.state));
        CHECK(procedure_of(journal.run).restart_state(journal.run, failed) == restart);
        // No other node was begun in this stage.
        CHECK(journal.run.find("cp2")->step != step);
        journal.node(EventKind::retry, "cp1", "", restart);
        journal.decision(EventKind::resumed);
        static_cast<void>(journal.walk());
        CHECK(journal.run.state == "upgrade-complete");
        CHECK(std::all_of(journal.run.nodes.begin(), journal.run.nodes.end(),
                          [](const NodeRecord& node) { return node.state == "done"; }));
    }
}

TEST_CASE("runs of control planes alone, and of kubelets alone, leave the other stages out") {
    auto run = cluster_run(2, 0);
    auto subject = k8s::subject_of(run);
    subject.kubelet.clear();
    set_subject(run, subject);
    test::Journal control_planes(run);
    CHECK(words(control_planes.walk()) == std::vector<std::string>{"cp1 prepare", "cp2 prepare", "cp1 control-plane",
                                                                   "cp2 control-plane", "cp1 validate",
                                                                   "cp2 validate"});
    CHECK(control_planes.run.state == "upgrade-complete");

    run = cluster_run(1, 1);
    subject = k8s::subject_of(run);
    subject.control_plane.clear();
    set_subject(run, subject);
    test::Journal kubelets(run);
    CHECK(words(kubelets.walk()) == std::vector<std::string>{"cp1 prepare", "w1 prepare", "cp1 kubelet", "cp1 validate",
                                                             "w1 kubelet", "w1 validate"});
    CHECK(procedure_of(kubelets.run).restart_state(kubelets.run, *kubelets.run.find("cp1")) == "prepared");
}

TEST_CASE("a node whose kubelet is there already is neither drained nor changed") {
    Options options;
    options.drain = true;
    auto run = cluster_run(1, 1, options);
    run.find("w1")->current_version = "v1.35.4";
    test::Journal journal(run);
    const auto steps = words(journal.walk());
    CHECK(std::find(steps.begin(), steps.end(), "w1 cordon") == steps.end());
    CHECK(std::find(steps.begin(), steps.end(), "w1 validate") != steps.end());
    CHECK(std::find(steps.begin(), steps.end(), "cp1 drain") != steps.end());
}

TEST_CASE("a control plane cannot be skipped, a worker can") {
    const auto run = cluster_run(1, 1);
    CHECK(!procedure_of(run).skip_refusal(run, *run.find("cp1")).empty());
    CHECK(procedure_of(run).skip_refusal(run, *run.find("w1")).empty());
}

TEST_CASE("workers go back before control planes, the first one last, in whatever order nodes were begun") {
    auto run = cluster_run(3, 2);
    std::uint64_t touched = 0;
    for (const auto* name : {"w1", "cp1", "cp3", "w2", "cp2"})
        std::find_if(run.nodes.begin(), run.nodes.end(), [&](const auto& node) { return node.name == name; })
            ->touched = ++touched;
    CHECK(rollback_nodes(run, Rollback::all) == std::vector<std::string>{"w2", "w1", "cp2", "cp3", "cp1"});
    CHECK(rollback_nodes(run, Rollback::none).empty());
}

TEST_CASE("what a run keeps is read back, and a header without it is damaged") {
    auto run = cluster_run(1, 1);
    k8s::Subject subject{"v1.36.1",
                         "v1.35.4",
                         "v1.35.4",
                         {"control planes v1.36.1, kubelets v1.36.1"},
                         "binaries",
                         "/srv/k8s",
                         "",
                         {"--skip-phases", "addon/kube-proxy"},
                         "Swap,Mem",
                         true,
                         {"drain-local-data"},
                         "/srv/networking",
                         "/etc/versions.yaml",
                         "sw-patch query",
                         {"KUBE.1"},
                         {"KUBE.2"},
                         "24h",
                         {"prod", "user:jane"},
                         "/srv/apps",
                         "registry.example/busybox:1.36",
                         "/srv/hooks",
                         5};
    set_subject(run, subject);
    const auto again = decode_run(encode(run), k8s::procedures());
    CHECK(k8s::subject_of(again) == subject);
    CHECK(k8s::read(*again.find("cp1")).from_control_plane == "v1.34.4");
    CHECK(describe(again).follows == subject.rest);
    CHECK(describe(again).commands ==
          std::vector<std::pair<std::string, std::string>>{
              {"patch-query", "sw-patch query"}, {"app-check", "/srv/apps"}, {"hook-dir", "/srv/hooks"}});
    run.subject = {};
    CHECK_THROWS_AS(static_cast<void>(decode_run(encode(run), k8s::procedures())), Error);
}

TEST_CASE("programs and manifests get one version before the run, also where kubelets stayed behind") {
    Header run;
    run.from_version = "v1.34.4";
    CHECK(k8s::version_before(run) == "v1.34.4");
    run.from_version = "v1.32.13,v1.33.13";
    CHECK(k8s::version_before(run) == "v1.33.13");
    run.from_version = "";
    CHECK(k8s::version_before(run).empty());
}

TEST_CASE("every transitory state has a failed twin that a person can leave") {
    for (const auto* procedure : k8s::procedures())
        for (const auto scope : {Scope::run, Scope::node})
            for (const auto& state : procedure->table().states(scope)) {
                if (procedure->table().kind(scope, state) != StateKind::transitory) continue;
                CAPTURE(state);
                CHECK(procedure->table().kind(scope, state + "-failed") == StateKind::failed);
            }
}

}
