// SPDX-License-Identifier: Apache-2.0
// Annotations and labels of the toolkit itself that nothing reads.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plan/lint/lint.hpp"
#include "unit/plan/validate_case.hpp"

using namespace kmm;

namespace {

/// "LINE:COLUMN MESSAGE / HINT" of each finding about keys.
std::vector<std::string> about_keys(const std::string& text) {
    Diagnostics faults, found;
    const auto objects = validate_case::read(text, faults);
    plan::check_own_keys(objects, found);
    std::vector<std::string> lines;
    for (const auto& one : found) {
        CHECK(one.code == "annotation-idle");
        CHECK(one.severity == Severity::warning);
        lines.push_back(std::to_string(one.position->line) + ":" + std::to_string(one.position->column) + " " +
                        one.message + " / " + one.hint);
    }
    return lines;
}

std::string module_with(const std::string& metadata) {
    return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: m\n  namespace: ns\n" + metadata +
           "spec: {selector: {a: b}}\n";
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("a misspelt annotation of the toolkit") {
        using Lines = std::vector<std::string>;
        const auto annotated = [](const std::string& key) {
            return about_keys(module_with("  annotations:\n    " + key + ": never\n"));
        };
        CHECK(annotated("kmmtools.dev/unloadpolicy") ==
              Lines{"7:32 Module ns/m: annotation kmmtools.dev/unloadpolicy is unknown and has no effect / did you "
                    "mean kmmtools.dev/unload-policy?"});
        CHECK(annotated("kmmtools.dev/need").front().ends_with("did you mean kmmtools.dev/needs?"));
        CHECK(annotated("kmmtools.dev/unload_policy").front().ends_with("did you mean kmmtools.dev/unload-policy?"));
        CHECK(annotated("kmmtools.dev/Unload-Policy").front().ends_with("did you mean kmmtools.dev/unload-policy?"));
        CHECK(annotated("kmm-tools.dev/unload-policy").front().ends_with("did you mean kmmtools.dev/unload-policy?"));
        CHECK(annotated("kmmtools.dev/colour").front().ends_with(
            "the annotations of Modules are kmmtools.dev/unload-policy and kmmtools.dev/needs"));
        for (const char* good : {"kmmtools.dev/unload-policy", "kmmtools.dev/needs", "kmmtools.dev/hook-run",
                                 "example.com/unload-policy", "kmm.node.kubernetes.io/needs", "unload-policy"}) {
            CHECK(annotated(good).empty());
        }
    }

    TEST_CASE("a setting among the labels, or on an object that has none") {
        CHECK(about_keys(module_with("  labels:\n    kmmtools.dev/unload-policy: never\n")) ==
              std::vector<std::string>{"7:33 Module ns/m: label kmmtools.dev/unload-policy has no effect: it is an "
                                       "annotation / write it below metadata.annotations"});
        CHECK(about_keys(module_with("  labels:\n    kmmtools.dev/unload-polcy: never\n")) ==
              std::vector<std::string>{"7:32 Module ns/m: label kmmtools.dev/unload-polcy is unknown and has no effect "
                                       "/ did you mean the annotation kmmtools.dev/unload-policy? write it below "
                                       "metadata.annotations"});
        CHECK(about_keys(module_with("  labels:\n    kmmtools.dev/recipe: r\n")).empty());
        const std::string node = "apiVersion: v1\nkind: Node\nmetadata:\n  name: NAME\n  annotations:\n"
                                 "    kmmtools.dev/cordoned-by: x\n    kmmtools.dev/unload-policy: never\n";
        std::string two = node + "---\n" + node;
        two.replace(two.find("NAME"), 4, "node-a").replace(two.find("NAME"), 4, "node-b");
        CHECK(about_keys(two) ==
              std::vector<std::string>{"1:1 annotation kmmtools.dev/unload-policy of 2 nodes, first node-a has no "
                                       "effect / annotate the Module: it applies to all of its nodes"});
    }

    TEST_CASE("labels that people select by are none of the toolkit's settings") {
        const auto node_with = [](const std::string& label) {
            return "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-a, labels: {" + label + ": gpu}}\n";
        };
        const std::string module =
            "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: m\n  namespace: ns\n"
            "spec:\n  selector: {kmmtools.dev/need: gpu}\n  moduleLoader:\n    container:\n"
            "      build: {dockerfileConfigMap: {name: d}, selector: {kmmtools.dev/unload-polic: x}}\n"
            "      modprobe: {moduleName: m}\n"
            "      kernelMappings: [{regexp: .*, containerImage: \"reg.example/m:${KERNEL_FULL_VERSION}\"}]\n";
        const auto labelled = module_with("  labels:\n    kmmtools.dev/pool: gpu\n");
        CHECK(about_keys(labelled + node_with("kmmtools.dev/pool")).empty());
        CHECK(about_keys(node_with("kmmtools.dev/need")) ==
              std::vector<std::string>{"2:1 label kmmtools.dev/need of node node-a has no effect / did you mean "
                                       "kmmtools.dev/needs, an annotation of Modules?"});
        CHECK(about_keys(module + node_with("kmmtools.dev/need")).empty());
        CHECK(about_keys(module + node_with("kmmtools.dev/unload-polic")).empty());
        CHECK(about_keys(module + node_with("kmmtools.dev/unload-policy")).size() == 1);
        CHECK(about_keys("apiVersion: hub.kmm.sigs.x-k8s.io/v1beta1\nkind: ManagedClusterModule\n"
                         "metadata: {name: m}\nspec: {selector: {kmmtools.dev/needs: b}, spokeNamespace: ns, "
                         "moduleSpec: {selector: {kmmtools.dev/need: b}}}\n" +
                         node_with("kmmtools.dev/need: x, kmmtools.dev/needs"))
                  .empty());
    }

    TEST_CASE("an annotation of a ManagedClusterModule reaches no Module") {
        const auto found = about_keys(
            "apiVersion: hub.kmm.sigs.x-k8s.io/v1beta1\nkind: ManagedClusterModule\nmetadata:\n  name: m\n"
            "  annotations: {kmmtools.dev/unload-policy: never}\n"
            "spec: {selector: {a: b}, spokeNamespace: ns, moduleSpec: {selector: {a: b}}}\n");
        REQUIRE(found.size() == 1);
        CHECK(found.front().find("ManagedClusterModule m: annotation kmmtools.dev/unload-policy has no effect: only "
                                 "that of a Module has one") != std::string::npos);
    }
}
