// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "api/codec.hpp"
#include "api/module_config.hpp"
#include "value/reader.hpp"

namespace {

using namespace kmm;
using Names = std::vector<std::string>;

api::ModuleConfig config_of(const std::string& text) {
    Diagnostics faults;
    const auto documents = value::read_any(text, "config.yaml", faults);
    auto config = api::decode_module_config(documents.at(0), faults);
    CHECK_FALSE(has_errors(faults));
    return config;
}

TEST_SUITE("api::unit") {

TEST_CASE("the modules that give way are those of the list, else that of the deprecated field") {
    struct Row {
        const char* text;
        Names names;
        const char* field;
    };
    for (const auto& [text, names, field] : {
             Row{"kernelVersion: x\n", {}, "inTreeModulesToRemove"},
             Row{"inTreeModuleToRemove: a\n", {"a"}, "inTreeModuleToRemove"},
             Row{"inTreeModulesToRemove: [a, b]\n", {"a", "b"}, "inTreeModulesToRemove"},
             Row{"inTreeModulesToRemove: [a, b]\ninTreeModuleToRemove: c\n", {"a", "b"}, "inTreeModulesToRemove"},
             Row{"inTreeModulesToRemove: []\ninTreeModuleToRemove: c\n", {}, "inTreeModulesToRemove"},
             Row{"inTreeModulesToRemove: null\ninTreeModuleToRemove: c\n", {"c"}, "inTreeModuleToRemove"},
         }) {
        CAPTURE(text);
        const auto config = config_of(text);
        CHECK(api::in_tree_removals(config) == names);
        CHECK(std::string(api::in_tree_field(config)) == field);
    }
    api::ModuleConfig both;  // as no document says it: the list counts
    both.in_tree_modules_to_remove = {"a"};
    both.in_tree_module_to_remove = "b";
    CHECK(api::in_tree_removals(both) == Names{"a"});
}

TEST_CASE("rawArgs with one command stand in the place of everything else") {
    for (const auto& [text, has] : {
             std::pair("moduleName: a", false),
             std::pair("rawArgs: {load: [a]}", true),
             std::pair("rawArgs: {unload: [-r, a]}", true),
             std::pair("rawArgs: {load: [], unload: []}", false),
         }) {
        CAPTURE(text);
        CHECK(api::has_raw_arguments(config_of(std::string("modprobe: {") + text + "}\n").modprobe) == has);
    }
    CHECK_FALSE(api::has_raw_arguments(config_of("modprobe: {rawArgs: {}}\n").modprobe));
}

}  // TEST_SUITE

}  // namespace
