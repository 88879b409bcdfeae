// SPDX-License-Identifier: Apache-2.0
#include "recipe/resource/expand.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/functions/functions.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

/// "amd64" of "5.14.0-427.40.1.el9_4.x86_64+rt".
std::string go_architecture(std::string_view kernel) {
    const auto plain = kernel.substr(0, kernel.find('+'));
    const auto last = plain.substr(plain.rfind('.') + 1);
    return std::string(last == "x86_64" ? "amd64" : last == "aarch64" ? "arm64" : last);
}

/// What "." is. Before charts, values stood there by names of their own.
Value root_of(const SpecialResource& resource, const Value& values) {
    tmpl::Map root{{"Values", values}};
    if (!resource.is_built_in()) { return Value::map(std::move(root)); }
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> k_names{
        {{"KernelVersion", "kernelFullVersion"},
         {"KernelFullVersion", "kernelFullVersion"},
         {"KernelPatchVersion", "kernelPatchVersion"},
         {"OperatingSystemMajor", "operatingSystemMajor"},
         {"OperatingSystemMajorMinor", "operatingSystemMajorMinor"},
         {"OperatingSystemDecimal", "operatingSystemDecimal"},
         {"ClusterVersion", "clusterVersion"},
         {"ClusterVersionMajorMinor", "clusterVersionMajorMinor"},
         {"DriverToolkitImage", "driverToolkitImage"},
         {"PushSecretName", "pushSecretName"},
         {"OSImageURL", "osImageURL"},
         {"SpecialResource", "specialresource"}}};
    for (const auto& [name, key] : k_names) {
        const auto found = values.members().find(std::string(key));
        if (found != values.members().end()) { root.emplace(name, found->second); }
    }
    if (const auto kernel = root.find("KernelVersion"); kernel != root.end()) {
        root.emplace("RuntimeArchitecture", Value::string(go_architecture(kernel->second.text())));
    }
    return Value::map(std::move(root));
}

class Expander {
public:
    Expander(const SpecialResource& resource, const Value& values, bool operator_only,
             const std::function<void(Diagnostic)>& notice)
        : resource_(resource), dot_(root_of(resource, values)), operator_only_(operator_only), notice_(notice) {}

    Value tree(const Value& value, const std::string& path) {
        if (value.is_text()) { return Value::string(text(value.text(), path)); }
        if (value.is_list()) {
            tmpl::List items;
            std::size_t index = 0;
            for (const auto& item : value.items()) {
                items.push_back(tree(item, fmt::format("{}[{}]", path, index++)));
            }
            return Value::list(std::move(items));
        }
        if (!value.is_map()) { return value; }
        tmpl::Map members;
        for (const auto& [key, member] : value.members()) {
            members[text(key, path + '.' + key)] = tree(member, path + '.' + key);
        }
        return Value::map(std::move(members));
    }

    std::string text(const std::string& text, const std::string& path) {
        if (text.find("{{") == std::string::npos) { return text; }
        try {
            return operator_only_ ? in_json(text) : in_tree(text, path);
        } catch (const Error& error) {
            // Of several places of one resource, all are reported.
            Diagnostic fault{Severity::error,       error.code(), fmt::format("{}: {}", path, error.message()),
                             resource_.place(path), error.hint(), error.exit()};
            if (operator_only_ && fault.hint.empty()) {
                fault.hint =
                    "the operator expands the JSON text: write back quotes for quotes, or leave out --compat sro";
            }
            faults_.push_back(std::move(fault));
            return text;
        }
    }

    void done() {
        if (!faults_.empty()) { throw Error::from_diagnostics(std::move(faults_)); }
    }

private:
    const SpecialResource& resource_;
    Value dot_;
    bool operator_only_;
    const std::function<void(Diagnostic)>& notice_;
    Diagnostics faults_;

    std::string in_json(const std::string& text) const {
        const std::string made = tmpl::expand_text(resource_.origin.file, tmpl::json_quoted(text, true), dot_);
        std::string fault;
        const Value read = tmpl::read_json_text(made, fault);
        if (!fault.empty() || !read.is_text()) {
            throw Error(Exit::data, "template-error",
                        fmt::format("the result is not a JSON text: {}", base::escape(made.substr(0, 100))));
        }
        return read.text();
    }

    std::string in_tree(const std::string& text, const std::string& path) const {
        const auto notice = [&](Diagnostic finding) {
            finding.position = resource_.place(path);
            finding.message = fmt::format("{}: {}", path, finding.message);
            if (notice_) { notice_(std::move(finding)); }
        };
        return tmpl::replace_all(tmpl::expand_text(resource_.origin.file, text, dot_, notice), "<no value>", "");
    }
};

}  // namespace

Expanded expand_resource(const SpecialResource& resource, const Value& values, bool operator_only,
                         const std::function<void(Diagnostic)>& notice) {
    Expander expander(resource, values, operator_only, notice);
    Expanded made;
    for (const auto& [key, member] : resource.object.members()) {
        // The operator's text is the whole object; a template in an annotation is no template of the recipe.
        if (key == "spec" || !operator_only) { continue; }
        (void)expander.tree(member, key);  // only faults count
    }
    Value set = Value::map({});
    tmpl::Map whole;
    const auto spec = resource.object.members().find("spec");
    for (const auto& [key, member] : spec == resource.object.members().end() ? tmpl::Map{} : spec->second.members()) {
        const Value expanded = expander.tree(member, "spec." + key);
        whole[key] = expanded;
        if (key == "set" && expanded.is_map()) { set = expanded; }
        if (key == "namespace") { made.name_space = expanded.text(); }
        if (key == "nodeSelector" && resource.api_version == k_group_version) {
            for (const auto& [label, text] : expanded.members()) { made.node_selector[label] = text.text(); }
        }
    }
    expander.done();
    (*set.shared_map())["kind"] = Value::string("Values");
    (*set.shared_map())["apiVersion"] = Value::string(std::string(k_group_version));
    made.set = expander.tree(set, "spec.set");
    made.spec = Value::map(std::move(whole));
    expander.done();
    if (made.name_space.empty()) { made.name_space = resource.name; }
    // The role of a pool and the labels of v1alpha1 stand elsewhere.
    if (resource.api_version != k_group_version) { made.node_selector = resource.node_selector; }
    return made;
}

}  // namespace kmm::recipe::plan
