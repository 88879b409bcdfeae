// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "plan/codes.hpp"
#include "plan/regexp.hpp"
#include "plan/release.hpp"
#include "plan/template.hpp"
#include "plan/version_labels.hpp"

using namespace kmm;

TEST_SUITE("plan::release") {
    TEST_CASE("releases are ordered") {
        CHECK(*plan::parse_release("v2.6.0") < *plan::parse_release("2.7"));
        CHECK(*plan::parse_release("2.6") >= *plan::parse_release("v2.6.1"));
        CHECK(*plan::parse_release("main") > *plan::parse_release("v9.9.9"));
        CHECK(plan::to_string(*plan::parse_release("v2.4.1")) == "v2.4.1");
        CHECK(plan::to_string(plan::k_main) == "main");
        for (const char* text : {"", "v", "2", "1.9.0", "v2.x", "2.6.0.1", "latest"}) { CHECK_FALSE(plan::parse_release(text)); }
    }

    TEST_CASE("fields of a release, in both directions") {
        api::Module module;
        const std::string mapping = "spec.moduleLoader.container.kernelMappings[3].inTreeModulesToRemove";
        module.places = {{"spec.dra", {"m.yaml", 4, 8}}, {mapping, {"m.yaml", 9, 2}}, {mapping + "[0]", {"m.yaml", 9, 5}}, {"spec.selector", {"m.yaml", 3, 1}}};
        const auto codes = [&](const char* version) {
            Diagnostics found;
            const auto release = std::string(version) == "auto" ? std::nullopt : plan::parse_release(version);
            plan::check_field_releases(module, "Module a/b", release, found);
            std::string text;
            for (const auto& one : found) { text += one.code + " " + one.position->to_string() + "\n"; }
            return text;
        };
        CHECK(codes("v2.0.2") == "unknown-field m.yaml:4:8\nunknown-field m.yaml:9:2\n");
        CHECK(codes("v2.1.0") == "unknown-field m.yaml:4:8\n");
        CHECK(codes("v2.6.0") == "unknown-field m.yaml:4:8\n");
        CHECK(codes("auto") == "newer-field m.yaml:4:8\n");
        CHECK(codes("v2.7.0").empty());
        CHECK(codes("main").empty());
    }

    TEST_CASE("a '+' that is meant as it is") {
        CHECK(plan::with_literal_plus("x86_64+rt") == "x86_64[+]rt");
        CHECK(plan::with_literal_plus("^.+aarch64+64k+debug$") == "^.+aarch64[+]64k[+]debug$");
        for (const char* text : {"", "^.+$", "a+", "a+$", R"(\d+rt)", R"(4\+rt)", "[+]rt", "[a+b]", "(ab)+c", "[0-9]+x", R"(\Qa+b\E)", R"(\Qa+b)", "+a"}) {
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
