// SPDX-License-Identifier: Apache-2.0
// Annotations and labels of the toolkit itself, kmmtools.dev/...: a misspelt one is a setting that is lost.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/decide/policy.hpp"
#include "plan/lint/findings.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_own_prefix = "kmmtools.dev/";

/// What people write, as annotations of Modules.
constexpr std::array k_settings{k_annotation_unload_policy, k_annotation_needs};

/// What runs of kmm-upgrade write on what they change or create.
constexpr std::array<std::string_view, 11> k_run_marks{
    "kmmtools.dev/recipe", "kmmtools.dev/release-of", "kmmtools.dev/hook-run",      "kmmtools.dev/cordoned-by",
    "kmmtools.dev/run",    "kmmtools.dev/paused-by",  "kmmtools.dev/downgraded-by", "kmmtools.dev/verb",
    "kmmtools.dev/module", "kmmtools.dev/worker-config", "kmmtools.dev/module-namespace"};

template <typename List>
bool is_one_of(const List& list, std::string_view key) {
    return std::find(list.begin(), list.end(), key) != list.end();
}

/// Whether the key is of the toolkit, or was meant to be: a setting below a prefix that is nearly its own.
bool is_own_key(std::string_view key) {
    if (key.starts_with(k_own_prefix)) { return true; }
    const std::size_t slash = key.find('/');
    if (slash == std::string_view::npos) { return false; }
    const std::string_view name = key.substr(slash + 1);
    const bool has_name = std::any_of(k_settings.begin(), k_settings.end(), [&](std::string_view setting) {
        return setting.substr(k_own_prefix.size()) == name;
    });
    const std::vector<std::string> prefix{std::string(k_own_prefix.substr(0, k_own_prefix.size() - 1))};
    return has_name && base::nearest(key.substr(0, slash), prefix);
}

/// The setting that was meant, "" if none is near.
std::string meant_setting(std::string_view key) {
    std::vector<std::string> names;
    for (const auto setting : k_settings) { names.emplace_back(setting.substr(k_own_prefix.size())); }
    std::string name(key.substr(key.find('/') + 1));
    std::replace(name.begin(), name.end(), '_', '-');
    const auto near = base::nearest(name, names);
    return near ? std::string(k_own_prefix) + *near : "";
}

std::string own_key_hint(std::string_view key) {
    if (const std::string meant = meant_setting(key); !meant.empty()) { return fmt::format("did you mean {}?", meant); }
    return fmt::format("the annotations of Modules are {} and {}", k_settings[0], k_settings[1]);
}

/// Labels that a selector of a Module or ManagedClusterModule names: whoever wrote it chose them.
std::set<std::string> selected_keys(const api::Objects& objects) {
    std::set<std::string> keys;
    const auto add = [&](const api::Labels& selector) {
        for (const auto& [key, text] : selector) { keys.insert(key); }
    };
    const auto add_module = [&](const api::Module& module) {
        add(module.selector);
        if (!module.module_loader) { return; }
        const auto& container = module.module_loader->container;
        if (container.build) { add(container.build->selector); }
        for (const auto& mapping : container.kernel_mappings) {
            if (mapping.build) { add(mapping.build->selector); }
        }
    };
    for (const auto* list : {&objects.modules, &objects.doubles}) {
        for (const auto& module : *list) { add_module(module); }
    }
    for (const auto& object : objects.managed_cluster_modules) {
        add(object.selector);
        add_module(object.module);
    }
    return keys;
}

/// Whether a label is a setting in the wrong place, maybe misspelt. Others are labels that people select by.
bool is_lost_label(const std::string& key, const std::set<std::string>& selected) {
    return is_own_key(key) && !is_one_of(k_run_marks, key) && !selected.contains(key) && !meant_setting(key).empty();
}

void check_module_keys(const api::Module& module, const char* kind, const std::set<std::string>& selected,
                       Diagnostics& diagnostics) {
    const bool is_module = std::string_view(kind) == "Module";
    Findings findings(module, is_module ? "Module " + module.full_name() : fmt::format("{} {}", kind, module.meta.name),
                      diagnostics);
    const auto report = [&](const char* field, const std::string& key, const std::string& what, std::string hint) {
        findings.warning(fmt::format("metadata.{}[{}]", field, key), "annotation-idle",
                         fmt::format("{} {} {}", std::string_view(field) == "labels" ? "label" : "annotation",
                                     base::escape(key), what),
                         std::move(hint));
    };
    for (const auto& [key, text] : module.meta.annotations) {
        if (!is_own_key(key) || is_one_of(k_run_marks, key)) { continue; }
        if (!is_one_of(k_settings, key)) {
            report("annotations", key, "is unknown and has no effect", own_key_hint(key));
        } else if (!is_module) {
            report("annotations", key, "has no effect: only that of a Module has one",
                   "annotate the Modules in the clusters: no hub copies annotations to them");
        }
    }
    for (const auto& [key, text] : module.meta.labels) {
        if (!is_lost_label(key, selected)) { continue; }
        if (is_one_of(k_settings, key)) {
            report("labels", key, "has no effect: it is an annotation", "write it below metadata.annotations");
        } else {
            report("labels", key, "is unknown and has no effect",
                   fmt::format("did you mean the annotation {}? write it below metadata.annotations",
                               meant_setting(key)));
        }
    }
}

}  // namespace

void check_own_keys(const api::Objects& objects, Diagnostics& diagnostics) {
    const auto selected = selected_keys(objects);
    for (const auto* list : {&objects.modules, &objects.doubles}) {
        for (const auto& module : *list) { check_module_keys(module, "Module", selected, diagnostics); }
    }
    for (const auto& object : objects.managed_cluster_modules) {
        api::Module module = object.module;
        module.meta = object.meta;
        check_module_keys(module, "ManagedClusterModule", selected, diagnostics);
    }
    struct Seen {
        std::size_t count = 0;
        const api::Node* first = nullptr;
        const char* field = "";
    };
    std::map<std::string, Seen> seen;
    const auto note = [&](const api::Node& node, const std::string& key, const char* field) {
        auto& one = seen[key];
        if (one.count++ == 0) { one = {1, &node, field}; }
    };
    for (const auto& node : objects.nodes) {
        for (const auto& [key, text] : node.meta.annotations) {
            if (is_own_key(key) && !is_one_of(k_run_marks, key)) { note(node, key, "annotation"); }
        }
        for (const auto& [key, text] : node.meta.labels) {
            if (is_lost_label(key, selected)) { note(node, key, "label"); }
        }
    }
    for (const auto& [key, one] : seen) {
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "annotation-idle";
        finding.message = fmt::format("{} {} of {} has no effect", one.field, base::escape(key),
                                      one.count == 1 ? fmt::format("node {}", one.first->meta.name)
                                                     : fmt::format("{} nodes, first {}", one.count,
                                                                   one.first->meta.name));
        const auto meant = meant_setting(key);
        if (meant.empty()) {
            finding.hint = "remove it: nothing reads it";
        } else if (meant == key) {
            finding.hint = "annotate the Module: it applies to all of its nodes";
        } else {
            finding.hint = fmt::format("did you mean {}, an annotation of Modules?", meant);
        }
        if (!one.first->meta.origin.file.empty()) { finding.position = one.first->meta.origin; }
        diagnostics.push_back(std::move(finding));
    }
}

}  // namespace kmm::plan
