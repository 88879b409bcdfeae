// SPDX-License-Identifier: Apache-2.0
// Objects from short texts, and what is found about them: for the tests of rules.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "api/codec.hpp"
#include "plan/lint/validate.hpp"
#include "value/reader.hpp"

namespace validate_case {

/// Decodes `text`, whose form has no faults but rules that the definitions of KMM have by codes of their own.
inline kmm::api::Objects read(const std::string& text, kmm::Diagnostics& rules) {
    kmm::Diagnostics faults;
    kmm::api::Objects objects;
    for (const auto& document : kmm::value::read_yaml(text, "m.yaml", faults)) {
        kmm::api::decode(document, objects, faults);
    }
    kmm::api::finish(objects, faults);
    for (const auto& fault : faults) {
        INFO(fault.message);
        REQUIRE((fault.code == "plugins-exclusive" || fault.code == "dra-device-class"));
        rules.push_back(fault);
    }
    return objects;
}

inline kmm::Diagnostics findings(const std::string& text, const kmm::plan::ValidateOptions& options = {}) {
    kmm::Diagnostics found;
    const kmm::api::Objects objects = read(text, found);
    for (auto& one : kmm::plan::validate(objects, options)) { found.push_back(std::move(one)); }
    // Which release has a field is tried in release_test.cpp.
    std::erase_if(found, [](const kmm::Diagnostic& one) { return one.code == "newer-field"; });
    return found;
}

inline std::string loader(const std::string& modprobe, const std::string& container, const std::string& mappings) {
    return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\n"
           "metadata: {name: m, namespace: ns}\n"
           "spec:\n  selector: {}\n  moduleLoader:\n    container:\n"
           "      modprobe: " + modprobe + "\n" + container + "      kernelMappings:\n" + mappings;
}

struct Row {
    int rule;  ///< of KMM's webhook, facts 10.1; 0: KMM admits it, or refuses it later
    const char* code;
    std::string text;
    std::size_t line, column;
    kmm::Severity severity = kmm::Severity::error;
};

inline const std::string k_named = "{moduleName: m}";
inline const std::string k_mapping = "      - {regexp: x, containerImage: 'r/i:t'}\n";

inline void check(const Row& row) {
    CAPTURE(row.rule);
    CAPTURE(row.code);
    CAPTURE(row.text);
    const kmm::Diagnostics found = findings(row.text, kmm::plan::ValidateOptions{row.rule == 8 ? "1.33" : "1.34"});
    REQUIRE(found.size() == 1);
    CHECK_FALSE(found[0].hint.empty());
    CHECK(found[0].code == row.code);
    CHECK(found[0].severity == row.severity);
    REQUIRE(found[0].position.has_value());
    CHECK(found[0].position->to_string() == kmm::Position{"m.yaml", row.line, row.column}.to_string());
}

inline std::string with_spec(const std::string& spec, const std::string& name = "m") {
    return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: " + name +
           ", namespace: ns}\nspec:\n  selector: {}\n" + spec;
}

}  // namespace validate_case
