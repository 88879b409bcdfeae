// SPDX-License-Identifier: Apache-2.0
// Definitions and hooks: what the Special Resource Operator does, with --compat sro, and what is made of them without.
#include <doctest/doctest.h>

#include "fixture.hpp"
#include "recipe/resource/values.hpp"

namespace {

using namespace kmm;
using namespace kmm::recipe_test;

}  // namespace

TEST_CASE("behaviour 14: definitions and hooks") {
    Case one;
    one.facts = one_kernel();
    one.files = {
        {"crds/c.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.y}\n"},
        {"templates/1000-a.yaml",
         config_map("h1", "{}", "    helm.sh/hook: pre-install\n") + "---\n" + config_map("a")},
        {"templates/2000-b.yaml", config_map("h2", "{}", "    helm.sh/hook: pre-install,pre-upgrade\n") + "---\n" +
                                      config_map("h3", "{}", "    helm.sh/hook: test\n")}};
    CHECK(count(one.text(), "CustomResourceDefinition") == 1);
    CHECK(has(one.text(), "name: h1"));
    CHECK(has(one.text(), "name: h2"));
    CHECK_FALSE(has(one.text(), "name: h3"));
    one.compat = true;
    CHECK(count(one.text(), "CustomResourceDefinition") == 3);
    CHECK(has(one.text(), "name: sh.helm.hooks.pre-install"));
    CHECK_FALSE(has(one.text(), "name: h2"));
}

TEST_CASE("hooks that no rollout runs are named") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml",
                  config_map("h1", "{}", "    helm.sh/hook: pre-upgrade, pre-rollback\n") + "---\n" +
                      config_map("h2", "{}", "    helm.sh/hook: pre-install,pre-upgrade\n") + "---\n" +
                      config_map("h3", "{}", "    helm.sh/hook: test\n") + "---\n" +
                      config_map("h4", "{}", "    helm.sh/hook: post-install,pre-upgrade\n") + "---\n" +
                      config_map("h5", "{}", "    helm.sh/hook: pre-install,post-upgrade\n") + "---\n" +
                      config_map("h6", "{}", "    helm.sh/hook: post-install,pre-upgrade,post-upgrade\n") + "---\n" +
                      config_map("h7", "{}", "    helm.sh/hook: pre-install,post-install\n") + "---\n" +
                      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: h8, annotations: {helm.sh/hook: "
                      "'pre-install, post-install'}}\n---\n" +
                      config_map("a")}};
    const auto findings = one.render().findings;
    std::vector<std::string> texts;
    for (const auto& finding : findings)
        if (finding.code == "hook-not-run") texts.push_back(finding.message);
    CHECK(texts == std::vector<std::string>{"ConfigMap h1 is a hook of pre-upgrade, pre-rollback alone, and is left "
                                            "out",
                                            "ConfigMap h4 is a hook of post-install, pre-upgrade, and a rollout over "
                                            "an earlier release runs it after the objects",
                                            "ConfigMap h5 is a hook of pre-install, post-upgrade, and a rollout over "
                                            "an earlier release runs it before the objects",
                                            "Job h8 is a hook of pre-install, post-install, and a rollout runs it "
                                            "once, before the objects"});
}

TEST_CASE("behaviour 14: hooks have no kernel, and a Pod of a hook is made") {
    Case one;
    one.facts = one_kernel();
    one.compat = true;
    const std::string hook = "    helm.sh/hook: pre-install\n";
    one.files = {
        {"crds/c.yaml", config_map("crd", "{}", k_affine)},
        {"templates/1000-a.yaml", daemon_set(k_affine + hook) + "---\n" + config_map("h", "{}", k_affine + hook) +
                                      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: "
                                      "{helm.sh/hook: pre-install}}\nspec: {restartPolicy: Never}\n"}};
    const std::string text = one.text();
    one.files[1].data += "---\n---\n" + config_map("behind", "{}", hook);
    CHECK(has(one.text(), "name: behind\n"));
    for (const auto name : {"crd", "ds", "h"}) {
        CHECK(has(text, std::string("name: ") + name + "-af63a04c86018698\n"));
    }
    CHECK(has(text, "feature.node.kubernetes.io/kernel-version.full: \"\""));
    CHECK(has(text, "name: p\n"));
    one.files.back().data =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {helm.sh/hook: pre-install}}\n";
    CHECK(has(error_of([&] { (void)one.render(); }).message(), "restartPolicy not found"));
    one.compat = false;
    CHECK(has(one.text(), "name: p\n"));
}

TEST_CASE("behaviour 14: a separator at either end of a file of crds/ is a fault of the operator") {
    for (const char* form : {"---\n@", "# comment\n---\n@", "@---\n", "@--- x: 5\n"}) {
        CAPTURE(form);
        Case one;
        one.facts = one_kernel();
        std::string text = form;
        for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@')) {
            text.replace(at, 1, config_map("crd"));
        }
        one.files = {{"crds/c.yaml", text}, {"templates/1000-a.yaml", config_map("a")}};
        if (form[0] != '@' || text.ends_with("---\n")) { CHECK(count(one.text(), "name: crd\n") == 1); }
        one.compat = true;
        const std::string fault = error_of([&] { (void)one.render(); }).message();
        CHECK(
            (has(fault, "Object 'Kind' is missing in 'null'") || has(fault, "invalid Yaml document separator: x: 5")));
        one.files[0].data = config_map("crd") + "---\n" + config_map("second");
        CHECK(count(one.text(), "name: second\n") == 2);
    }
}

TEST_CASE("behaviour 14: hooks that failed for one kernel run for the next") {
    Case one;
    one.compat = true;
    one.files = {{"templates/1000-a.yaml",
                  "{{ if hasPrefix \"4\" .Values.kernelFullVersion }}" +
                      config_map("h", "{}", "    helm.sh/hook: pre-install\n" + k_affine).replace(0, 0, "kind: Pod\n") +
                      "{{ else }}" + config_map("h", "{}", "    helm.sh/hook: pre-install\n" + k_affine) +
                      "{{ end }}"}};
    one.files[0].data.replace(one.files[0].data.find("kind: ConfigMap\n"), 16, "");
    CHECK(count(one.text(), "name: h-") == 1);
}

TEST_CASE("hooks are copied for each kernel as objects are, and named if they are made for one alone") {
    Case one;
    const std::string hook = "    helm.sh/hook: pre-install\n", kernel = "{k: \"{{ .Values.kernelFullVersion }}\"}";
    one.files = {{"templates/1000-a.yaml", config_map("h", kernel, hook + k_affine) + "---\n" +
                                               config_map("h0", "{}", hook) + "---\n" +
                                               config_map("a", kernel, k_affine)}};
    const auto made = one.render();
    std::vector<std::string> kernels;
    for (const auto& each : made.objects) {
        if (each.kernel.empty()) { continue; }
        kernels.push_back(each.kernel);
        CHECK(each.object.members().at("data").members().at("k").text() == each.kernel);
    }
    CHECK(kernels == std::vector<std::string>{"4.18.0-305.40.2.el8_4.x86_64", "5.14.0-427.40.1.el9_4.x86_64",
                                              "4.18.0-305.40.2.el8_4.x86_64", "5.14.0-427.40.1.el9_4.x86_64"});
    CHECK(count(one.text(), "name: h0\n") == 1);
    for (const auto& facts : one.facts.kernels) {
        const auto suffix = recipe::plan::kernel_suffix(facts.toolkit->os_version, facts.kernel);
        CHECK(has(one.text(), "name: h-" + suffix + "\n"));
    }

    const auto codes = [&] {
        std::string found;
        for (const auto& finding : one.render().findings)
            if (finding.severity == Severity::warning) found += finding.code + ": " + finding.message + "\n";
        return found;
    };
    CHECK(codes() == "");
    one.files[0].data = config_map("h", kernel, hook) + "---\n" + config_map("a");
    CHECK(has(codes(), "kernel-dependent: demo: ConfigMap h is made for kernel 4.18.0-305.40.2.el8_4.x86_64 alone"));
    one.files[0].data = "{{ if hasPrefix \"5\" .Values.kernelFullVersion }}" + config_map("h", "{}", hook) +
                        "{{ end }}\n---\n" + config_map("a");
    CHECK(has(codes(), "kernel-dependent"));
}
