// SPDX-License-Identifier: Apache-2.0
#include "recipe/resource/resource.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/fields.hpp"
#include "api/names.hpp"
#include "api/recipe_kind.hpp"
#include "base/text.hpp"
#include "recipe/resource/decode.hpp"

namespace kmm::recipe::plan {

using tmpl::Type;
using tmpl::Value;
using value::Node;

namespace {

constexpr std::size_t k_release_name_max = 53;
constexpr const char* k_version_without_charts = "sro.openshift.io/v1alpha1";

/// Whether a spec of v1beta1 has the fields that it had before the operator took charts, up to OpenShift 4.8. Those are
/// the fields of v1alpha1.
bool is_before_charts(const Node& spec) {
    const auto has = [&](std::string_view key) {
        const Node* found = spec.find(key);
        return found != nullptr && !found->is_null();
    };
    static constexpr std::array<std::string_view, 6> k_with_charts{"chart",        "set",   "dependencies",
                                                                   "forceUpgrade", "debug", "managementState"};
    static constexpr std::array<std::string_view, 6> k_before{"configuration",     "environment", "node", "dependsOn",
                                                              "machineConfigPool", "driverContainer"};
    return std::none_of(k_with_charts.begin(), k_with_charts.end(), has) &&
           std::any_of(k_before.begin(), k_before.end(), has);
}

/// null if there are none, as Go has it.
Value decode_tags(api::Fields& chart) {
    const auto tags = chart.strings("tags");
    if (!tags) { return Value::nil(); }
    tmpl::List items;
    for (const auto& tag : *tags) { items.push_back(Value::string(tag)); }
    return Value::list(std::move(items));
}

}  // namespace

void note_places(const Node& node, const std::string& path, const value::Document& document,
                 std::map<std::string, Position, std::less<>>& places) {
    places[path] = document.position(node.mark());
    for (const auto& member : node.members()) {
        note_places(member.value, path.empty() ? member.key : path + '.' + member.key, document, places);
    }
    std::size_t index = 0;
    for (const auto& item : node.items()) { note_places(item, fmt::format("{}[{}]", path, index++), document, places); }
}

void check_name(const api::Fields& owner, std::string_view key, const std::string& name) {
    const Node* node = owner.node().find(key);
    if (node == nullptr || node->is_null() || node->is_mapping() || name.empty()) { return; }
    if (!api::is_dns1123_subdomain(name)) {
        owner.scope().fault("bad-value", fmt::format("{} \"{}\" is not valid", owner.path_of(key), base::escape(name)),
                            node->mark(), "a name has lower-case letters, digits, '-' and '.'");
    } else if (name.size() > k_release_name_max) {
        owner.scope().fault("bad-value",
                            fmt::format("{}: expected at most {} characters, found {}", owner.path_of(key),
                                        k_release_name_max, name.size()),
                            node->mark(), "the name is also that of the Helm release, which has this limit");
    }
}

void decode_metadata(api::Fields& root, SpecialResource& resource) {
    auto metadata = root.child("metadata", api::Need::required);
    if (!metadata) { return; }
    resource.name = metadata->string("name", api::Need::required);
    resource.uid = metadata->string("uid");
    check_name(*metadata, "name", resource.name);
    metadata->string_map("labels");
    metadata->string_map("annotations");
    metadata->allow({"namespace", "creationTimestamp", "generation", "resourceVersion", "finalizers", "ownerReferences",
                     "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"});
    metadata->done();
}

Value SpecialResource::set() const {
    const auto spec = object.members().find("spec");
    if (spec == object.members().end()) { return Value::map({}); }
    const auto found = spec->second.members().find("set");
    return found == spec->second.members().end() || !found->second.is_map() ? Value::map({}) : found->second;
}

Position SpecialResource::place(std::string_view path) const {
    for (std::string_view rest = path;;) {
        if (const auto found = places.find(rest); found != places.end()) { return found->second; }
        const std::size_t end = rest.find_last_of(".[");
        if (end == std::string_view::npos) { return origin; }
        rest = rest.substr(0, end);
    }
}

Value to_value(const Node& node) {
    switch (node.kind()) {
        case value::Kind::null: return Value::nil();
        case value::Kind::boolean: return Value::boolean(*node.as_bool());
        case value::Kind::integer:
            if (const auto number = node.as_int()) { return Value::integer(*number, Type::int64); }
            return Value::real(std::stod(node.text()));
        case value::Kind::floating: {
            const double number = std::stod(node.text());
            // JSON does not tell 1.0 from 1.
            if (number == static_cast<double>(static_cast<std::int64_t>(number)) && number > -9e15 && number < 9e15) {
                return Value::integer(static_cast<std::int64_t>(number), Type::int64);
            }
            return Value::real(number);
        }
        case value::Kind::string: return Value::string(node.text());
        case value::Kind::sequence: {
            tmpl::List items;
            for (const auto& item : node.items()) { items.push_back(to_value(item)); }
            return Value::list(std::move(items));
        }
        case value::Kind::mapping: break;
    }
    tmpl::Map members;
    for (const auto& member : node.members()) { members[member.key] = to_value(member.value); }
    return Value::map(std::move(members));
}

bool is_of_operator(const value::Document& document, std::string_view kind) {
    return document.root.get_string({"kind"}) == kind &&
           api::is_recipe_kind(document.root.get_string({"apiVersion"}), kind);
}

bool is_special_resource(const value::Document& document) { return is_of_operator(document, "SpecialResource"); }

ChartReference decode_chart(api::Fields& chart, Value& written) {
    ChartReference made;
    made.origin = chart.scope().document.position(chart.node().mark());
    made.name = chart.string("name", api::Need::required);
    made.version = chart.string("version", api::Need::required);
    Value tags = decode_tags(chart);
    tmpl::Map repository{{"name", Value::string("")}, {"url", Value::string("")}};
    for (const auto key : {"username", "password", "certFile", "keyFile", "caFile"}) {
        repository[key] = Value::string("");
    }
    repository["insecure_skip_tls_verify"] = Value::boolean(false);
    if (auto given = chart.child("repository", api::Need::required)) {
        made.repository = given->string("name", api::Need::required);
        made.url = given->string("url", api::Need::required);
        for (const auto key : {"name", "url", "username", "password", "certFile", "keyFile", "caFile"}) {
            repository[key] = Value::string(given->string(key));
        }
        repository["insecure_skip_tls_verify"] = Value::boolean(given->boolean("insecure_skip_tls_verify"));
        given->done();
    }
    chart.done();
    written = Value::map({{"name", Value::string(made.name)},
                          {"version", Value::string(made.version)},
                          {"repository", Value::map(std::move(repository))},
                          {"tags", std::move(tags)}});
    return made;
}

Value decode_set(api::Fields& owner, std::string_view key) {
    const Node* set = owner.get(key);
    if (set == nullptr) { return Value::nil(); }
    if (!set->is_mapping()) {
        owner.wrong_type(*set, owner.path_of(key), "mapping");
        return Value::nil();
    }
    return to_value(*set);
}

SpecialResource decode_special_resource(const value::Document& document, Diagnostics& faults) {
    SpecialResource resource;
    resource.origin = document.position(document.root.mark());
    note_places(document.root, "", document, resource.places);
    api::Scope scope{document, faults};
    api::Fields root(scope, document.root, "");
    resource.api_version = root.string("apiVersion");
    root.string("kind");
    decode_metadata(root, resource);
    tmpl::Map object{{"apiVersion", Value::string(resource.api_version)}, {"kind", Value::string("SpecialResource")}};
    tmpl::Map metadata;
    if (const Node* given = document.root.find("metadata"); given != nullptr) { metadata = to_value(*given).members(); }
    metadata.emplace("creationTimestamp", Value::nil());
    object["metadata"] = Value::map(std::move(metadata));
    auto spec = root.child("spec", api::Need::required);
    if (resource.api_version == k_group_version && spec && is_before_charts(spec->node())) {
        resource.api_version = k_version_without_charts;
        object["apiVersion"] = Value::string(resource.api_version);
    }
    if (resource.api_version == k_group_version) {
        if (spec) { object["spec"] = decode_spec_v1beta1(*spec, resource); }
    } else if (resource.api_version == k_version_without_charts) {
        if (spec) { object["spec"] = decode_spec_v1alpha1(*spec, resource); }
    } else {
        scope.fault("bad-value",
                    fmt::format("apiVersion: expected {} or {}, found \"{}\"", k_group_version,
                                k_version_without_charts, base::escape(resource.api_version)),
                    document.root.find("apiVersion")->mark(), "write the resource for one of them");
        return resource;
    }
    root.allow({"status"});
    root.done();
    object["status"] = Value::map({{"state", Value::string(document.root.get_string({"status", "state"}))}});
    resource.object = Value::map(std::move(object));
    return resource;
}

}  // namespace kmm::recipe::plan
