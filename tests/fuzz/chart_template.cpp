// SPDX-License-Identifier: Apache-2.0
// Templates of charts: the first line is YAML of values, the rest a template. What is rendered twice is the same.
#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "fuzz/target.hpp"
#include "recipe/functions/functions.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/template/engine.hpp"

namespace {

std::string rendered(const std::string& text, const kmm::recipe::tmpl::Value& values) {
    using namespace kmm::recipe::tmpl;
    Limits limits;
    limits.steps_max = 20'000;
    limits.output_max = 1U << 20U;
    limits.depth_max = 100;
    try {
        ParsedFiles parsed(chart_library());
        Engine engine(parsed, limits);
        engine.add("t", text);
        return engine.render("t", Value::map({{"Values", deep_copy(values)}})).text;
    } catch (const kmm::Error& error) { return "error: " + error.code() + error.message(); }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string_view all = fuzz::text_of(data, size);
    const std::size_t line = std::min(all.find('\n'), all.size());
    recipe::tmpl::YamlFault fault;
    const auto values = recipe::tmpl::read_yaml_text(all.substr(0, line), fault);
    const std::string text(all.substr(std::min(line + 1, all.size())));
    const std::string out = rendered(text, values);
    fuzz::require(out == rendered(text, values), "the same template gives the same text");
    if (text.find("{{") == std::string::npos && text.find("<no value>") == std::string::npos) {
        fuzz::require(out == text, "text without actions stays");
    }
    return 0;
}
