// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::drive;

namespace {

recipe::plan::RecipeObject rendered(const std::string& cr, const std::string& state, const std::string& text,
                                    const std::string& kernel = "") {
    recipe::tmpl::YamlFault fault;
    recipe::plan::RecipeObject one;
    one.cr = cr;
    one.state = state;
    one.kernel = kernel;
    one.object = recipe::tmpl::read_yaml_text(text, fault);
    REQUIRE(fault.message.empty());
    one.origin = Position{"templates/" + state, 1, 1};
    return one;
}

}  // namespace

TEST_SUITE("drive::recipe") {

TEST_CASE("states come in apply order, and the last of those with one number has the label") {
    recipe::plan::RenderedRecipes all;
    all.main = "a";
    all.objects = {
        rendered("a", "(namespace)", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"),
        rendered(
            "a", "1000-a.yaml",
            "{apiVersion: v1, kind: Secret, metadata: {name: x, ownerReferences: [{kind: SpecialResource, uid: u}]}}"),
        rendered("a", "1000-b.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: y}, n: 1}", "k1"),
        rendered("a", "1000-b.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: z}}", "k2"),
        rendered("a", "(stateless)", "{apiVersion: v1, kind: Secret, metadata: {name: w}}")};
    const auto states = states_of(all, {});
    REQUIRE(states.size() == 4);
    CHECK(states[0].name == "a/namespace");
    CHECK(states[1].name == "a/1000-a");
    CHECK(states[1].label.empty());
    CHECK(states[1].objects.front().object.find_path({"metadata", "ownerReferences"}) == nullptr);
    CHECK(states[2].label == "specialresource.openshift.io/state-a-1000");
    REQUIRE(states[2].objects.size() == 2);
    CHECK(states[2].objects[0].kernel == "k1");
    CHECK(states[3].name == "a/stateless");
    CHECK(states[3].label.empty());
}

TEST_CASE("every gate that cannot be obeyed is reported before anything is applied") {
    recipe::plan::RenderedRecipes all;
    const std::string notes = ", annotations: {specialresource.openshift.io/wait-for-logs: '('}}}";
    all.objects = {rendered("a", "1000-a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x" + notes),
                   rendered("a", "1000-a.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: y" + notes)};
    try {
        static_cast<void>(states_of(all, {}));
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.diagnostics().size() == 2);
    }
    CHECK_THROWS_AS(static_cast<void>(states_of({}, {})), Error);
}

TEST_CASE("a driver whose image is built from something else, and has the same name, is refused") {
    const auto parsed = [](const std::string& text) {
        Diagnostics faults;
        return value::read_yaml(text, "test", faults).at(0).root;
    };
    const std::string vendor = ", annotations: {specialresource.openshift.io/driver-container-vendor: v";
    const auto release = [&](const std::string& source, const std::string& driver, bool on_demand = true) {
        upgrade::recipe::Release made;
        made.revision = 1;
        made.states = {
            {"a/0", "a", "", {}, {{"k", parsed("{apiVersion: batch/v1, kind: Job, metadata: {name: b" + vendor +
                                                "}}, spec: {template: {spec: {containers: [{image: kaniko, args: [" +
                                                source + "]}]}}}}"),
                                   on_demand}}},
            {"a/1", "a", "", {}, {{"k", parsed("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d" + vendor +
                                                "}}, spec: {template: {spec: {containers: [" + driver + "]}}}}")}}}};
        return made;
    };
    const auto refused = [&](const upgrade::recipe::Release& now, const upgrade::recipe::Release& before) {
        try {
            require_new_images(now, before);
        } catch (const Error& error) {
            const auto& fault = error.diagnostics().at(0);
            return fault.code + ": " + fault.message;
        }
        return std::string();
    };
    const auto before = release("v1", "{image: r/d:k}");
    CHECK(refused(release("v2", "{image: r/d:k}"), before) ==
          "image-not-renamed: DaemonSet d: Job b builds its image from something else than in release 1, and the "
          "image has the same name: nodes would keep the driver of before");
    CHECK(refused(release("v1", "{image: r/d:k}"), before).empty());
    CHECK(refused(release("v2", "{image: r/d:k-v2}"), before).empty());
    // The image is there, so that nothing builds it, whatever else of the Pods changes.
    CHECK_FALSE(refused(release("v2", "{image: r/d:k, args: [x]}"), before).empty());
    CHECK_FALSE(refused(release("v2", "{image: r/d:k}", false), before).empty());
    CHECK(refused(release("v2", "{image: r/d:k, args: [x]}", false), before).empty());
    CHECK(refused(release("v2", "{image: r/d:k, args: [x], imagePullPolicy: Always}"), before).empty());
}

TEST_CASE("a name that is too long for the label of a state is reported before anything is applied") {
    const auto refused = [](std::size_t length) -> std::string {
        const std::string name(length, 'a');
        recipe::plan::RenderedRecipes all;
        for (const auto* state : {"1000-a.yaml", "2000-b.yaml", "(stateless)"})
            all.objects.push_back(rendered(name, state, "{apiVersion: v1, kind: Secret, metadata: {name: x}}"));
        try {
            return states_of(all, {}).back().label;
        } catch (const Error& error) { return error.code() + ": " + error.hint(); }
    };
    CHECK(refused(52).empty());
    CHECK(refused(53) == "bad-value: shorten metadata.name to 52 characters");
}

TEST_CASE("runs name every state, with the version that it had before") {
    upgrade::recipe::Release before, now;
    before.recipe = now.recipe = "a";
    before.version = "0.0.1";
    before.revision = 1;
    now.version = "0.0.2";
    now.revision = 2;
    before.states = {{"a/1000-a", "a", "", {}, {}}};
    now.states = {{"a/1000-a", "a", "", {}, {}}, {"a/2000-b", "a", "", {}, {}}};
    RecipeRequest request;
    request.subject.name = "a";
    request.subject.space = "kube-system";
    const auto run = rollout_run(request, now, &before);
    CHECK(run.from_version == "0.0.1");
    CHECK(run.nodes[0].from_version == "0.0.1");
    CHECK(run.nodes[1].from_version.empty());
    CHECK(upgrade::recipe::subject_of(run).previous == 1);
    const auto removal = removal_run(request, now);
    CHECK(removal.nodes.front().name == "a/2000-b");
    CHECK(upgrade::recipe::is_removal(removal));
}

}
