// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "recipe/template/yaml.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"

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
