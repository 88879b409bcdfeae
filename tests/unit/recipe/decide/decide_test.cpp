// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "recipe/decide/containers.hpp"
#include "recipe/decide/decision.hpp"
#include "recipe/decide/upgradeable.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace {

using namespace kmm;
using namespace kmm::recipe::decide;

DriverContainer container(const std::string& builder = "", const std::string& fault = "") {
    DriverContainer made;
    made.cr = "demo";
    made.name = "DaemonSet demo";
    made.image = "q.test/demo:k";
    made.vendor = "acme";
    made.builder = builder;
    made.build_fault = fault;
    return made;
}

recipe::plan::RecipeObject recipe_object(const std::string& yaml) {
    recipe::tmpl::YamlFault fault;
    return {"demo", "0000-build.yaml", "k", recipe::tmpl::read_yaml_text(yaml, fault), {}};
}

recipe::plan::RecipeObject build(const std::string& name, const std::string& spec) {
    return recipe_object("kind: BuildConfig\nmetadata: {name: " + name +
                         ", annotations: {specialresource.openshift.io/driver-container-vendor: acme}}\nspec: " + spec);
}

const char* const k_driver = R"(kind: DaemonSet
metadata:
  name: demo
  annotations:
    specialresource.openshift.io/state: driver-container
    specialresource.openshift.io/driver-container-vendor: acme
spec: {template: {spec: {containers: [{name: c, image: "q.test/ns/demo:k"}]}}}
)";

}  // namespace

TEST_CASE("pull first, build second, else wait") {
    struct Row {
        Presence presence;
        const char *builder, *fault, *vendor;
        Action action;
        const char* reason;
    };
    const Row rows[] = {
        {Presence::present, "", "", "", Action::pull, "image-present"},
        {Presence::present, "BuildConfig b", "", "acme", Action::pull, "image-present"},
        {Presence::not_asked, "BuildConfig b", "", "", Action::pull, "image-not-checked"},
        {Presence::not_asked, "BuildConfig b", "", "acme", Action::build, "build-needed"},
        {Presence::not_asked, "BuildConfig b", "", "other", Action::pull, "image-not-checked"},
        {Presence::not_asked, "", "", "acme", Action::wait, "no-image-no-source"},
        {Presence::absent, "BuildConfig b", "", "", Action::build, "build-needed"},
        {Presence::absent, "BuildConfig b", "it has no spec.source", "", Action::wait, "no-image-no-source"},
        {Presence::absent, "", "", "", Action::wait, "no-image-no-source"},
        {Presence::unreachable, "BuildConfig b", "", "", Action::wait, "registry-unreachable"},
    };
    for (const auto& row : rows) {
        const auto made = decide(container(row.builder, row.fault), row.presence, row.vendor);
        CHECK(made.action == row.action);
        CHECK(made.reason == row.reason);
    }
}

TEST_CASE("all builds of a vendor are needed, and the one that makes the image is named") {
    recipe::plan::RenderedRecipes rendered;
    rendered.objects = {build("base", "{source: {git: {uri: u}}, output: {to: {name: 'base:1'}}}"),
                        build("final", "{source: {dockerfile: FROM base}, output: {to: {name: 'demo:k'}}}"),
                        recipe_object(k_driver)};
    const auto containers = driver_containers(rendered);
    REQUIRE(containers.size() == 1);
    CHECK(containers[0].builder == "BuildConfig final");
    std::vector<Decision> decisions{decide(containers[0], Presence::absent, "")};
    const auto lines = state_lines(rendered, decisions);
    CHECK(lines.at(0).action == Action::build);
    drop_needless_builds(rendered, decisions);
    CHECK(rendered.objects.size() == 3);
    decisions[0].action = Action::pull;
    drop_needless_builds(rendered, decisions);
    CHECK(rendered.objects.size() == 1);
}

TEST_CASE("copies of DaemonSets, and images named by the kernel, are drivers without the annotation, too") {
    const auto found = [](const std::string& kind, const std::string& image, const std::string& copy) {
        recipe::plan::RenderedRecipes rendered;
        rendered.objects = {recipe_object("kind: " + kind + "\nmetadata: {name: d}\nspec: {template: {spec: "
                                          "{containers: [{image: x}, {image: '" + image + "'}]}}}")};
        rendered.objects[0].kernel = copy;
        std::string made;
        for (const auto& one : driver_containers(rendered, "6.1.0-1")) { made += one.image + ' '; }
        return made;
    };
    CHECK(found("DaemonSet", "r/d:6.1.0-1", "6.1.0-1") == "x r/d:6.1.0-1 ");
    CHECK(found("DaemonSet", "r/d", "6.1.0-1") == "x ");
    CHECK(found("DaemonSet", "r/d:6.1.0-1", "") == "r/d:6.1.0-1 ");
    CHECK(found("Deployment", "r/d:6.1.0-1", "6.1.0-1") == "r/d:6.1.0-1 ");
    CHECK(found("Deployment", "r/d", "6.1.0-1").empty());
    CHECK(found("DaemonSet", "r/d", "").empty());
    CHECK(found("Job", "r/d:6.1.0-1", "6.1.0-1").empty());
}

TEST_CASE("every image of a Pod that is made for the kernel has to be there") {
    const auto images = [](const std::string& pod) {
        recipe::plan::RenderedRecipes rendered;
        rendered.objects = {recipe_object("kind: DaemonSet\nmetadata: {name: d, annotations: "
                                          "{specialresource.openshift.io/state: driver-container}}\n"
                                          "spec: {template: {spec: " + pod + "}}")};
        rendered.objects[0].kernel = "5.14.0-1.el9.x86_64+rt";
        std::string made;
        for (const auto& one : driver_containers(rendered)) {
            made += one.image + '/' + std::to_string(one.ordinal) + ' ';
        }
        return made;
    };
    CHECK(images("{containers: [{image: a}, {image: b}], initContainers: [{image: c}]}") == "a/0 ");
    CHECK(images("{containers: [{image: a}, {image: 'b:v5.14.0-1.el9.x86_64_rt'}]}") ==
          "a/0 b:v5.14.0-1.el9.x86_64_rt/1 ");
    CHECK(images("{containers: [{image: a}], initContainers: [{image: 'i:5.14.0-1.el9.x86_64+rt'}, {image: x}]}") ==
          "a/0 i:5.14.0-1.el9.x86_64+rt/1 ");
    CHECK(images("{containers: [{image: 'k:5.14.0-1.el9.x86_64_rt'}], initContainers: [{image: "
                 "'k:5.14.0-1.el9.x86_64_rt'}]}") == "k:5.14.0-1.el9.x86_64_rt/0 ");
    CHECK(images("{containers: []}").empty());
    CHECK(images("{initContainers: [{image: 'k:5.14.0-1.el9.x86_64_rt'}]}").empty());
}

TEST_CASE("a build of another image does not build this one") {
    const auto fault = [](const std::string& output, const std::string& image) {
        recipe::plan::RenderedRecipes rendered;
        std::string driver = k_driver;
        driver.replace(driver.find("q.test/ns/demo:k"), 16, image);
        rendered.objects = {build("b", "{source: {git: {uri: u}}, output: {to: {name: '" + output + "'}}}"),
                            recipe_object(driver)};
        return driver_containers(rendered).at(0).build_fault;
    };
    CHECK(fault("demo:k", "q.test/ns/demo:k").empty());
    CHECK(fault("route.test/ns/demo:k", "registry.svc:5000/ns/demo:k").empty());
    CHECK(fault("demo:latest", "q.test/ns/demo").empty());
    CHECK(fault("", "q.test/ns/demo:k").empty());
    CHECK(fault("demo:latest", "q.test/ns/demo:k") == "its output is demo:latest");
    CHECK(fault("demo:k", "q.test/ns/demo@sha256:1") == "its output is demo:k");
}

TEST_CASE("a build without anything to build from builds nothing") {
    const auto fault = [](const std::string& source) {
        recipe::plan::RenderedRecipes rendered;
        rendered.objects = {build("b", "{source: " + source + "}"), recipe_object(k_driver)};
        return driver_containers(rendered).at(0).build_fault;
    };
    CHECK(fault("{git: {uri: u}}").empty());
    CHECK(fault("{images: [{from: {name: i}}]}").empty());
    CHECK(fault("{dockerfile: FROM x, binary: {}}").empty());
    CHECK(fault("{images: []}").starts_with("its spec.source names neither"));
    CHECK(fault("{git: null, images: null}").starts_with("its spec.source names neither"));
    CHECK(fault("{type: Binary, binary: {}}").starts_with("its spec.source is binary"));
}

TEST_CASE("a rollout waits for what says so, for definitions of kinds, and for hooks") {
    const auto object = [](const char* kind, const char* annotation, const char* text) {
        using recipe::tmpl::Value;
        const auto annotations = Value::map({{annotation, Value::string(text)}});
        return Value::map({{"kind", Value::string(kind)}, {"metadata", Value::map({{"annotations", annotations}})}});
    };
    CHECK(is_waited_for(object("Job", "specialresource.openshift.io/wait", "true")));
    CHECK_FALSE(is_waited_for(object("Job", "specialresource.openshift.io/wait", "false")));
    CHECK(is_waited_for(object("CustomResourceDefinition", "a", "b")));
    CHECK(is_waited_for(object("Job", "helm.sh/hook", "pre-install")));
}

TEST_CASE("one driver that is not ready blocks the cluster") {
    const KernelVerdict good{"Module a/b", "k2", true, "image-present", ""};
    const KernelVerdict bad{"SpecialResource c", "k2", false, "no-image-no-source", "x is not there"};
    CHECK(judge_upgrade({good}).status);
    CHECK(judge_upgrade({good}).reason == "AsExpected");
    CHECK(judge_upgrade({good}).message == "every driver is ready for k2");
    const auto blocked = judge_upgrade({good, bad});
    CHECK_FALSE(blocked.status);
    CHECK(blocked.reason == "NoImageNoSource");
    CHECK(blocked.message == "SpecialResource c is not ready for kernel k2: x is not there");
    CHECK(judge_upgrade({bad, {"Module d", "k2", false, "symbol-version-differs", ""}}).reason == "MultipleReasons");
    CHECK_FALSE(judge_upgrade({}).status);
}

TEST_CASE("a condition says how far images were looked into") {
    KernelVerdict image{"Module a/b", "k2", true, "image-present", "", Looked::image};
    KernelVerdict modules{"Module a/c", "k2", true, "literal-match", "", Looked::modules};
    CHECK(judge_upgrade({image}).status);
    CHECK(judge_upgrade({image}).message ==
          "every driver is ready for k2: images exist, the modules in them were not checked");
    CHECK(judge_upgrade({modules}).message == "every driver is ready for k2: the modules in images fit");
    CHECK(judge_upgrade({image, modules}).message ==
          "every driver is ready for k2: images exist, the modules in some of them were not checked");
}

TEST_CASE("a long list of reasons is cut, and counted") {
    std::vector<KernelVerdict> many;
    for (int i = 0; i < 9; ++i) { many.push_back({"Module m" + std::to_string(i), "k", false, "image-not-found", ""}); }
    const auto blocked = judge_upgrade(many);
    CHECK(blocked.message.ends_with("; and 4 more"));
    CHECK(blocked.blocking.size() == 9);
}

TEST_CASE("which object carries the condition") {
    CHECK(parse_status_target("clusteroperator")->name == "kmm-tools");
    CHECK(parse_status_target("clusteroperator/x")->name == "x");
    CHECK(parse_status_target("operatorcondition/ns/x")->name_space == "ns");
    CHECK(parse_status_target("operatorcondition/x")->name_space.empty());
    for (const char* bad :
         {"", "clusteroperator/", "clusteroperator/a/b", "operatorcondition", "operatorcondition/a/b/c",
          "ClusterOperator", "/x"}) {
        CHECK_FALSE(parse_status_target(bad));
    }
    const auto patch =
        status_patch({true, "x", "ns"}, judge_upgrade({{"m", "k", true, "image-present", ""}}), "2026-11-26T00:00:00Z");
    CHECK(patch.get_string({"metadata", "namespace"}) == "ns");
    CHECK(patch.find_path({"spec", "conditions"})->items().at(0).get_string({"status"}) == "True");
    CHECK(patch.find("status") == nullptr);
}
