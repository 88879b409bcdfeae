// SPDX-License-Identifier: Apache-2.0
// SpecialResource sro.openshift.io/v1alpha1, and v1beta1 before OpenShift 4.9: a driver container without a chart.
#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "recipe/resource/decode.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

Value string_value(api::Fields& fields, std::string_view key, api::Need need = api::Need::optional) {
    return Value::string(fields.string(key, need));
}

Value texts(const std::vector<std::string>& items) {
    tmpl::List made;
    for (const auto& item : items) { made.push_back(Value::string(item)); }
    return Value::list(std::move(made));
}

/// A list of texts, for which a single one may stand.
std::vector<std::string> one_or_many(api::Fields& fields, std::string_view key, api::Need need = api::Need::optional) {
    const value::Node* node = fields.get(key, need);
    if (node == nullptr) { return {}; }
    if (node->is_string()) { return {node->text()}; }
    return fields.strings(key).value_or(std::vector<std::string>{});
}

/// Items with `name` and some other texts.
Value named_items(api::Fields& owner, std::string_view key, std::initializer_list<std::string_view> members) {
    tmpl::List made;
    for (const auto& item : owner.items(key)) {
        api::Fields fields(owner.scope(), *item.node, item.path);
        tmpl::Map one;
        for (const auto member : members) {
            one[std::string(member)] = string_value(fields, member, api::Need::required);
        }
        fields.done();
        made.push_back(Value::map(std::move(one)));
    }
    return Value::list(std::move(made));
}

Value images(api::Fields& artifacts) {
    tmpl::List made;
    for (const auto& item : artifacts.items("images")) {
        api::Fields image(artifacts.scope(), *item.node, item.path);
        const auto has = [&](std::string_view key) { return item.node->find(key) != nullptr; };
        tmpl::Map one{{"name", string_value(image, "name", api::Need::required)},
                      {"kind", string_value(image, "kind")},
                      {"namespace", string_value(image, "namespace")},
                      {"pullSecret", string_value(image, has("pullsecret") ? "pullsecret" : "pullSecret")},
                      {"paths", named_items(image, has("path") ? "path" : "paths", {"sourcePath", "destinationDir"})}};
        const std::string kind = one["kind"].text();
        if (!kind.empty() && kind != "ImageStreamTag") {
            artifacts.scope().fault(
                "bad-value",
                fmt::format("{}.kind: expected ImageStreamTag, found \"{}\"", item.path, base::escape(kind)),
                image.node().find("kind")->mark());
        }
        image.done();
        made.push_back(Value::map(std::move(one)));
    }
    return Value::list(std::move(made));
}

Value driver_container(api::Fields& spec) {
    tmpl::Map git{{"ref", Value::string("")}, {"uri", Value::string("")}};
    const Value none = Value::list({});
    tmpl::Map artifacts{{"hostPaths", none}, {"images", none}, {"claims", none}};
    tmpl::Map made{{"buildArgs", none}, {"runArgs", none}};
    if (auto container = spec.child("driverContainer")) {
        if (auto source = container->child("source")) {
            if (auto given = source->child("git")) {
                git = {{"ref", string_value(*given, "ref")}, {"uri", string_value(*given, "uri", api::Need::required)}};
                given->done();
            }
            source->done();
        }
        made["buildArgs"] = named_items(*container, "buildArgs", {"name", "value"});
        made["runArgs"] = named_items(*container, "runArgs", {"name", "value"});
        if (auto given = container->child("artifacts")) {
            artifacts["hostPaths"] = named_items(*given, "hostPaths", {"sourcePath", "destinationDir"});
            artifacts["images"] = images(*given);
            artifacts["claims"] = named_items(*given, "claims", {"name", "mountPath"});
            given->done();
        }
        container->done();
    }
    made["source"] = Value::map({{"git", Value::map(std::move(git))}});
    made["artifacts"] = Value::map(std::move(artifacts));
    return Value::map(std::move(made));
}

/// Also by the names that it had at first: environment, with `key` for `name`.
Value configuration(api::Fields& spec) {
    tmpl::List made;
    for (const auto list : {"configuration", "environment"}) {
        for (const auto& item : spec.items(list)) {
            api::Fields entry(spec.scope(), *item.node, item.path);
            const bool has_key = item.node->find("key") != nullptr;
            tmpl::Map one;
            one["name"] = string_value(entry, has_key ? "key" : "name", api::Need::required);
            one["value"] = texts(one_or_many(entry, "value", api::Need::required));
            entry.done();
            made.push_back(Value::map(std::move(one)));
        }
    }
    return Value::list(std::move(made));
}

/// A label with one of several values, or a map of labels.
Value node_selector(api::Fields& spec, SpecialResource& resource) {
    const value::Node* node = spec.get("nodeSelector");
    if (node == nullptr) { return Value::map({}); }
    if (node->find("key") == nullptr) {
        for (const auto& [key, text] : spec.string_map("nodeSelector")) { resource.node_selector[key] = text; }
        return to_value(*node);
    }
    auto selector = spec.child("nodeSelector");
    resource.node_choice.key = selector->string("key", api::Need::required);
    for (const auto key : {"values", "value"}) {
        for (auto& text : one_or_many(*selector, key)) { resource.node_choice.values.push_back(std::move(text)); }
    }
    selector->done();
    if (resource.node_choice.values.empty()) { resource.node_choice.values.emplace_back("true"); }
    return Value::map(
        {{"key", Value::string(resource.node_choice.key)}, {"values", texts(resource.node_choice.values)}});
}

/// The first form of dependsOn: a mapping with a name, or a list of them.
Value dependencies_by_name(api::Fields& spec, SpecialResource& resource) {
    tmpl::List made;
    auto fields = spec.child("dependsOn");
    for (auto& name : one_or_many(*fields, "name", api::Need::required)) {
        RecipeDependency dependency;
        dependency.origin = fields->position_of("name");
        check_name(*fields, "name", name);
        dependency.name = std::move(name);
        dependency.set = Value::nil();
        made.push_back(
            Value::map({{"name", Value::string(dependency.name)}, {"imageReference", Value::boolean(false)}}));
        resource.dependencies.push_back(std::move(dependency));
    }
    fields->done();
    return Value::list(std::move(made));
}

Value dependencies(api::Fields& spec, SpecialResource& resource) {
    if (const value::Node* node = spec.node().find("dependsOn"); node != nullptr && node->is_mapping()) {
        return dependencies_by_name(spec, resource);
    }
    tmpl::List made;
    for (const auto& item : spec.items("dependsOn")) {
        api::Fields fields(spec.scope(), *item.node, item.path);
        RecipeDependency dependency;
        dependency.origin = spec.scope().document.position(item.node->mark());
        dependency.name = fields.string("name", api::Need::required);
        check_name(fields, "name", dependency.name);
        dependency.set = Value::nil();
        const value::Node* reference = fields.get("imageReference");
        if (reference != nullptr && reference->text() != "true" && reference->text() != "false") {
            fields.wrong_type(*reference, fields.path_of("imageReference"), "\"true\" or \"false\"");
        }
        dependency.image_reference = reference != nullptr && reference->text() == "true";
        fields.allow({"namespace"});  // the dependency says it itself
        fields.done();
        made.push_back(Value::map({{"name", Value::string(dependency.name)},
                                   {"imageReference", Value::boolean(dependency.image_reference)}}));
        resource.dependencies.push_back(std::move(dependency));
    }
    return Value::list(std::move(made));
}

}  // namespace

Value decode_spec_v1alpha1(api::Fields& spec, SpecialResource& resource) {
    resource.name_space = resource.name;
    std::string version;
    const auto take_namespace = [&](api::Fields& owner) {
        const std::string given = owner.string("namespace");
        if (given.empty()) { return; }
        resource.name_space = given;
        if (api::is_dns1123_label(given)) { return; }
        spec.scope().fault("bad-value",
                           fmt::format("{} \"{}\" is not valid", owner.path_of("namespace"), base::escape(given)),
                           owner.node().find("namespace")->mark(),
                           "a namespace has lower-case letters, digits and '-', at most 63 of them");
    };
    if (auto metadata = spec.child("metadata")) {
        version = metadata->string("version");
        take_namespace(*metadata);
        metadata->done();
    }
    take_namespace(spec);
    const std::string pool = spec.string("machineConfigPool");
    // By convention, the nodes of a pool have the role of its name.
    if (!pool.empty()) { resource.node_selector["node-role.kubernetes.io/" + pool] = ""; }
    if (auto node = spec.child("node")) {
        if (const std::string label = node->string("selector"); !label.empty()) {
            resource.node_selector[label] = "true";
        }
        node->done();
    }
    tmpl::Map labels;
    for (const auto& [key, text] : spec.string_map("matchLabels")) {
        resource.node_selector[key] = text;
        labels[key] = Value::string(text);
    }
    Value made = Value::map({{"metadata", Value::map({{"version", Value::string(version)},
                                                      {"namespace", Value::string(resource.name_space)}})},
                             {"namespace", Value::string(resource.name_space)},
                             {"machineConfigPool", Value::string(pool)},
                             {"matchLabels", Value::map(std::move(labels))},
                             {"configuration", configuration(spec)},
                             {"driverContainer", driver_container(spec)},
                             {"nodeSelector", node_selector(spec, resource)},
                             {"dependsOn", dependencies(spec, resource)}});
    spec.done();
    return made;
}

}  // namespace kmm::recipe::plan
