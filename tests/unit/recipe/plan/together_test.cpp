// SPDX-License-Identifier: Apache-2.0
// Resources that two threads share.
#include <doctest/doctest.h>

#include <thread>

#include "fixture.hpp"

using namespace kmm;
using namespace kmm::recipe_test;
namespace rp = kmm::recipe::plan;

namespace {

void run_twice(const std::function<void()>& work) {
    std::thread other(work);
    work();
    other.join();
}

constexpr int k_resources = 40;

std::string resource_name(int number) { return "demo-" + std::to_string(100 + number); }

/// Resources with findings, of which every tenth needs the one before it and gives it values.
Case many() {
    Case one;
    one.resource.clear();
    for (int i = 0; i < k_resources; ++i) {
        const std::string before = resource_name(i - 1);
        const std::string needs = "  dependencies:\n  - chart: {name: " + before +
                                  ", version: 0.0.1, repository: {name: r, url: 'file:///x'}}\n" +
                                  "    set: {kind: Values, apiVersion: sro.openshift.io/v1beta1, level: given}\n";
        one.resource += cr("  set: {kind: Values, apiVersion: sro.openshift.io/v1beta1, number: '" + std::to_string(i) +
                               "', list: [a]}\n" + (i % 10 == 9 ? needs : ""),
                           resource_name(i)) +
                        "---\n";
    }
    one.values = "level: own\nregex: '^[a-z]+$'\nempty: ~\nlist: [x, y]\n";
    one.files = {
        {"templates/_h.tpl", "{{- define \"n\" -}}{{ .Release.Name | trunc 20 }}-{{ .Values.level }}{{- end -}}"},
        {"templates/1000-a.yaml", daemon_set(k_affine)},
        {"templates/2000-b.yaml",
         config_map("b-{{ include \"n\" . }}",
                    "{k: {{ .Values.kernelFullVersion | quote }}, m: {{ regexMatch .Values.regex .Release.Name }}, l: "
                    "{{ append .Values.list .Values.number | toJson | quote }}}")},
        {"templates/c.yaml",
         config_map("c", "{v: \"{{ .Values.empty }}\", s: {{ set .Values \"level\" .Release.Name | len | quote }}}")}};
    return one;
}

/// What `rendered` prints, findings in front.
std::string printed(const rp::RenderedRecipes& rendered, const base::RunTogether& run) {
    std::string text;
    for (const auto& one : rendered.findings) {
        text += one.position.value_or(Position{}).to_string() + ' ' + one.message + '\n';
    }
    return text + rp::recipe_text(rendered, run);
}

}  // namespace

TEST_SUITE("recipe::plan in two threads") {
    TEST_CASE("objects and findings are those of one thread, in the same order") {
        for (const bool compat : {false, true}) {
            Case alone = many();
            alone.compat = compat;
            Case together = alone;
            together.run = run_twice;
            const std::string expected = printed(alone.render(), {});
            CHECK(has(expected, "demo-139"));
            CHECK(has(expected, "differs for") != compat);
            CHECK(printed(together.render(), run_twice) == expected);
        }
    }

    TEST_CASE("of several errors the one of the first resource is thrown") {
        for (const bool compat : {false, true}) {
            Case one = many();
            one.compat = compat;
            // Numbers from 30 on fail in the last template; those that have more to do before it fail later.
            one.files.push_back(
                {"templates/z.yaml",
                 "{{ if ge (int .Values.number) 30 }}{{ fail (print \"no \" .Values.number) }}{{ end }}"});
            const Error alone = error_of([&] { (void)one.render(); });
            one.run = run_twice;
            for (int i = 0; i < 5; ++i) {
                const Error together = error_of([&] { (void)one.render(); });
                CHECK(has(together.message(), "no 30"));
                CHECK(together.message() == alone.message());
            }
        }
    }

    TEST_CASE("the limit of steps is that of each chart") {
        Case one = many();
        one.steps_max = 5000;  // all charts together take more
        one.run = run_twice;
        CHECK_NOTHROW((void)one.render());
        one.steps_max = 20;
        CHECK(error_of([&] { (void)one.render(); }).code() == "recipe-too-large");
    }
}
