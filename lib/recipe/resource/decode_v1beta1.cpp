// SPDX-License-Identifier: Apache-2.0
// SpecialResource sro.openshift.io/v1beta1, as of the operator's last release.
#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "recipe/resource/decode.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

Value text_member(api::Fields& fields, std::string_view key) { return Value::string(fields.string(key)); }

Value decode_paths(api::Fields& owner, std::string_view key) {
    tmpl::List made;
    for (const auto& item : owner.items(key)) {
        api::Fields path(owner.scope(), *item.node, item.path);
        tmpl::Map members{{"sourcePath", text_member(path, "sourcePath")},
                          {"destinationDir", text_member(path, "destinationDir")}};
        path.done();
        made.push_back(Value::map(std::move(members)));
    }
    return Value::list(std::move(made));
}

Value decode_artifacts(api::Fields& artifacts) {
    tmpl::Map members;
    if (artifacts.get("hostPaths") != nullptr) { members["hostPaths"] = decode_paths(artifacts, "hostPaths"); }
    if (artifacts.get("images") != nullptr) {
        tmpl::List made;
        for (const auto& item : artifacts.items("images")) {
            api::Fields image(artifacts.scope(), *item.node, item.path);
            tmpl::Map one{{"name", text_member(image, "name")},
                          {"kind", text_member(image, "kind")},
                          {"namespace", text_member(image, "namespace")}};
            if (image.get("pullsecret") != nullptr) { one["pullsecret"] = text_member(image, "pullsecret"); }
            one["path"] = decode_paths(image, "path");
            image.done();
            made.push_back(Value::map(std::move(one)));
        }
        members["images"] = Value::list(std::move(made));
    }
    if (artifacts.get("claims") != nullptr) {
        tmpl::List made;
        for (const auto& item : artifacts.items("claims")) {
            api::Fields claim(artifacts.scope(), *item.node, item.path);
            made.push_back(
                Value::map({{"name", text_member(claim, "name")}, {"mountPath", text_member(claim, "mountPath")}}));
            claim.done();
        }
        members["claims"] = Value::list(std::move(made));
    }
    artifacts.done();
    return Value::map(std::move(members));
}

Value decode_driver_container(api::Fields& spec) {
    tmpl::Map git{{"ref", Value::string("")}, {"uri", Value::string("")}};
    Value artifacts = Value::map({});
    if (auto container = spec.child("driverContainer")) {
        if (auto source = container->child("source")) {
            if (auto given = source->child("git")) {
                git = {{"ref", text_member(*given, "ref")}, {"uri", text_member(*given, "uri")}};
                given->done();
            }
            source->done();
        }
        if (auto given = container->child("artifacts")) { artifacts = decode_artifacts(*given); }
        container->done();
    }
    return Value::map(
        {{"source", Value::map({{"git", Value::map(std::move(git))}})}, {"artifacts", std::move(artifacts)}});
}

Management decode_management(api::Fields& spec, tmpl::Map& members) {
    const std::string state = spec.string("managementState");
    if (state.empty()) { return Management::managed; }
    members["managementState"] = Value::string(state);
    if (state == "Managed" || state == "Force") { return Management::managed; }
    if (state == "Unmanaged") { return Management::unmanaged; }
    if (state == "Removed") { return Management::removed; }
    const std::vector<std::string> known{"Managed", "Force", "Unmanaged", "Removed"};
    const auto near = base::nearest(state, known);
    spec.scope().fault(
        "bad-value",
        fmt::format("spec.managementState: expected {}, found \"{}\"", base::join(known, ", "), base::escape(state)),
        spec.node().find("managementState")->mark(), near ? fmt::format("did you mean {}?", *near) : "");
    return Management::managed;
}

}  // namespace

Value decode_spec_v1beta1(api::Fields& spec, SpecialResource& resource) {
    tmpl::Map members;
    const value::Node* given = spec.node().find("chart");
    if (given == nullptr || given->is_null()) {
        spec.scope().fault("missing-field", "required field spec.chart is missing", spec.node().mark(),
                           "apiVersion sro.openshift.io/v1alpha1 is the form without a chart");
    }
    if (auto chart = spec.child("chart")) {
        Value written;
        resource.chart = decode_chart(*chart, written);
        members["chart"] = std::move(written);
    }
    resource.name_space = spec.string("namespace", api::Need::required);
    if (resource.name_space.find("{{") == std::string::npos && !resource.name_space.empty() &&
        !api::is_dns1123_label(resource.name_space)) {
        spec.scope().fault("bad-value",
                           fmt::format("spec.namespace \"{}\" is not valid", base::escape(resource.name_space)),
                           spec.node().find("namespace")->mark(),
                           "a namespace has lower-case letters, digits and '-', at most 63 of them");
    }
    members["namespace"] = Value::string(resource.name_space);
    members["forceUpgrade"] = Value::boolean(spec.boolean("forceUpgrade"));
    members["debug"] = Value::boolean(spec.boolean("debug"));
    const Value set = decode_set(spec, "set");
    members["set"] = set.is_nil() ? Value::map({}) : set;
    members["driverContainer"] = decode_driver_container(spec);
    for (const auto& [key, text] : spec.string_map("nodeSelector")) { resource.node_selector.emplace(key, text); }
    if (!resource.node_selector.empty()) {
        tmpl::Map selector;
        for (const auto& [key, text] : resource.node_selector) { selector[key] = Value::string(text); }
        members["nodeSelector"] = Value::map(std::move(selector));
    }
    tmpl::List dependencies;
    for (const auto& item : spec.items("dependencies")) {
        api::Fields fields(spec.scope(), *item.node, item.path);
        RecipeDependency dependency;
        dependency.origin = spec.scope().document.position(item.node->mark());
        tmpl::Map written;
        if (auto chart = fields.child("chart", api::Need::required)) {
            Value reference;
            dependency.chart = decode_chart(*chart, reference);
            check_name(*chart, "name", dependency.chart.name);
            written["chart"] = std::move(reference);
        }
        dependency.name = dependency.chart.name;
        dependency.set = decode_set(fields, "set");
        if (dependency.set.is_nil()) { dependency.set = Value::map({}); }
        written["set"] = dependency.set;
        fields.done();
        dependencies.push_back(Value::map(std::move(written)));
        resource.dependencies.push_back(std::move(dependency));
    }
    if (!dependencies.empty()) { members["dependencies"] = Value::list(std::move(dependencies)); }
    resource.management = decode_management(spec, members);
    spec.done();
    return Value::map(std::move(members));
}

}  // namespace kmm::recipe::plan
