// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "schema/schema.hpp"
#include "plan/codes/codes.hpp"
#include "plan/kmm/regexp.hpp"
#include "plan/kmm/release.hpp"
#include "plan/kmm/template.hpp"
#include "plan/kmm/version_labels.hpp"

using namespace kmm;

TEST_SUITE("plan::release") {
    TEST_CASE("releases are ordered") {
        CHECK(*plan::parse_release("v2.6.0") < *plan::parse_release("2.7"));
        CHECK(*plan::parse_release("2.6") >= *plan::parse_release("v2.6.1"));
        CHECK(*plan::parse_release("main") > *plan::parse_release("v9.9.9"));
        CHECK(plan::to_string(*plan::parse_release("v2.4.1")) == "v2.4.1");
        CHECK(plan::to_string(plan::k_main) == "main");
        for (const char* text : {"", "v", "2", "1.9.0", "v2.x", "2.6.0.1", "latest"}) {
            CHECK_FALSE(plan::parse_release(text));
        }
    }

    TEST_CASE("fields of a release, in both directions") {
        const unsigned open = schema::ReleaseSpan::k_open;
        using What = api::ReleaseMark::What;
        const std::vector<api::ReleaseMark> marks{
            {"Module a/b", "spec.dra", {"m.yaml", 4, 8}, 7, open, What::field},
            {"Module a/b",
             "spec.moduleLoader.container.kernelMappings[3].inTreeModulesToRemove",
             {"m.yaml", 9, 2},
             1,
             open,
             What::field},
            {"Module a/b", "spec.devicePlugin.volumes[0].ephemeral", {"m.yaml", 11, 1}, 0, 1, What::field},
            {"Module a/b", "spec.moduleLoader", {"m.yaml", 3, 1}, 0, 4, What::missing},
            {"ModuleImagesConfig a/b", "", {"m.yaml", 20, 1}, 4, open, What::kind, true},
            {"NodeModulesConfig n", "status.modules[0].bootId", {"m.yaml", 30, 1}, 4, open, What::field, true},
            {"NodeModulesConfig n",
             "status.modules[0].lastTransitionTime",
             {"m.yaml", 31, 1},
             0,
             4,
             What::field,
             true}};
        const auto codes = [&](const char* version) {
            Diagnostics found;
            const auto release = std::string(version) == "auto" ? std::nullopt : plan::parse_release(version);
            plan::check_releases(marks, release, found);
            std::string text;
            for (const auto& one : found) {
                text += fmt::format("{} {} ({})\n", one.code, one.position->to_string(), one.hint);
            }
            return text;
        };
        CHECK(codes("v2.0.2") ==
              "unknown-field m.yaml:4:8 (KMM has it since v2.7)\nunknown-field m.yaml:9:2 (KMM has it since v2.1)\n"
              "missing-field m.yaml:3:1 (KMM requires it up to v2.3)\n"
              "unknown-kind m.yaml:20:1 (KMM has it since v2.4)\n"
              "unknown-field m.yaml:30:1 (KMM has it since v2.4)\n");
        CHECK(codes("v2.3.1") ==
              "unknown-field m.yaml:4:8 (KMM has it since v2.7)\nunknown-field m.yaml:11:1 (KMM has it up to v2.0)\n"
              "missing-field m.yaml:3:1 (KMM requires it up to v2.3)\n"
              "unknown-kind m.yaml:20:1 (KMM has it since v2.4)\n"
              "unknown-field m.yaml:30:1 (KMM has it since v2.4)\n");
        const std::string removed = "unknown-field m.yaml:11:1 (KMM has it up to v2.0)\n";
        CHECK(codes("v2.6.0") == "unknown-field m.yaml:4:8 (KMM has it since v2.7)\n" + removed +
                                     "unknown-field m.yaml:31:1 (KMM has it up to v2.3)\n");
        CHECK(codes("auto") ==
              "newer-field m.yaml:4:8 (KMM has it since v2.7; with --kmm-version main it is accepted "
              "without a warning)\n" +
                  removed);
        for (const char* version : {"v2.7.0", "main"}) {
            CHECK(codes(version) == removed + "unknown-field m.yaml:31:1 (KMM has it up to v2.3)\n");
        }
    }

    TEST_CASE("a '+' that is meant as it is") {
        CHECK(plan::with_literal_plus("x86_64+rt") == "x86_64[+]rt");
        CHECK(plan::with_literal_plus("^.+aarch64+64k+debug$") == "^.+aarch64[+]64k[+]debug$");
        for (const char* text : {"", "^.+$", "a+", "a+$", R"(\d+rt)", R"(4\+rt)", "[+]rt", "[a+b]", "(ab)+c", "[0-9]+x",
                                 R"(\Qa+b\E)", R"(\Qa+b)", "+a"}) {
            CHECK(plan::with_literal_plus(text) == text);
        }
    }

    TEST_CASE("texts of explain agree with the tables that they are about") {
        std::size_t dead = 0;
        for (const auto& row : plan::label_table()) { dead += row.step == plan::LabelStep::stuck ? 1U : 0U; }
        const auto meaning = [](const char* code) {
            const Code* found = plan::find_code(code);
            REQUIRE(found != nullptr);
            return found->meaning;
        };
        CHECK(dead == 5);
        CHECK(plan::label_table().size() == 13);
        CHECK(meaning("version-labels-stuck").find("Five of the thirteen") != std::string::npos);
        const auto variables = plan::template_variables("6.1.0", "a", "b");
        REQUIRE(variables.has_value());
        for (const auto& [name, value] : *variables) {
            CHECK_MESSAGE(meaning("unknown-template-variable").find(name) != std::string::npos, name);
        }
        for (const auto key : {api::ScheduleKey::schedule_pod, api::ScheduleKey::device_plugin}) {
            CHECK(meaning("label-key-leftover").find(api::to_string(key)) != std::string::npos);
            CHECK(meaning("bad-kmm-version").find(api::to_string(key)) != std::string::npos);
        }
        CHECK(meaning("label-key-leftover").find(plan::to_string(plan::k_last_known)) != std::string::npos);
        CHECK(meaning("bad-kmm-version").find(plan::to_string(plan::k_last_known)) != std::string::npos);
        CHECK(meaning("name-too-long").find(plan::to_string(plan::k_last_known)) != std::string::npos);
    }
}
