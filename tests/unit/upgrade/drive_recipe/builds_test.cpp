// SPDX-License-Identifier: Apache-2.0
// Pull first, build second, else wait.
#include <doctest/doctest.h>

#include "unit/upgrade/drive_recipe/recipe_life.hpp"
#include "upgrade/drive_recipe/readiness.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace rc = kmm::upgrade::recipe;

namespace {

Node build_job() {
    return json(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: build, namespace: demo, annotations: "
        "{specialresource.openshift.io/driver-container-vendor: acme, "
        "specialresource.openshift.io/wait: 'true'}}, spec: {template: {spec: {containers: [{name: c, image: "
        "r/builder}]}}}}");
}

Node vendor_driver(const std::string& image) {
    return json(
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: driver, namespace: demo, annotations: "
        "{specialresource.openshift.io/state: driver-container, "
        "specialresource.openshift.io/driver-container-vendor: acme, specialresource.openshift.io/wait: 'true'}}, "
        "spec: {selector: {matchLabels: {app: driver}}, template: {metadata: {labels: {app: driver}}, spec: "
        "{containers: [{name: c, image: '" +
        image + "'}]}}}}");
}

struct Rollout : RecipeLife<IdleClock> {
    std::vector<std::string> said;

    Rollout(const std::string& image, bool has_build) {
        api.put(json(
            "{apiVersion: v1, kind: Node, metadata: {name: node-a}, status: {nodeInfo: {kernelVersion: 6.1.0-1}}}"));
        api.put(json("{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"));
        rc::Release release;
        release.recipe = "demo";
        release.version = "1";
        release.lineage = "me";
        release.revision = 1;
        if (has_build) release.states.push_back({"demo/0000-build", "demo", "", {}, {{"", build_job(), true}}});
        release.states.push_back({"demo/1000-driver", "demo", "", {}, {{"", vendor_driver(image), false}}});
        const auto own = client();
        ReleaseStore(*own, "kube-system").put(release);
        journal.begin(upgrade::encode(rollout_run(request_of(release, 20'000), release, nullptr)));
    }
    Ended go() {
        say = [this](const std::string& text) { said.push_back(text); };
        return live(journal);
    }
};

}  // namespace

TEST_SUITE("upgrade::drive_recipe builds") {

TEST_CASE("an image that is there is pulled, and nothing is built") {
    Rollout rollout("r/there", true);
    CHECK(rollout.go() == Ended::complete);
    CHECK_FALSE(rollout.api.objects.contains("jobs/demo/build"));
    CHECK(rollout.replayed().nodes[0].message == "applied, no object is waited for");
}

TEST_CASE("an image that cannot be pulled is built, and pulled again") {
    Rollout rollout("r/missing", true);
    CHECK(rollout.go() == Ended::complete);
    CHECK(rollout.api.objects.contains("jobs/demo/build"));
    CHECK(rollout.replayed().nodes[1].state == "done");
}

TEST_CASE("an image that nothing builds is waited for, and the reason is named") {
    Rollout rollout("r/missing", false);
    CHECK(rollout.go() == Ended::paused);
    const auto driver = rollout.replayed().nodes[0];
    CHECK(driver.state == "gating-failed");
    CHECK(driver.message ==
          "DaemonSet demo/driver: 0 of 1 Pods are updated and available; image r/missing of Pod demo/driver-node-a "
          "cannot be pulled: ErrImagePull: not found; "
          "nothing of the recipe builds it after the time limit");
    REQUIRE(rollout.said.size() == 1);
    CHECK(rollout.said[0].starts_with("waits: DaemonSet demo/driver: 0 of 1 Pods are updated and available; image "));
}

TEST_CASE("a build on demand is on record as such") {
    rc::Release release;
    release.recipe = "demo";
    release.revision = 1;
    release.states.push_back(
        {"demo/0000-build", "demo", "", {}, {{"", build_job(), true}, {"", vendor_driver("r/a"), false}}});
    const auto again = rc::decode_release(rc::encode(release), "test");
    CHECK(again.states[0].objects[0].on_demand);
    CHECK_FALSE(again.states[0].objects[1].on_demand);
    CHECK(is_paired_build(build_job()));
    CHECK_FALSE(is_paired_build(vendor_driver("r/a")));
    CHECK(driver_vendor(vendor_driver("r/a")) == "acme");
}

}
