// SPDX-License-Identifier: Apache-2.0
// What a recipe asks for, and nobody would see or say: annotations, selectors, nodes with taints.
#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace kmm;
using namespace kmm::recipe_test;

TEST_CASE("a selector that loses its Pods to copies for kernels is named") {
    Case one;
    const auto service = [](const std::string& selector) {
        return "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {" + selector +
               "}, ports: [{port: 80}]}\n";
    };
    const auto lost = [&] { return found(one.render().findings, "selector-lost"); };
    one.files = {{"templates/1000-a.yaml", daemon_set(k_affine)}, {"templates/2000-s.yaml", service("app: ds")}};
    REQUIRE(lost());
    for (const auto& finding : one.render().findings) {
        if (finding.code != "selector-lost") { continue; }
        CHECK(finding.message ==
              "Service s selects Pods with the label app ds, which the copies of DaemonSet ds for kernels do not have");
        REQUIRE(finding.position.has_value());
        CHECK(finding.position->file == "charts/demo/templates/2000-s.yaml");
    }
    one.compat = true;
    CHECK_FALSE(lost());
    one.compat = false;
    one.files[1].data = service("tier: x");
    CHECK_FALSE(lost());
    one.files = {{"templates/1000-a.yaml", daemon_set("")}, {"templates/2000-s.yaml", service("app: ds")}};
    CHECK_FALSE(lost());
    std::string other = daemon_set("");
    other.replace(other.find("name: ds"), 8, "name: other");
    one.files = {{"templates/1000-a.yaml", daemon_set(k_affine) + "---\n" + other},
                 {"templates/2000-s.yaml", service("app: ds")}};
    CHECK_FALSE(lost());  // the Pods of the other one
}

TEST_CASE("annotations that nobody sees are named, with what to write") {
    Case one;
    one.facts = one_kernel();
    const std::string before = "    specialresource.openshift.io/";
    const auto said = [&](const std::string& annotations, const std::string& object = "") {
        one.files = {{"templates/1000-a.yaml", object.empty() ? daemon_set(annotations) : object}};
        std::string all;
        for (const auto& finding : one.render().findings)
            if (finding.code == "annotation-idle") { all += finding.message + "; " + finding.hint + "\n"; }
        return all;
    };
    CHECK(said(before + "wait: \"true\"\n" + before + "proxy: \"false\"\n" + before + "wait-for-logs: ok\n" +
               before + "state: device-plugin\n" + before + "mine: x\n" + before + "kernel-affine: true\n") == "");
    CHECK(said(before + "wait: \"True\"\n") ==
          "DaemonSet ds: annotation specialresource.openshift.io/wait is \"True\", expected \"true\"; it has no effect"
          "; write \"true\" in lower case, or leave it out\n");
    CHECK(has(said(before + "kernel-affine: 'yes'\n"), "kernel-affine is \"yes\""));
    CHECK(has(said(before + "kernel-afine: \"true\"\n"), "did you mean specialresource.openshift.io/kernel-affine?"));
    CHECK(has(said(before + "wait-for-log: ok\n"), "did you mean specialresource.openshift.io/wait-for-logs?"));
    CHECK(has(said(before + "driver-container-vendors: a\n"), "driver-container-vendor?"));
    CHECK(has(said(before + "state: driver_container\n"), "write driver-container"));
    CHECK(has(said(before + "wait-for-logs: '(bad'\n"), "annotation specialresource.openshift.io/wait-for-logs: "));
    CHECK(has(said(before + "wait-for-logs: 'x(?=y)'\n"), "correct it: no rollout of the recipe can wait for it"));
    CHECK(has(said("", "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  annotations:\n" + before +
                           "wait-for-logs: ok\n"),
              "wait-for-logs: expected it on a Pod, DaemonSet, Deployment or StatefulSet"));
    std::string pods = daemon_set("");
    const std::string labels = "metadata: {labels: {app: ds}}";
    pods.replace(pods.find(labels), labels.size(),
                 "metadata: {labels: {app: ds}, annotations: {specialresource.openshift.io/wait: 'true'}}");
    CHECK(has(said("", pods), "is on its Pods, where it has no effect; move it to metadata.annotations of the object"));
    std::string labelled = daemon_set("");
    labelled.replace(labelled.find("  annotations:"), 14,
                     "  labels: {specialresource.openshift.io/kernel-affine: 'true'}\n  annotations:");
    CHECK(has(said("", labelled), "is a label, expected an annotation"));
    one.compat = true;
    CHECK(said(before + "wait: \"True\"\n") == "");
}

TEST_CASE("nodes with a taint count for a resource that selects no others") {
    Case one;
    one.resource = cr("  nodeSelector: {gpu: 'yes'}\n");
    one.files = {{"templates/1000-a.yaml", daemon_set(k_affine)}};
    CHECK(error_of([&] { (void)one.render(); }).code() == "no-kernels");
    one.facts.left_out = {{"5.14.0-570.12.1.el9_6.x86_64", "CoreOS 9.6.20250203-0 (Plow)", {{"gpu", "yes"}}, {}}};
    CHECK(count(one.text(), "kind: DaemonSet") == 1);
    CHECK(has(one.text(), "kernel-version.full: 5.14.0-570.12.1.el9_6.x86_64"));
    one.resource = cr();  // selects all
    CHECK_FALSE(has(one.text(), "5.14.0-570"));
    auto next = one.facts;
    recipe::plan::add_next_kernel(next, "5.14.0-570.12.1.el9_6.x86_64");
    one.facts = next;
    CHECK(count(one.text(), "kind: DaemonSet") == 3);  // its system is known from the node
}
