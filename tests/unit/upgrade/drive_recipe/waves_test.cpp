// SPDX-License-Identifier: Apache-2.0
// Two resources of one wave and one that needs both; the program dies at every record and every request.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "unit/upgrade/drive_recipe/recipe_life.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace rc = kmm::upgrade::recipe;

namespace {

/// Its Pods become ready once a Job exists.
Node slow_driver() {
    return json(
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: driver, namespace: demo, annotations: "
        "{specialresource.openshift.io/wait: 'true'}}, spec: {selector: {matchLabels: {app: driver}}, template: "
        "{metadata: {labels: {app: driver}}, spec: {containers: [{name: c, image: r/missing}]}}}}");
}

Node settings(const std::string& name) {
    return json("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: demo}}");
}

Node job() {
    return json(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: tools, namespace: demo, annotations: "
        "{specialresource.openshift.io/wait: 'true'}}, spec: {template: {spec: {containers: [{name: c, image: "
        "r/t}]}}}}");
}

/// Time stands while there is another thread to wait for; then it goes on by sleeping, which takes none.
class SharedClock final : public sys::Clock {
public:
    std::atomic<bool> runs{false};
    [[nodiscard]] std::int64_t now_unix() const override { return 1'790'000'000 + time_ / 1000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return std::chrono::milliseconds(time_); }
    bool sleep_for(std::chrono::milliseconds duration) override {
        if (runs || ++sleeps_ > k_sleeps_max) time_ += duration.count();
        else std::this_thread::sleep_for(std::chrono::microseconds(100));
        return true;
    }

private:
    static constexpr int k_sleeps_max = 100'000;  ///< a wait for what never comes fails in the end
    std::atomic<std::int64_t> time_{0};
    std::atomic<int> sleeps_{0};
};

/// "slow" gates until the last state of "quick" is applied; "main" needs both.
struct Waves : RecipeLife<SharedClock> {
    std::atomic<int> countdown{-1};  ///< points until the program dies; below 0: never
    std::atomic<int> points{0};
    std::atomic<bool> is_dead{false};
    bool has_job_;

    explicit Waves(bool has_job = true, bool has_waves = true) : has_job_(has_job) {
        api.put(json("{apiVersion: v1, kind: Node, metadata: {name: node-a}, status: {nodeInfo: {kernelVersion: 6}}}"));
        api.put(json("{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"));
        rc::Release release;
        release.recipe = "main";
        release.version = "1";
        release.lineage = "me";
        release.revision = 1;
        const auto add = [&](const std::string& resource, const std::string& state, const Node& object) {
            release.states.push_back({resource + "/" + state, resource,
                                      "specialresource.openshift.io/state-" + resource + "-" + state, {},
                                      {{"", object}}});
        };
        add("slow", "1000", slow_driver());
        add("slow", "2000", settings("slow"));
        add("quick", "1000", settings("quick"));
        if (has_job) add("quick", "2000", job());
        add("main", "1000", settings("main"));
        const auto client = this->client();
        ReleaseStore(*client, "kube-system").put(release);
        auto request = request_of(release, 600'000);
        clock.runs = !has_waves;
        if (has_waves) request.waves = {{"slow", 1}, {"quick", 1}, {"main", 2}};
        const auto run = rollout_run(request, release, nullptr);
        CHECK(run.options.max_unavailable == (has_waves ? 2 : 1));
        journal.begin(upgrade::encode(run));
        api.on_request = [this](const std::string&, bool) { point(); };
    }

    /// Nothing goes on in a process that is dead.
    void point() {
        ++points;
        if (is_dead) throw Killed{};
        if (countdown >= 0 && countdown-- == 0) {
            is_dead = true;
            throw Killed{};
        }
    }
    Ended go(std::optional<upgrade::Rollback> abort = std::nullopt) {
        is_dead = false;
        PointedJournal pointed(journal, [this](const Node* kept) {
            // Without its last state, nothing that "slow" waits for comes any more.
            if (kept != nullptr && !has_job_ && kept->get_string({"node"}) == "quick/1000" &&
                kept->get_string({"event"}) == "done" && kept->get_string({"step"}) == rc::k_step_gate)
                clock.runs = true;
            point();
        });
        return live(pointed, abort);
    }
    void check_complete() {
        const auto run = replayed();
        CHECK(run.state == "upgrade-complete");
        for (const auto& node : run.nodes) CHECK(node.state == "done");
        for (const auto* key : {"daemonsets/demo/driver", "configmaps/demo/slow", "configmaps/demo/quick",
                                "jobs/demo/tools", "configmaps/demo/main"})
            CHECK(api.objects.contains(key));
        const auto* labels = api.at("nodes//node-a").find_path({"metadata", "labels"});
        REQUIRE(labels != nullptr);
        CHECK(labels->members().size() == 5);
    }
    /// Of the journal: where a step of a state begins, or ends.
    [[nodiscard]] std::size_t place_of(const std::string& kind, const std::string& node,
                                       const std::string& step) const {
        for (std::size_t place = 0; place < journal.entries.size(); ++place) {
            const auto& entry = journal.entries[place];
            if (entry.get_string({"event"}) == kind && entry.get_string({"node"}) == node &&
                entry.get_string({"step"}) == step)
                return place;
        }
        return journal.entries.size();
    }
};

}  // namespace

TEST_SUITE("upgrade::drive_recipe waves") {

TEST_CASE("a slow gate does not hold another resource of its wave, and the next wave waits for both") {
    Waves waves;
    CHECK(waves.go() == Ended::complete);
    waves.check_complete();
    const auto slow_is_ready = waves.place_of("done", "slow/1000", "gate");
    CHECK(waves.place_of("intent", "quick/2000", "apply") < slow_is_ready);
    CHECK(waves.place_of("intent", "slow/2000", "apply") > slow_is_ready);
    const auto main_begins = waves.place_of("intent", "main/1000", "apply");
    CHECK(main_begins < waves.journal.entries.size());
    CHECK(main_begins > waves.place_of("done", "slow/2000", "gate"));
    CHECK(main_begins > waves.place_of("done", "quick/2000", "gate"));
}

TEST_CASE("a run that knows no waves goes one state after the other") {
    Waves waves(true, false);
    CHECK(waves.go() == Ended::paused);
    const auto run = waves.replayed();
    CHECK(run.find("slow/1000")->state == "gating-failed");
    CHECK(run.find("quick/1000")->touched == 0);
}

TEST_CASE("a node that leaves the cluster before it gets its label fails no state") {
    Waves waves;
    waves.api.put(
        json("{apiVersion: v1, kind: Node, metadata: {name: node-b}, status: {nodeInfo: {kernelVersion: 6}}}"));
    waves.api.on_request = [&](const std::string& request, bool is_done) {
        waves.point();
        if (!is_done && request == "PATCH /api/v1/nodes/node-b") waves.api.objects.erase("nodes//node-b");
    };
    CHECK(waves.go() == Ended::complete);
    waves.check_complete();
    CHECK_FALSE(waves.api.objects.contains("nodes//node-b"));
}

TEST_CASE("a resource that fails stops its wave: what has begun ends, nothing else begins") {
    Waves waves(false);
    CHECK(waves.go() == Ended::paused);
    const auto run = waves.replayed();
    CHECK(run.state == "rolling-out-states-failed");
    CHECK(run.find("slow/1000")->state == "gating-failed");
    CHECK(run.find("quick/1000")->state == "done");
    CHECK(run.find("slow/2000")->touched == 0);
    CHECK(run.find("main/1000")->touched == 0);
    CHECK(waves.go(upgrade::Rollback::all) == Ended::aborted);
    CHECK_FALSE(waves.api.objects.contains("daemonsets/demo/driver"));
    CHECK_FALSE(waves.api.objects.contains("configmaps/demo/quick"));
}

TEST_CASE("killed anywhere, waves that are resumed have the same end") {
    Waves whole;
    REQUIRE(whole.go() == Ended::complete);
    const int points = whole.points;
    for (int at = 0; at < points; at += every(1)) {
        CAPTURE(at);
        Waves waves;
        waves.countdown = at;
        bool is_killed = false;
        try {
            static_cast<void>(waves.go());
        } catch (const Killed&) { is_killed = true; }
        waves.countdown = -1;
        // How often a gate looks depends on the other thread: the last points may not be reached.
        if (is_killed) CHECK(waves.go() == Ended::complete);
        waves.check_complete();
    }
}

TEST_CASE("killed anywhere, waves that are aborted and rolled back leave nothing") {
    Waves whole;
    REQUIRE(whole.go() == Ended::complete);
    const int points = whole.points;
    for (int at = 0; at < points; at += every(5)) {
        CAPTURE(at);
        Waves waves;
        waves.countdown = at;
        try {
            static_cast<void>(waves.go());
        } catch (const Killed&) {
        }
        waves.countdown = -1;
        if (waves.replayed().state == "upgrade-complete") continue;
        CHECK(waves.go(upgrade::Rollback::all) == Ended::aborted);
        for (const auto* key : {"daemonsets/demo/driver", "configmaps/demo/slow", "configmaps/demo/quick",
                                "jobs/demo/tools", "configmaps/demo/main"})
            CHECK_FALSE(waves.api.objects.contains(key));
    }
}

}
