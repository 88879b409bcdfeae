// SPDX-License-Identifier: Apache-2.0
// What charts of a SpecialResourceModule see, as the operator's controller gives it, and the uid of --owned-by.
#include <doctest/doctest.h>

#include "fixture.hpp"
#include "recipe/resource/release_kinds.hpp"

namespace {

using namespace kmm;
using namespace kmm::recipe_test;

const std::string k_module =
    "apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResourceModule\nmetadata: {name: hub}\nspec:\n"
    "  namespace: hub\n  chart: {name: hub, version: 0.0.1, repository: {name: r, url: 'file:///x'}}\n"
    "  watch:\n"
    "  - {apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: version, namespace: default,\n"
    "     path: '$.status.history[*].image', selector: [{path: $.metadata.name, value: version}]}\n";
const std::string k_cluster =
    "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\n"
    "status: {history: [{image: 'rel@sha256:22'}, {image: 'rel@sha256:11'}]}\n";

/// `print` is the value of a ConfigMap of the only state.
recipe::plan::RenderedRecipes rendered_module(const std::string& name, const std::string& print, bool compat,
                                              const std::string& uid = "", const std::string& kernel = "") {
    Diagnostics faults;
    std::vector<recipe::plan::SpecialResourceModule> modules;
    for (const auto& document : value::read_yaml(k_module, "srm.yaml", faults)) {
        modules.push_back(recipe::plan::decode_special_resource_module(document, faults));
    }
    const auto objects = value::read_yaml(k_cluster, "cluster.yaml", faults);
    if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    recipe::plan::Facts facts;
    facts.cluster_version = "4.17.5";
    facts.releases = {{"rel@sha256:22", "4.17.5", "dtk@sha256:bb", "5.14.0-427.43.1.el9_4.x86_64", "", "9.4"},
                      {"rel@sha256:11", "4.17.4", "dtk@sha256:aa", "5.14.0-427.40.1.el9_4", "5.14.0-1.rt", "9.4"},
                      {"rel@sha256:00", "4.17.3", "dtk@sha256:00", "5.14.0-427.39.1.el9_4.x86_64", "", "9.4"}};
    if (!kernel.empty()) {
        for (auto& release : facts.releases) { release.kernel = kernel; }
    }
    recipe::plan::RenderOptions options;
    options.operator_only = compat;
    options.owner_uid = uid;
    return recipe::plan::render_modules(
        modules, {}, objects,
        [&](const std::string& chart, const recipe::plan::ChartReference&) {
            const std::vector<File> files{{"Chart.yaml", "apiVersion: v2\nname: " + chart + "\nversion: 0.0.1\n"},
                                          {"templates/0001-a.yaml", config_map(name, "{v: " + print + "}")}};
            return recipe::chart::load_chart(files, "charts/" + chart);
        },
        facts, options);
}

std::string module_text(const std::string& print, bool compat, const std::string& uid = "") {
    return recipe::plan::recipe_text(rendered_module("a-{{ .Values.openShiftVersion }}", print, compat, uid));
}

}  // namespace

TEST_CASE("a watch names a kind without namespaces, whatever namespace it gives") {
    for (const bool compat : {false, true}) {
        const std::string text = module_text("x", compat);
        CHECK(has(text, "name: a-4.17.5"));
        CHECK(has(text, "name: a-4.17.4"));
        CHECK_FALSE(has(text, "name: a-4.17.3"));
    }
}

TEST_CASE("of an object that two releases share and make differently, both are named, and a kernel that is one") {
    const std::string toolkit = "{{ .Values.driverToolkitImage }}";
    const auto one = rendered_module("a-{{ .Values.kernelFullVersion }}", toolkit, false, "", "5.14.0-1");
    REQUIRE(one.findings.size() == 1);
    CHECK(one.findings[0].code == "recipe-overwrite");
    CHECK(has(one.findings[0].message, "a-5.14.0-1: the copies for releases 4.17.4 and 4.17.5, both with kernel "
                                       "5.14.0-1, have one name and differ"));
    CHECK(has(one.findings[0].hint, "put .Values.openShiftVersion into its name"));
    const auto several = rendered_module("a", toolkit, false);
    REQUIRE(several.findings.size() == 1);
    CHECK(has(several.findings[0].message,
              "ConfigMap a: the copies for releases 4.17.4 and 4.17.5 have one name and differ"));
    CHECK(rendered_module("a", "x", false).findings.empty());
}

TEST_CASE("a watch is printed as the operator writes it") {
    const std::string watch = module_text("'{{ index .Values.specialResourceModule.spec.watch 0 | toJson }}'", false);
    CHECK(has(watch, R"("selector":[{"exclude":false,"path":"$.metadata.name","value":"version"}])"));
}

TEST_CASE("the operator names releases that are complete in the status that the next one sees") {
    const std::string print = "'{{ .Values.openShiftVersion }} {{ .Values.specialResourceModule.status | toJson }}'";
    const std::string compat = module_text(print, true);
    CHECK(has(compat, "v: 4.17.4 {}"));
    CHECK(has(compat, R"(v: 4.17.5 {"versions":{"dtk@sha256:aa":{"complete":true}}})"));
    CHECK(has(module_text(print, false), "v: 4.17.5 {}"));
}

TEST_CASE("a set that is absent is the number 0 to charts of the operator") {
    const std::string print = "'{{ .Values.specialResourceModule.spec.set | toJson }}'";
    CHECK(has(module_text(print, true), "v: \"0\""));
    CHECK(has(module_text(print, false), "v: '{}'"));
}

TEST_CASE("the operator gives a kernel without an architecture its own") {
    const std::string print = "'{{ .Values.kernelFullVersion }} {{ .Values.rtKernelFullVersion }}'";
    CHECK(has(module_text(print, true), "v: 5.14.0-427.40.1.el9_4.x86_64 5.14.0-1.rt.x86_64"));
    CHECK(has(module_text(print, false), "v: 5.14.0-427.40.1.el9_4 5.14.0-1.rt"));
}

TEST_CASE("of a release for several architectures the operator takes its own, whichever is first") {
    Diagnostics faults;
    const auto documents = value::read_yaml(k_module, "srm.yaml", faults);
    const auto module = recipe::plan::decode_special_resource_module(documents.front(), faults);
    auto objects = value::read_yaml(k_cluster, "cluster.yaml", faults);
    REQUIRE_FALSE(has_errors(faults));
    recipe::plan::Facts facts;
    for (const std::string version : {"22", "11"}) {
        for (const std::string architecture : {"aarch64", "x86_64"}) {
            facts.releases.push_back({"rel@sha256:" + version, "4.17." + version, "dtk@sha256:" + version,
                                      "5.14.0-" + version + ".el9_4." + architecture, "", "9.4"});
        }
    }
    const auto kernels = [&] {
        std::vector<std::string> made;
        for (const auto& one : recipe::plan::watched_releases(module, objects, facts, true)) {
            made.push_back(one.kernel);
        }
        return made;
    };
    using Texts = std::vector<std::string>;
    for (const bool watched : {true, false}) {
        if (!watched) { objects.clear(); }
        facts.kernels.clear();
        CHECK(kernels() == Texts{"5.14.0-11.el9_4.x86_64", "5.14.0-22.el9_4.x86_64"});
        facts.kernels.push_back({"5.14.0-1.el9_4.aarch64", "", {}, std::nullopt});
        CHECK(kernels() == Texts{"5.14.0-11.el9_4.aarch64", "5.14.0-22.el9_4.aarch64"});
    }
    std::erase_if(facts.releases,
                  [](const recipe::plan::Release& one) { return one.kernel.find("aarch64") != std::string::npos; });
    CHECK(kernels() == Texts{"5.14.0-11.el9_4.x86_64", "5.14.0-22.el9_4.x86_64"});
}

TEST_CASE("the uid of --owned-by is a value of the charts") {
    CHECK(has(module_text("'{{ .Values.specialResourceModule.metadata.uid }}'", false, "uid-1"), "v: uid-1"));
    Case one;
    one.files = {{"templates/1000-a.yaml", config_map("a", "{v: '{{ .Values.specialresource.metadata.uid }}'}")}};
    for (const bool compat : {false, true}) {
        one.compat = compat;
        one.owner_uid = "uid-1";
        CHECK(has(one.text(), "v: uid-1"));
        CHECK(has(one.text(), "uid: uid-1"));
        one.owner_uid = "";
        CHECK(has(one.text(), "v: \"\""));
        CHECK_FALSE(has(one.text(), "ownerReferences"));
    }
}
