// SPDX-License-Identifier: Apache-2.0
#include "plan/verdict.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/names.hpp"
#include "plan/reasons.hpp"
#include "plan/template.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_default_service_account = "default";

/// KMM looks at the boot id only while the node is Ready. The settled state lets it become Ready; a Node without
/// conditions, as people write them, counts as Ready.
bool rebooted(const api::Node& node, const api::NodeModule& status, const Options& options) {
    if (options.next && node.ready.value_or("True") != "True") { return false; }
    return !status.boot_id.empty() && !node.boot_id.empty() && status.boot_id != node.boot_id;
}

api::NodeModule wanted_entry(const api::Module& module, const Resolved& resolved) {
    api::NodeModule entry;
    entry.name = module.meta.name;
    entry.namespace_ = module.meta.namespace_;
    entry.config = resolved.config;
    entry.service_account_name = module.module_loader->service_account_name;
    if (entry.service_account_name.empty()) { entry.service_account_name = k_default_service_account; }
    entry.image_repo_secret = module.image_repo_secret;
    entry.tolerations = loader_tolerations(module);
    entry.version = module.module_loader->container.version;
    return entry;
}

WorkerLabel worker_label(const std::string& version, const std::string& label) {
    if (version.empty()) { return WorkerLabel::unversioned; }
    if (label.empty()) { return WorkerLabel::missing; }
    return label == version ? WorkerLabel::equal : WorkerLabel::differs;
}

MappingState mapping_state(const Resolution& resolution) {
    if (std::holds_alternative<MappingFault>(resolution)) { return MappingState::fault; }
    return std::holds_alternative<Resolved>(resolution) ? MappingState::found : MappingState::none;
}

Resolution resolve_for(const api::Node& node, const Resolver& resolver) {
    if (!node.kernel_version.empty()) { return resolver.resolve(node.kernel_version); }
    Diagnostic diagnostic;
    diagnostic.severity = Severity::warning;
    diagnostic.code = "kernel-unknown";
    diagnostic.message = fmt::format("Node {} does not say which kernel it runs", node.meta.name);
    if (!node.meta.origin.file.empty()) { diagnostic.position = node.meta.origin; }
    diagnostic.hint = reason("kernel-unknown").remedy;
    return MappingFault{std::move(diagnostic)};
}

void conclude(Entry& entry, Action action, std::string_view code, const std::string& detail = "") {
    const Reason& why = reason(code);
    entry.action = action;
    entry.reason = why.code;
    entry.message = detail.empty() ? std::string(why.text) : fmt::format("{}: {}", why.text, detail);
}

/// Why the entry is not, or no longer, wanted.
std::pair<std::string_view, std::string> absence(const Verdict& verdict, const api::Module& module,
                                                 const std::string& kernel) {
    const std::string& version = module.module_loader ? module.module_loader->container.version : std::string();
    if (module.meta.deleting) { return {"module-deleting", ""}; }
    if (!verdict.selected) { return {"selector-mismatch", ""}; }
    if (!verdict.tolerated) {
        const api::Taint& taint = verdict.blocking;
        return {"taint-not-tolerated",
                taint.value.empty() ? fmt::format("{}:{}", taint.key, taint.effect)
                                    : fmt::format("{}={}:{}", taint.key, taint.value, taint.effect)};
    }
    if (std::holds_alternative<NoMapping>(verdict.resolution)) { return {"no-kernel-mapping", kernel}; }
    const std::string& worker = verdict.labels_after.labels.worker;
    if (worker.empty()) { return {"version-label-missing", fmt::format("the Module has {}", version)}; }
    return {"version-label-differs", fmt::format("label {}, Module {}", worker, version)};
}

/// From what is wanted and what is loaded to the action. `verdict.wanted` is set.
void compare(Verdict& verdict, const api::Node& node, const std::string& module_version, const Options& options) {
    const api::NodeModule& wanted = *verdict.wanted;
    const auto& status = verdict.observed_status;
    Entry& entry = verdict.entry;
    entry.config = wanted.config;
    entry.version = wanted.version;
    const bool held = verdict.row->want == Want::leave;
    if (held && wanted.config.kernel_version != api::trim_kernel(node.kernel_version)) {
        conclude(entry, Action::blocked, "entry-for-other-kernel",
                 fmt::format("configured for {}, running {}", wanted.config.kernel_version, node.kernel_version));
    } else if (!status) {
        conclude(entry, Action::load, "not-loaded");
    } else if (status->config.kernel_version != wanted.config.kernel_version) {
        conclude(entry, Action::load, "kernel-changed",
                 fmt::format("{} to {}", status->config.kernel_version, wanted.config.kernel_version));
    } else if (rebooted(node, *status, options)) {
        conclude(entry, Action::load, "node-rebooted");
    } else if (verdict.labels_after.worker_removed) {
        conclude(entry, Action::reload, "version-changed",
                 fmt::format("{} to {}", status->version.empty() ? "unversioned" : status->version, wanted.version));
    } else if (status->config != wanted.config) {
        const bool image = status->config.container_image != wanted.config.container_image;
        conclude(entry, options.next ? Action::unload : Action::reload, "config-changed",
                 fmt::format("{}{}", image ? "another image" : "same image, other settings",
                             options.next ? "; the load follows in a later pass" : ""));
        if (options.next) {
            entry.config = status->config;
            entry.version = status->version;
        }
    } else if (held) {
        conclude(entry, Action::keep, "version-held",
                 fmt::format("label {}, Module {}", verdict.labels_after.labels.worker, module_version));
    } else {
        conclude(entry, Action::keep, "up-to-date");
    }
}

void conclude_absent(Verdict& verdict, const api::Node& node, const api::Module& module, const Options& options) {
    auto [code, detail] = absence(verdict, module, node.kernel_version);
    const auto& status = verdict.observed_status;
    if (!status) {
        conclude(verdict.entry, Action::none, code, detail);
    } else if (rebooted(node, *status, options)) {
        conclude(verdict.entry, Action::none, code, detail.empty() ? "gone with the reboot" : detail + "; gone with the reboot");
    } else {
        conclude(verdict.entry, Action::unload, code, detail);
        verdict.entry.config = status->config;
        verdict.entry.version = status->version;
    }
}

void conclude_without_loader(Verdict& verdict) {
    verdict.wanted = verdict.observed_spec;
    const auto& loaded = verdict.observed_status ? verdict.observed_status : verdict.observed_spec;
    conclude(verdict.entry, loaded ? Action::keep : Action::none, "no-module-loader");
    if (loaded) {
        verdict.entry.config = loaded->config;
        verdict.entry.version = loaded->version;
    }
}

/// Stuck labels matter while they keep W from becoming M.
bool stuck_short_of_goal(const SettledLabels& settled) {
    return settled.stuck && !settled.labels.module.empty() && settled.labels.worker != settled.labels.module;
}

void apply_table(Verdict& verdict, const api::Node& node, const api::Module& module, const Options& options) {
    const std::string& version = module.module_loader->container.version;
    Situation situation;
    situation.eligibility = verdict.selected && verdict.tolerated ? Eligibility::eligible : Eligibility::not_eligible;
    situation.mapping = mapping_state(verdict.resolution);
    situation.configured = verdict.observed_spec ? Configured::yes : Configured::no;
    situation.worker = worker_label(version, verdict.labels_after.labels.worker);
    verdict.row = &decide(situation);

    if (situation.eligibility == Eligibility::eligible) {
        if (const auto* bad = std::get_if<MappingFault>(&verdict.resolution)) {
            verdict.wanted = verdict.observed_spec;
            verdict.entry.action = Action::blocked;
            verdict.entry.reason = bad->diagnostic.code;
            verdict.entry.message = bad->diagnostic.message;
            return;
        }
        if (situation.mapping == MappingState::found && stuck_short_of_goal(verdict.labels_after)) {
            const VersionLabels& labels = verdict.labels_after.labels;
            verdict.wanted = verdict.observed_spec;
            conclude(verdict.entry, Action::blocked, "version-labels-stuck",
                     fmt::format("version-module {}, version-worker-pod {}, version-schedule-pod {}", labels.module,
                                 labels.worker.empty() ? "missing" : labels.worker,
                                 labels.schedule.empty() ? "missing" : labels.schedule));
            return;
        }
    }
    if (verdict.row->want == Want::put) {
        verdict.wanted = wanted_entry(module, std::get<Resolved>(verdict.resolution));
    } else if (verdict.row->want == Want::leave && !verdict.labels_after.worker_removed) {
        verdict.wanted = verdict.observed_spec;
    }
    if (verdict.wanted) {
        compare(verdict, node, version, options);
    } else {
        conclude_absent(verdict, node, module, options);
    }
}

std::optional<api::NodeModule> copy_of(const api::NodeModule* entry) {
    return entry == nullptr ? std::nullopt : std::optional(*entry);
}

}  // namespace

const api::NodeModule* find_entry(const std::vector<api::NodeModule>& entries, std::string_view ns, std::string_view name) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const api::NodeModule& entry) {
        return entry.namespace_ == ns && entry.name == name;
    });
    return found == entries.end() ? nullptr : &*found;
}

Verdict judge(const NodeView& view, const Resolver& resolver, const Options& options) {
    const api::Node& node = *view.node;
    const api::Module& module = resolver.module();
    const std::string& ns = module.meta.namespace_;
    const std::string& name = module.meta.name;

    Verdict verdict;
    verdict.entry.node = node.meta.name;
    verdict.entry.kernel = node.kernel_version;
    verdict.entry.boot_id = node.boot_id;
    verdict.entry.namespace_ = ns;
    verdict.entry.module = name;
    if (view.config != nullptr) {
        verdict.observed_spec = copy_of(find_entry(view.config->spec, ns, name));
        verdict.observed_status = copy_of(find_entry(view.config->status, ns, name));
    }
    verdict.selected = selects(module.selector, node.meta.labels);
    verdict.tolerated = tolerates(loader_tolerations(module), node.taints, &verdict.blocking);
    verdict.labels_before = version_labels(node.meta.labels, ns, name);
    verdict.labels_after.labels = verdict.labels_before;
    if (module.module_loader) {
        verdict.entry.version = module.module_loader->container.version;
        verdict.resolution = resolve_for(node, resolver);
        if (!verdict.entry.version.empty() && !options.next) { verdict.labels_after = settle(verdict.labels_before); }
        if (options.next) { verdict.labels_after.stuck = next_step(verdict.labels_before) == LabelStep::stuck; }
    }
    if (const auto* resolved = std::get_if<Resolved>(&verdict.resolution)) {
        verdict.entry.mapping_index = resolved->mapping_index;
        verdict.entry.mapping_literal = resolved->literal;
        verdict.entry.mapping_text = resolved->matcher;
    }
    if (module.meta.deleting) {
        conclude_absent(verdict, node, module, options);
    } else if (!module.module_loader) {
        conclude_without_loader(verdict);
    } else {
        apply_table(verdict, node, module, options);
    }
    if (verdict.entry.config) { verdict.entry.image = verdict.entry.config->container_image; }
    return verdict;
}

std::vector<NodeView> views(const api::Objects& objects) {
    std::map<std::string_view, const api::NodeModulesConfig*> configs;
    for (const auto& config : objects.node_modules_configs) { configs.emplace(config.meta.name, &config); }
    std::vector<NodeView> result;
    result.reserve(objects.nodes.size());
    for (const auto& node : objects.nodes) {
        const auto found = configs.find(node.meta.name);
        result.push_back(NodeView{&node, found == configs.end() ? nullptr : found->second});
    }
    return result;
}

std::vector<Verdict> judge_all(const api::Objects& objects, const Options& options) {
    std::vector<Resolver> resolvers;
    resolvers.reserve(objects.modules.size());
    for (const auto& module : objects.modules) { resolvers.emplace_back(module); }
    std::vector<Verdict> result;
    result.reserve(objects.nodes.size() * resolvers.size());
    for (const auto& view : views(objects)) {
        for (const auto& resolver : resolvers) { result.push_back(judge(view, resolver, options)); }
    }
    std::stable_sort(result.begin(), result.end(), [](const Verdict& a, const Verdict& b) {
        return std::tie(a.entry.node, a.entry.namespace_, a.entry.module) <
               std::tie(b.entry.node, b.entry.namespace_, b.entry.module);
    });
    return result;
}

}  // namespace kmm::plan
