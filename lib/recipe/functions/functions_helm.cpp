// SPDX-License-Identifier: Apache-2.0
// Helm's own functions.
#include <fmt/format.h>

#include "recipe/functions/functions.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/toml.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_included_max = 1000;

Value include(Call& call, List& a) {
    const std::string& name = a[0].text();
    const Tree* tree = call.scope.find(name);
    if (tree == nullptr) {
        throw Fault{fmt::format("no template {} associated with template \"gotpl\"", quote_text(name)),
                    "template-error", call.scope.hint(name)};
    }
    int& depth = call.run.included[name];
    if (depth > k_included_max) {
        throw Fault{fmt::format("rendering template has a nested reference name: {}", name), "recipe-too-large",
                    "does it include itself without an end?"};
    }
    ++depth;
    std::string out = execute(call.run, call.scope, *tree, a[1].dug());
    --call.run.included[name];
    return Value::string(std::move(out));
}

Value tpl(Call& call, List& a) {
    Scope inner;
    inner.outer = &call.scope;
    auto source = std::make_shared<Source>(Source{"(tpl)", a[0].text()});
    const Tree* own = nullptr;
    for (auto& tree : parse("(tpl)", source, call.run.functions, call.run.budget)) {
        if (tree->name == "(tpl)") { own = tree.get(); }
        const bool is_own = tree->name == "(tpl)";
        if (is_own) {
            inner.trees["(tpl)"] = std::move(tree);
        } else {
            inner.add(std::move(tree));
        }
    }
    std::string out = execute(call.run, inner, *own, a[1].dug());
    return Value::string(replace_all(out, "<no value>", ""));
}

Value required(Call&, List& a) {
    if (a[1].is_nil() || (a[1].is_text() && a[1].text().empty())) {
        throw Fault{a[0].text(), "template-fail", "set the value"};
    }
    return a[1];
}

Value fail(Call&, List& a) { throw Fault{a[0].text(), "template-fail", ""}; }

Value from_yaml(Call&, List& a) {
    YamlFault fault;
    Value value = read_yaml_text(a[0].text(), fault);
    if (fault.message.empty() && value.is_map()) { return value; }
    if (fault.message.empty() && value.is_nil()) { return Value::map({}); }
    const std::string message = !fault.message.empty()
                                    ? "error converting YAML to JSON: " + fault.message
                                    : fmt::format(
                                          "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} "
                                          "into Go value of type map[string]interface {{}}",
                                          value.is_list()                 ? "array"
                                          : value.is_text()               ? "string"
                                          : value.type() == Type::boolean ? "bool"
                                                                          : "number");
    return Value::map({{"Error", Value::string(message)}});
}

Value from_yaml_array(Call&, List& a) {
    YamlFault fault;
    Value value = read_yaml_text(a[0].text(), fault);
    if (fault.message.empty() && value.is_list()) { return value; }
    if (fault.message.empty() && value.is_nil()) { return Value::list({}); }
    const std::string message = !fault.message.empty()
                                    ? "error converting YAML to JSON: " + fault.message
                                    : fmt::format(
                                          "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} "
                                          "into Go value of type []interface {{}}",
                                          value.is_map()                  ? "object"
                                          : value.is_text()               ? "string"
                                          : value.type() == Type::boolean ? "bool"
                                                                          : "number");
    return Value::list({Value::string(message)});
}

std::string json_kind(const Value& value) {
    return value.is_map()                  ? "object"
           : value.is_list()               ? "array"
           : value.is_text()               ? "string"
           : value.type() == Type::boolean ? "bool"
                                           : "number";
}

/// A value of another kind is Go's first fault, before numbers that are too large.
void check_json_kind(const Value& value, bool fits, std::string_view type, std::string& fault) {
    if (!fits && !value.is_nil()) {
        fault = fmt::format("json: cannot unmarshal {} into Go value of type {}", json_kind(value), type);
    }
}

Value from_json(Call& call, List& a) {
    std::string fault;
    Value value = read_json_text(a[0].text(), fault, &call.run.budget);
    check_json_kind(value, value.is_map(), "map[string]interface {}", fault);
    if (fault.empty()) { return value.is_nil() ? Value::none(Type::map) : value; }
    if (!value.is_map()) { value = Value::map({}); }
    (*value.shared_map())["Error"] = Value::string(fault);
    return value;
}

Value from_json_array(Call& call, List& a) {
    std::string fault;
    Value value = read_json_text(a[0].text(), fault, &call.run.budget);
    check_json_kind(value, value.is_list(), "[]interface {}", fault);
    if (!fault.empty()) { return Value::list({Value::string(fault)}); }
    return value.is_nil() ? Value::none(Type::list) : value;
}

/// Helm swallows what JSON does not have.
Value to_json(Call&, List& a) {
    try {
        return Value::string(write_json(a[0]));
    } catch (const Fault& fault) {
        if (fault.code != "template-error") { throw; }
        return Value::string("");
    }
}

}  // namespace

std::span<const Function> helm_functions() {
    static const Function table[] = {
        {"include", "sa", false, include},
        {"tpl", "sa", false, tpl},
        {"required", "sa", false, required},
        {"fail", "s", false, fail},
        {"lookup", "ssss", false, [](Call&, List&) { return Value::map({}); }},
        {"toYaml", "a", false, [](Call&, List& a) { return Value::string(to_yaml_text(a[0])); }},
        {"toYamlPretty", "a", false, [](Call&, List& a) { return Value::string(to_yaml_pretty(a[0])); }},
        {"fromYaml", "s", false, from_yaml},
        {"fromYamlArray", "s", false, from_yaml_array},
        {"toJson", "a", false, to_json},
        {"fromJson", "s", false, from_json},
        {"fromJsonArray", "s", false, from_json_array},
        {"toToml", "a", false, [](Call&, List& a) { return Value::string(write_toml(a[0])); }},
        {"fromToml", "s", false,
         [](Call& call, List& a) -> Value {
             try {
                 return read_toml(a[0].text(), &call.run.budget);
             } catch (const Fault& fault) {
                 if (fault.code != "template-error") { throw; }
                 return Value::map({{"Error", Value::string(fault.message)}});
             }
         }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
