// SPDX-License-Identifier: Apache-2.0
// Labels of Nodes and of Namespaces that decide what KMM can do there. Facts: KMM 1.1.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_prefix = "kmm.node.kubernetes.io/";
constexpr std::string_view k_beta_prefix = "beta.kmm.node.kubernetes.io/";
constexpr std::array<std::string_view, 1> k_admin_words{"version-module"};
constexpr std::array<std::string_view, 4> k_beta_words{"version-worker-pod", "version-schedule-pod",
                                                       "version-device-plugin", "version-module-loader"};
constexpr std::array<std::string_view, 4> k_endings{"ready", "device-plugin-ready", "dra-ready",
                                                    "device-plugin-target"};

template <typename List>
bool is_among(const List& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// A label key of KMM's form, taken apart.
struct KmmKey {
    std::string_view prefix, word, rest;  ///< word: before the first '.', rest: after it
};

std::optional<KmmKey> kmm_key(std::string_view key) {
    const std::size_t slash = key.find('/');
    if (slash == std::string_view::npos || key.substr(0, slash).find("kmm") == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view name = key.substr(slash + 1);
    const std::size_t dot = name.find('.');
    return KmmKey{key.substr(0, slash + 1), name.substr(0, dot),
                  dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1)};
}

/// What key may have been meant, "" if the key is as KMM has it.
class LabelCheck {
public:
    explicit LabelCheck(const api::Objects& objects) {
        for (const auto& module : objects.modules) {
            if (module.module_loader && !module.module_loader->container.version.empty()) {
                known_.insert(module.meta.namespace_ + "." + module.meta.name);
            }
        }
    }

    struct Fault {
        std::string what, meant;
    };

    std::optional<Fault> look(std::string_view key) const {
        const auto parts = kmm_key(key);
        if (!parts) { return std::nullopt; }
        const bool is_beta = parts->prefix == k_beta_prefix;
        if (!is_beta && parts->prefix != k_prefix) { return wrong_prefix(*parts); }
        if (is_admin(parts->word)) {
            return is_beta ? as_key("is not a key of KMM", k_prefix, *parts) : wrong_module(*parts);
        }
        if (is_among(k_beta_words, parts->word)) {
            return is_beta ? wrong_module(*parts) : as_key("is not a key of KMM", k_beta_prefix, *parts);
        }
        const std::size_t last = key.find_last_of('.');
        if (parts->prefix == k_prefix && is_among(k_endings, key.substr(last + 1))) { return std::nullopt; }
        if (auto fault = misspelt_word(*parts)) { return fault; }
        return parts->prefix == k_prefix ? misspelt_ending(key) : std::nullopt;
    }

private:
    static bool is_admin(std::string_view word) { return is_among(k_admin_words, word); }

    static Fault as_key(std::string what, std::string_view prefix, const KmmKey& parts) {
        return {std::move(what), fmt::format("{}{}.{}", prefix, parts.word, parts.rest)};
    }

    static std::optional<Fault> wrong_prefix(const KmmKey& parts) {
        const bool is_beta = is_among(k_beta_words, parts.word);
        const std::size_t last = parts.rest.find_last_of('.');
        if (last != std::string_view::npos && is_among(k_endings, parts.rest.substr(last + 1)) &&
            base::nearest(parts.prefix, std::vector<std::string>{std::string(k_prefix)})) {
            return as_key("is not a key of KMM", k_prefix, parts);
        }
        if (!is_beta && !is_admin(parts.word)) { return std::nullopt; }  // of others
        return as_key("is not a key of KMM", is_beta ? k_beta_prefix : k_prefix, parts);
    }

    static std::optional<Fault> misspelt_word(const KmmKey& parts) {
        std::vector<std::string> words(k_admin_words.begin(), k_admin_words.end());
        words.insert(words.end(), k_beta_words.begin(), k_beta_words.end());
        std::string word(parts.word);
        std::replace(word.begin(), word.end(), '_', '-');
        const auto near = base::nearest(base::to_lower(word), words);
        if (!near) { return std::nullopt; }
        return Fault{
            "is not a key of KMM",
            fmt::format("{}{}.{}", *near == k_admin_words.front() ? k_prefix : k_beta_prefix, *near, parts.rest)};
    }

    /// "NAMESPACE.NAME.redy".
    static std::optional<Fault> misspelt_ending(std::string_view key) {
        const std::size_t last = key.find_last_of('.');
        const auto near = base::nearest(base::to_lower(key.substr(last + 1)),
                                        std::vector<std::string>(k_endings.begin(), k_endings.end()));
        if (!near) { return std::nullopt; }
        return Fault{"is not a key of KMM", fmt::format("{}.{}", key.substr(0, last), *near)};
    }

    /// Labels of Modules that were not read are many. What is nearly one that was read is a slip.
    std::optional<Fault> wrong_module(const KmmKey& parts) const {
        if (known_.empty() || known_.contains(std::string(parts.rest))) { return std::nullopt; }
        std::string meant;
        for (const auto& name : known_) {
            const std::size_t dot = name.find('.');
            const std::string turned = name.substr(dot + 1) + "." + name.substr(0, dot);
            if (turned == parts.rest || name.substr(dot + 1) == parts.rest || base::to_lower(parts.rest) == name) {
                meant = name;
            }
        }
        if (meant.empty()) {
            const auto near = base::nearest(parts.rest, std::vector<std::string>(known_.begin(), known_.end()));
            if (!near) { return std::nullopt; }
            meant = *near;
        }
        return Fault{"names no Module with a version that was read",
                     fmt::format("{}{}.{}", parts.prefix, parts.word, meant)};
    }

    std::set<std::string> known_;  ///< "NAMESPACE.NAME" of Modules with a version
};

constexpr std::string_view k_pod_security = "pod-security.kubernetes.io/";
constexpr std::string_view k_enforce = "pod-security.kubernetes.io/enforce";

}  // namespace

void check_node_labels(const api::Objects& objects, Diagnostics& diagnostics) {
    const LabelCheck check(objects);
    struct Seen {
        LabelCheck::Fault fault;
        std::size_t count = 0;
        std::string first;
        Position place;
    };
    std::map<std::string, Seen> seen;
    for (const auto& node : objects.nodes) {
        for (const auto& [key, text] : node.meta.labels) {
            if (key.find("kmm") == std::string::npos) { continue; }
            const auto fault = check.look(key);
            if (!fault) { continue; }
            Seen& one = seen[key];
            if (one.count++ == 0) { one = Seen{*fault, 1, node.meta.name, node.meta.origin}; }
        }
    }
    for (const auto& [key, one] : seen) {
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "label-unknown";
        finding.message = one.count == 1
                              ? fmt::format("label {} of node {} {}", base::escape(key), one.first, one.fault.what)
                              : fmt::format("label {} of {} nodes, first {}, {}", base::escape(key), one.count,
                                            one.first, one.fault.what);
        finding.hint = fmt::format("did you mean {}?", base::escape(one.fault.meant));
        if (!one.place.file.empty()) { finding.position = one.place; }
        diagnostics.push_back(std::move(finding));
    }
}

void check_namespace_labels(const api::Objects& objects, Diagnostics& diagnostics) {
    std::vector<std::string> known{std::string(api::k_label_contains_modules)};
    for (const char* mode : {"enforce", "audit", "warn"}) {
        for (const char* ending : {"", "-version"}) {
            known.push_back(fmt::format("{}{}{}", k_pod_security, mode, ending));
        }
    }
    const auto name_of = [](std::string_view key) { return key.substr(key.find('/') + 1); };
    const auto meant_by = [&](const std::string& key) -> std::optional<std::string> {
        if (is_among(known, key)) { return std::nullopt; }
        // Domains of KMM are not near to each other.
        if (key.find("kmm") < key.find('/') && key.find('/') != std::string::npos &&
            base::nearest(name_of(key), std::vector<std::string>{std::string(name_of(known.front()))})) {
            return known.front();
        }
        return key.find("security") == std::string::npos ? std::nullopt : base::nearest(key, known);
    };
    for (const auto& space : objects.namespaces) {
        for (const auto& [key, text] : space.meta.labels) {
            const auto meant = meant_by(key);
            if (!meant) { continue; }
            Diagnostic finding;
            finding.severity = Severity::warning;
            finding.code = "label-unknown";
            finding.message = fmt::format("label {} of Namespace {} has no effect", base::escape(key),
                                          base::escape(space.meta.name));
            finding.hint = fmt::format("did you mean {}?", *meant);
            if (const auto place = space.label_places.find(key); place != space.label_places.end()) {
                finding.position = place->second;
            } else if (!space.meta.origin.file.empty()) {
                finding.position = space.meta.origin;
            }
            diagnostics.push_back(std::move(finding));
        }
    }
}

void check_loaded_known(const api::Objects& objects, Diagnostics& diagnostics) {
    const auto& configs = objects.node_modules_configs;
    std::set<std::string, std::less<>> ready;
    for (const auto& module : objects.modules)
        if (module.module_loader) ready.insert(api::label_ready(module.meta.namespace_, module.meta.name));
    const api::Node* first = nullptr;
    std::string loaded;
    std::size_t count = 0;
    for (const auto& node : objects.nodes) {
        const auto config = std::lower_bound(configs.begin(), configs.end(), node.meta.name,
                                             [](const auto& one, const auto& name) { return one.meta.name < name; });
        if (config != configs.end() && config->meta.name == node.meta.name) { continue; }
        const auto found = std::find_if(node.meta.labels.begin(), node.meta.labels.end(), [&](const auto& label) {
            return label.first.ends_with(".ready") && ready.contains(label.first);
        });
        if (found == node.meta.labels.end() || count++ > 0) { continue; }
        first = &node;
        loaded = found->first;
    }
    if (count == 0) { return; }
    Diagnostic finding;
    finding.severity = Severity::warning;
    finding.code = "configs-missing";
    finding.message = fmt::format(
        "label {} says that a module is loaded on {}, and no NodeModulesConfig of {} was read: it is planned as if "
        "nothing was loaded",
        base::escape(loaded),
        count == 1 ? "node " + base::escape(first->meta.name)
                   : fmt::format("{} nodes, first {}", count, base::escape(first->meta.name)),
        count == 1 ? "that name" : "their names");
    finding.hint = "kubectl get nodes,modules,nodemodulesconfigs -A -o json has them; where KMM was removed, "
                   "kmm-worker status says what is loaded";
    if (!first->meta.origin.file.empty()) { finding.position = first->meta.origin; }
    diagnostics.push_back(std::move(finding));
}

bool pulls_without_tolerations(const std::optional<Release>& release) {
    constexpr Release k_first{2, 4, 0};  // earlier ones ask the registry
    return !release || (*release >= k_first && *release < k_after_last_known);
}

namespace {

/// Whether a Module was sent to a node, or is loaded there: its image was found.
bool was_found(const api::Objects& objects, const api::Module& module) {
    const auto is_its = [&](const api::NodeModule& entry) {
        return entry.namespace_ == module.meta.namespace_ && entry.name == module.meta.name;
    };
    const auto& configs = objects.node_modules_configs;
    const auto ready = api::label_ready(module.meta.namespace_, module.meta.name);
    return std::any_of(configs.begin(), configs.end(),
                       [&](const api::NodeModulesConfig& config) {
                           return std::any_of(config.spec.begin(), config.spec.end(), is_its) ||
                                  std::any_of(config.status.begin(), config.status.end(), is_its);
                       }) ||
           std::any_of(objects.nodes.begin(), objects.nodes.end(),
                       [&](const api::Node& node) { return node.meta.labels.contains(ready); });
}

}  // namespace

void check_pull_pods(const api::Objects& objects, const std::optional<Release>& release, Diagnostics& diagnostics) {
    const auto admits = [](const api::Node& node) { return tolerates({}, lasting_taints(node.taints)); };
    if (!pulls_without_tolerations(release) || objects.nodes.empty() ||
        std::any_of(objects.nodes.begin(), objects.nodes.end(), admits)) {
        return;
    }
    for (const auto& module : objects.modules) {
        if (!module.module_loader || module.meta.deleting) { continue; }
        const auto is_its = [&](const auto& config) {
            return config.meta.namespace_ == module.meta.namespace_ && config.meta.name == module.meta.name;
        };
        // What was found shows that the Pods find a place.
        const auto& states = objects.module_images_configs;
        const auto known = std::find_if(states.begin(), states.end(), is_its);
        if (known != states.end() && std::any_of(known->states.begin(), known->states.end(),
                                                 [](const auto& state) { return state.second == "Exists"; })) {
            continue;
        }
        if (was_found(objects, module)) { continue; }
        const auto tolerations = loader_tolerations(module);
        const auto node = std::find_if(objects.nodes.begin(), objects.nodes.end(), [&](const api::Node& each) {
            return selects(module.selector, each.meta.labels) && tolerates(tolerations, lasting_taints(each.taints));
        });
        if (node == objects.nodes.end()) { continue; }
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "pull-pod-taints";
        finding.message = fmt::format(
            "Module {}: the Pods with which KMM v2.4 to v2.6 looks for images have none of its tolerations, and "
            "every Node that was read has a taint: they wait for ever, and nothing is loaded on {}",
            module.full_name(), node->meta.name);
        if (!module.meta.origin.file.empty()) { finding.position = module.meta.origin; }
        finding.hint =
            "leave one node without such a taint; if KMM is later than v2.6.0, use kmm-plan show --kmm-version main";
        diagnostics.push_back(std::move(finding));
    }
}

void check_pod_security(const api::Objects& objects, Diagnostics& diagnostics) {
    for (const auto& space : objects.namespaces) {
        const auto level = space.meta.labels.find(std::string(k_enforce));
        if (level == space.meta.labels.end() || level->second == "privileged") { continue; }
        const auto uses = [&](const api::Module& module) {
            return module.meta.namespace_ == space.meta.name && !module.meta.deleting;
        };
        const auto found = std::find_if(objects.modules.begin(), objects.modules.end(), uses);
        if (found == objects.modules.end()) { continue; }
        const bool known = level->second == "restricted" || level->second == "baseline";
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "pod-security";
        finding.message = fmt::format(
            "Namespace {} enforces pod security level {}{}: {} of Module {} are refused", base::escape(space.meta.name),
            level->second.empty() ? "\"\"" : base::escape(level->second),
            known ? "" : ", which is not a level and counts as restricted",
            found->module_loader ? "the worker Pods" : "the Pods of the device plugin or DRA driver",
            found->full_name());
        finding.hint = fmt::format("label it {}=privileged (kmm-plan render namespace writes that)", k_enforce);
        if (const auto place = space.label_places.find(std::string(k_enforce)); place != space.label_places.end()) {
            finding.position = place->second;
        } else if (!space.meta.origin.file.empty()) {
            finding.position = space.meta.origin;
        }
        diagnostics.push_back(std::move(finding));
    }
}

}  // namespace kmm::plan
