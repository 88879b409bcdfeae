// SPDX-License-Identifier: Apache-2.0
// Methods of the values that Helm gives to templates.
#include <fmt/format.h>

#include "recipe/functions/functions.hpp"
#include "recipe/golib/glob.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"

#include "base/text.hpp"

namespace kmm::recipe::tmpl {

namespace {

Value file_bytes(const Value& files, const std::string& name) {
    const auto found = files.members().find(name);
    return found != files.members().end() ? found->second : Value::string("", Type::bytes);
}

Value matching(const Value& files, const std::string& pattern) {
    Map found;
    for (const auto& [name, bytes] : files.members()) {
        if (glob_match(pattern, name)) { found.emplace(name, bytes); }
    }
    return Value::files(std::move(found), files.as_int() != 0);
}

Value as_data(const Value& files, bool encode) {
    Map members;
    for (const auto& [name, bytes] : files.members()) {
        members[base_path(name)] = Value::string(encode ? base::to_base64(bytes.text()) : bytes.text());
    }
    return Value::string(std::string(to_yaml_text(Value::map(std::move(members), Type::string_map))));
}

Value lines_of(const Value& files, const std::string& name) {
    std::string text = file_bytes(files, name).text();
    const bool ends_with_empty = files.as_int() != 0;
    if (ends_with_empty ? files.members().count(name) == 0 : text.empty()) { return Value::strings({}); }
    if (!ends_with_empty && text.back() == '\n') { text.pop_back(); }
    return Value::strings(split_text(text, "\n"));
}

BoundMethod file_method(const Value& files, std::string_view name) {
    if (name == "Get") {
        return {"s", [files](const List& a) { return Value::string(file_bytes(files, a[0].text()).text()); }};
    }
    if (name == "GetBytes") { return {"s", [files](const List& a) { return file_bytes(files, a[0].text()); }}; }
    if (name == "Glob") { return {"s", [files](const List& a) { return matching(files, a[0].text()); }}; }
    if (name == "Lines") { return {"s", [files](const List& a) { return lines_of(files, a[0].text()); }}; }
    if (name == "AsConfig") { return {"", [files](const List&) { return as_data(files, false); }}; }
    if (name == "AsSecrets") { return {"", [files](const List&) { return as_data(files, true); }}; }
    return {};
}

Value table_of(Value at, const std::string& path) {
    for (const auto& name : split_text(path, ".")) {
        const auto found = at.members().find(name);
        if (found == at.members().end() || !found->second.is_map()) {
            throw Fault{fmt::format("\"{}\" is not a table", name)};
        }
        const Value next = found->second.as(Type::values);
        at = next;
    }
    return at;
}

Value path_value(const Value& values, const std::string& path) {
    if (path.empty()) { throw Fault{"YAML path cannot be empty"}; }
    const std::size_t dot = path.rfind('.');
    const std::string key = dot == std::string::npos ? path : path.substr(dot + 1);
    const Value table = dot == std::string::npos ? values : table_of(values, path.substr(0, dot));
    const auto found = table.members().find(key);
    if (found == table.members().end() || found->second.is_map()) {
        throw Fault{fmt::format("\"{}\" is not a value", key)};
    }
    return found->second;
}

BoundMethod values_method(const Value& values, std::string_view name) {
    if (name == "YAML") { return {"", [values](const List&) { return Value::string(write_yaml(values)); }}; }
    if (name == "AsMap") {
        return {"", [values](const List&) { return values.is_none() ? Value::map({}) : values.as(Type::map); }};
    }
    if (name == "Table") { return {"s", [values](const List& a) { return table_of(values, a[0].text()); }}; }
    if (name == "PathValue") { return {"s", [values](const List& a) { return path_value(values, a[0].text()); }}; }
    if (name == "Encode") {
        return {"", [](const List&) -> Value { throw Fault{"Encode needs a writer, which templates do not have"}; }};
    }
    return {};
}

BoundMethod time_method(const Value& value, std::string_view name) {
    if (name == "Format") {
        return {"s", [value](const List& a) { return Value::string(format_time(value.as_time(), a[0].text())); }};
    }
    if (name == "String") { return {"", [value](const List&) { return Value::string(time_text(value.as_time())); }}; }
    if (name == "Unix") {
        return {"", [value](const List&) { return Value::integer(value.as_time().seconds, Type::int64); }};
    }
    const auto number = [&](const char* layout) -> BoundMethod {
        return {"", [value, layout](const List&) {
                    List text{Value::string(format_time(value.as_time(), layout))};
                    return Value::integer(to_int(text[0]));
                }};
    };
    if (name == "Year") { return number("2006"); }
    if (name == "Day") { return number("2"); }
    if (name == "Hour") {
        return {"", [value](const List&) {
                    return Value::integer((value.as_time().seconds + value.as_time().offset) / 3600 % 24);
                }};
    }
    if (name == "Minute") { return number("4"); }
    if (name == "Second") { return number("5"); }
    return {};
}

}  // namespace

BoundMethod find_method(const Value& receiver, std::string_view name) {
    switch (receiver.type()) {
        case Type::files: return file_method(receiver, name);
        case Type::values: return values_method(receiver, name);
        case Type::time: return time_method(receiver, name);
        case Type::versions:
            if (name != "Has") { return {}; }
            return {"s", [receiver](const List& a) {
                        for (const auto& item : receiver.items()) {
                            if (item.text() == a[0].text()) { return Value::boolean(true); }
                        }
                        return Value::boolean(false);
                    }};
        case Type::record:
            for (const auto& method : receiver.as_record()->methods) {
                if (method.name == name) { return {method.parameters, method.call}; }
            }
            return {};
        default: return {};
    }
}

}  // namespace kmm::recipe::tmpl
