// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "report/baseline.hpp"
#include "unit/report/sample.hpp"
#include "value/reader.hpp"

using namespace kmm;
using report::Baseline;

namespace {

Baseline baseline(const std::string& text) {
    Diagnostics faults;
    const auto documents = value::read_any(text, "old.json", faults);
    REQUIRE(documents.size() == 1);
    return Baseline::from_document(documents.front());
}

}  // namespace

TEST_SUITE("report::unit") {
    TEST_CASE("known findings go, moved or not; a second one and another message stay") {
        const Baseline known = baseline(
            R"({"apiVersion":"kmmtools/v1","kind":"Validation","diagnostics":[{"code":"a","severity":"error","message":"m","file":"m a.yaml","line":99},)"
            R"({"code":"b","severity":"warning","message":"n"}]})");
        Diagnostics findings{sample::finding(Severity::error, "a", "m"), sample::finding(Severity::error, "a", "m"),
                             sample::finding(Severity::error, "a", "other"),
                             sample::finding(Severity::warning, "b", "n", "")};
        CHECK(known.remove_known(findings) == 2);
        REQUIRE(findings.size() == 2);
        CHECK(findings[0].message == "m");
        CHECK(findings[1].message == "other");
    }

    TEST_CASE("a preflight has its findings in its verdicts") {
        const Baseline known = baseline(
            "{apiVersion: kmmtools/v1, kind: Preflight, entries: [{findings: []}, {findings: [{code: a, message: m, "
            "file: m a.yaml}]}], recipes: [{findings: [{code: b, message: other}]}]}");
        Diagnostics findings{sample::finding(Severity::error, "a", "m"),
                             sample::finding(Severity::warning, "b", "other", "")};
        CHECK(known.remove_known(findings) == 2);
    }

    TEST_CASE("what is no result of a check is refused with its place") {
        for (const auto* text : {"[]", "kind: Plan", "{apiVersion: kmmtools/v1, kind: Why}",
                                 "{apiVersion: kmmtools/v1, kind: Error, code: usage}",
                                 "{apiVersion: kmmtools/v1, kind: Plan, diagnostics: {}}",
                                 "{apiVersion: kmmtools/v1, kind: Plan, diagnostics: [{message: m}]}"}) {
            CAPTURE(text);
            try {
                static_cast<void>(baseline(text));
                FAIL("was taken");
            } catch (const Error& error) {
                CHECK(error.code() == "bad-baseline");
                CHECK(error.exit() == Exit::data);
                REQUIRE(error.position());
                CHECK(error.position()->line == 1);
            }
        }
    }
}
