// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/verdict.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/glob.hpp"
#include "base/text.hpp"
#include "plan/codes/reasons.hpp"
#include "plan/decide/observe.hpp"
#include "plan/decide/policy.hpp"
#include "plan/kmm/eligible.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_default_service_account = "default";

api::NodeModule wanted_entry(const Resolver& resolver, const Resolved& resolved) {
    const api::Module& module = resolver.module();
    api::NodeModule entry;
    entry.name = module.meta.name;
    entry.namespace_ = module.meta.namespace_;
    entry.config = resolved.config;
    entry.service_account_name = module.module_loader->service_account_name;
    if (entry.service_account_name.empty()) { entry.service_account_name = k_default_service_account; }
    entry.image_repo_secret = module.image_repo_secret;
    entry.tolerations = resolver.tolerations();
    entry.version = module.module_loader->container.version;
    return entry;
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

bool is_missing(const Options& options, const std::string& image) {
    return std::any_of(options.missing_images.begin(), options.missing_images.end(),
                       [&](const std::string& pattern) { return base::glob_matches(pattern, image); });
}

/// "same image, other settings: …" with the names of those that differ.
std::string changed_settings(const api::ModuleConfig& was, const api::ModuleConfig& now) {
    const auto all = [](const api::ModuleConfig& config) {
        const auto& probe = config.modprobe;
        return std::tie(config.image_pull_policy, config.insecure_pull, config.kernel_version,
                        config.in_tree_modules_to_remove, config.in_tree_module_to_remove, probe.module_name,
                        probe.parameters, probe.dir_name, probe.args, probe.raw_args, probe.firmware_path,
                        probe.modules_loading_order, probe.modprobed_dir);
    };
    static constexpr std::array<std::string_view, std::tuple_size_v<decltype(all(was))>> k_names{
        "imagePullPolicy",
        "insecurePull",
        "kernelVersion",
        "inTreeModulesToRemove",
        "inTreeModuleToRemove",
        "moduleName",
        "parameters",
        "dirName",
        "args",
        "rawArgs",
        "firmwarePath",
        "modulesLoadingOrder",
        "modprobedDir"};
    std::vector<std::string> differing;
    const auto before = all(was), after = all(now);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        const auto note = [&](bool differs, std::string_view name) {
            if (differs) { differing.emplace_back(name); }
        };
        (note(std::get<I>(before) != std::get<I>(after), k_names[I]), ...);
    }(std::make_index_sequence<k_names.size()>{});
    return "same image, other settings: " + base::join(differing, ", ");
}

/// Turns what the passes did into the line of the plan.
class Judgement {
public:
    Judgement(const NodeView& view, const Resolver& resolver, const Options& options)
        : view_(view), node_(*view.node), module_(resolver.module()), options_(options) {
        observe();
        decide_inputs(resolver);
    }

    Verdict run() {
        if (options_.next) {
            last_ = run_pass(state_, now_);
            verdict_.labels_after.stuck = last_.label == LabelStep::stuck;
        } else {
            Settling settling = settle(state_, now_);
            state_ = std::move(settling.state);
            last_ = settling.last;
            taken_out_ = settling.orphan_cause != nullptr;
            loads_ = settling.loads;
            unloads_ = settling.unloads;
            verdict_.labels_after = SettledLabels{state_.labels, std::move(settling.label_steps),
                                                  last_.label == LabelStep::stuck, settling.worker_removed};
        }
        if (last_.decision != nullptr) {
            const std::string& worker = options_.next ? verdict_.labels_before.worker : state_.labels.worker;
            verdict_.row = &decision_row(now_, verdict_.observed_spec ? Configured::yes : Configured::no, worker);
        }
        if (state_.spec != nullptr) { verdict_.wanted = *state_.spec; }
        conclude_all();
        if (verdict_.entry.config) { verdict_.entry.image = verdict_.entry.config->container_image; }
        return std::move(verdict_);
    }

private:
    void observe() {
        const std::string& ns = module_.meta.namespace_;
        const std::string& name = module_.meta.name;
        Entry& entry = verdict_.entry;
        entry.node = node_.meta.name;
        entry.kernel = node_.kernel_version;
        entry.boot_id = node_.boot_id;
        entry.namespace_ = ns;
        entry.module = name;
        if (view_.config != nullptr) {
            state_.spec = find_entry(view_.config->spec, ns, name);
            state_.status = find_entry(view_.config->status, ns, name);
        }
        if (state_.spec != nullptr) { verdict_.observed_spec = *state_.spec; }
        if (state_.status != nullptr) { verdict_.observed_status = *state_.status; }
        verdict_.schedule_key = options_.schedule_key.value_or(api::ScheduleKey::schedule_pod);
        state_.labels = version_labels(node_.meta.labels, ns, name, verdict_.schedule_key);
        state_.ready_label = node_.meta.labels.contains(api::label_ready(ns, name));
        verdict_.labels_before = state_.labels;
        verdict_.labels_after.labels = state_.labels;
        if (const api::Pod* pod = find_worker_pod(view_, ns, name); pod != nullptr) {
            verdict_.worker_pod = pod->meta.name;
            pod_entry_ = loader_entry(*pod, name);
            state_.pod = worker_pod(*pod, pod_entry_ ? &*pod_entry_ : state_.spec, state_.spec);
        }
    }

    void decide_inputs(const Resolver& resolver) {
        verdict_.selected = selects(module_.selector, node_.meta.labels);
        verdict_.tolerated = tolerates(resolver.tolerations(), node_.taints, &verdict_.blocking);
        verdict_.policy = unload_policy(module_);
        now_.node = &node_;
        now_.policy = verdict_.policy;
        now_.deleting = module_.meta.deleting;
        now_.has_loader = module_.module_loader.has_value();
        now_.node_ready = node_.ready.value_or("True") == "True";
        now_.labels_walked = module_.meta.name.find('.') == std::string::npos;
        now_.eligibility =
            verdict_.selected && verdict_.tolerated ? Eligibility::eligible : Eligibility::not_eligible;
        if (!module_.module_loader) { return; }
        verdict_.version = module_.module_loader->container.version;
        verdict_.entry.version = verdict_.version;
        now_.version = module_.module_loader->container.version;
        verdict_.resolution = resolve_for(node_, resolver);
        now_.mapping = mapping_state(verdict_.resolution);
        const auto* resolved = std::get_if<Resolved>(&verdict_.resolution);
        if (resolved == nullptr) { return; }
        verdict_.entry.mapping_index = resolved->mapping_index;
        verdict_.entry.mapping_literal = resolved->literal;
        verdict_.entry.mapping_text = resolved->matcher;
        asked_ = wanted_entry(resolver, *resolved);
        now_.wanted = &*asked_;
        verdict_.image_missing = is_missing(options_, resolved->config.container_image);
        if (options_.image_states) {
            verdict_.image_state = options_.image_states->find(module_.meta.namespace_, module_.meta.name,
                                                               resolved->config.container_image);
        }
        // What can be built or signed exists in the end, unless that failed: a failed build Pod stays, and KMM makes no
        // other.
        const ImageState& known = verdict_.image_state;
        const bool is_made = resolved->build || resolved->sign;
        const bool lost = known.kind == ImageState::Kind::missing && (!is_made || !known.failed_action.empty());
        now_.image_missing = verdict_.image_missing ? options_.next || !is_made
                             : options_.next        ? !known.is_usable()
                                                    : lost;
    }

    void conclude(Action action, std::string_view code, const std::string& detail = "") {
        const Reason& why = reason(code);
        verdict_.entry.action = action;
        verdict_.entry.reason = why.code;
        verdict_.entry.message = detail.empty() ? std::string(why.text) : fmt::format("{}: {}", why.text, detail);
    }

    void show(const api::NodeModule& entry) {
        verdict_.entry.config = entry.config;
        verdict_.entry.version = entry.version;
    }

    void conclude_all() {
        const bool eligible = now_.eligibility == Eligibility::eligible;
        const bool counts = eligible && now_.has_loader && !now_.deleting;
        if (const auto* bad = std::get_if<MappingFault>(&verdict_.resolution); bad != nullptr && counts) {
            verdict_.entry.action = Action::blocked;
            verdict_.entry.reason = bad->diagnostic.code;
            verdict_.entry.message = bad->diagnostic.message;
        } else if (counts && now_.mapping == MappingState::found && labels_stuck()) {
            conclude_stuck();
        } else if (last_.image_held) {
            conclude_image_missing();
        } else if (last_.policy_held) {
            conclude_policy();
        } else if (state_.spec != nullptr) {
            conclude_wanted();
        } else {
            conclude_absent();
        }
    }

    /// Stuck labels matter while they keep W from becoming M.
    bool labels_stuck() const {
        if (now_.version.empty() || state_.labels.module.empty()) { return false; }
        const bool dead = verdict_.labels_after.stuck || !now_.labels_walked;
        return dead && state_.labels.worker != state_.labels.module;
    }

    void conclude_stuck() {
        if (!now_.labels_walked) {
            conclude(Action::blocked, "version-labels-misread", "the name of the Module has a dot");
            return;
        }
        const LabelRow& row = label_row(state_.labels);
        const auto shown = [](const std::string& text) { return text.empty() ? "missing" : text; };
        conclude(Action::blocked, "version-labels-stuck",
                 fmt::format("{} {}: version-module {}, version-worker-pod {}, {} {}", row.name, to_string(row),
                             shown(state_.labels.module), shown(state_.labels.worker),
                             api::to_string(verdict_.schedule_key), shown(state_.labels.schedule)));
    }

    void conclude_image_missing() {
        std::string image = asked_->config->container_image;
        const ImageState& known = verdict_.image_state;
        if (!verdict_.image_missing && !known.word.empty()) { image += fmt::format(" ({})", known.word); }
        if (!known.failed_action.empty()) { image += fmt::format("; {} failed", known.failed_action); }
        const bool is_unverified = !verdict_.image_missing && known.kind == ImageState::Kind::unverified;
        const bool lost = verdict_.observed_status && state_.status == nullptr && unloads_;
        if (!lost) {
            conclude(Action::blocked, is_unverified ? "image-not-verified" : "image-missing", image);
            return;
        }
        conclude(
            Action::unload, "image-missing",
            fmt::format("{}; the version labels unload {} before KMM looks for it", image,
                        verdict_.observed_status->version.empty() ? "the old one" : verdict_.observed_status->version));
        show(*verdict_.observed_status);
    }

    /// The annotation kept something from being unloaded.
    void conclude_policy() {
        const bool replaces =
            state_.spec != nullptr && state_.status != nullptr && state_.spec->config != state_.status->config;
        const auto* kept = state_.status != nullptr ? state_.status : state_.spec;
        if (kept != nullptr) { show(*kept); }
        const auto [code, detail] = absence();
        const std::string policy(to_string(now_.policy));
        if (replaces) {
            conclude(Action::blocked, "unload-policy", policy + ": the other configuration waits for a reboot");
        } else if (loads_ || last_.step == PodStep::create_loader) {
            conclude(Action::load, "unload-policy", fmt::format("{}: still configured", policy));
        } else {
            conclude(kept == nullptr ? Action::none : Action::keep, "unload-policy",
                     fmt::format("{}; KMM would unload: {}", policy, detail.empty() ? reason(code).text : detail));
        }
    }

    /// Why the entry is not, or no longer, wanted.
    std::pair<std::string_view, std::string> absence() const {
        if (module_.meta.deleting) { return {"module-deleting", ""}; }
        if (!now_.has_loader) { return {"no-module-loader", ""}; }
        if (!verdict_.selected) { return {"selector-mismatch", ""}; }
        if (!verdict_.tolerated) {
            const api::Taint& taint = verdict_.blocking;
            return {"taint-not-tolerated",
                    taint.value.empty() ? fmt::format("{}:{}", taint.key, taint.effect)
                                        : fmt::format("{}={}:{}", taint.key, taint.value, taint.effect)};
        }
        if (std::holds_alternative<NoMapping>(verdict_.resolution)) {
            return {"no-kernel-mapping", node_.kernel_version};
        }
        // What the last pass saw: a label that it adds counts in the pass after it.
        const VersionLabels& labels = options_.next ? verdict_.labels_before : state_.labels;
        const bool is_moving = labels.module == now_.version;
        if (labels.worker.empty()) {
            const bool is_removed = !options_.next && !verdict_.labels_before.worker.empty() && labels.module.empty();
            return {"version-label-missing",
                    is_removed  ? "KMM removes it, as version-module is missing"
                    : is_moving ? "KMM adds it, as version-module is " + std::string(now_.version)
                                : "the Module has " + std::string(now_.version)};
        }
        return {"version-label-differs", fmt::format("label {}, Module {}{}", labels.worker, now_.version,
                                                     is_moving ? ": KMM changes it to that of version-module" : "")};
    }

    bool pod_is_at_work() const {
        return state_.pod.state != PodState::none && last_.step == PodStep::nothing && last_.sync != nullptr;
    }

    std::string pod_text() const {
        const bool loads = state_.pod.state == PodState::loader || state_.pod.state == PodState::loader_restarted;
        const bool restarted =
            state_.pod.state == PodState::loader_restarted || state_.pod.state == PodState::unloader_restarted;
        const auto* pod = find_worker_pod(view_, module_.meta.namespace_, module_.meta.name);
        const bool waits = pod != nullptr && !pod->problems.empty();
        return fmt::format("{} {}{}{}", loads ? "loader" : "unloader", verdict_.worker_pod,
                           restarted ? ", which fails and is tried again" : "",
                           waits ? ": " + problem_text(pod->problems.front()) : "");
    }

    void conclude_wanted() {
        show(*state_.spec);
        const bool held = last_.decision == nullptr || last_.decision->want == Want::leave;
        const std::string& configured = state_.spec->config->kernel_version;
        if (held && configured != api::trim_kernel(node_.kernel_version)) {
            conclude(Action::blocked, "entry-for-other-kernel",
                     fmt::format("configured for {}, running {}", configured, node_.kernel_version));
        } else if (last_.tolerations_held &&
                   (state_.status == nullptr || state_.status->config != state_.spec->config)) {
            conclude(state_.status == nullptr ? Action::none : Action::keep, "taint-not-tolerated",
                     "the tolerations of the entry keep KMM from acting on it");
            if (state_.status != nullptr) { show(*state_.status); }
        } else if (options_.next && pod_is_at_work()) {
            conclude(Action::none, "worker-running", pod_text());
        } else if (options_.next && last_.step == PodStep::delete_pod) {
            conclude(Action::none, "worker-stale", verdict_.worker_pod);
        } else if (options_.next ? last_.step == PodStep::create_unloader : loads_ && unloads_) {
            conclude_replaced();
        } else if (options_.next ? last_.step == PodStep::create_loader : loads_) {
            conclude_load();
        } else if (options_.next && waits_for_ready()) {
            conclude(Action::none, "node-rebooted", "KMM loads it again once the node is Ready");
        } else if (!now_.has_loader) {
            conclude(Action::keep, "no-module-loader");
        } else if (held) {
            conclude(Action::keep, "version-held",
                     fmt::format("label {}, Module {}",
                                 options_.next ? verdict_.labels_before.worker : state_.labels.worker, now_.version));
        } else {
            conclude(Action::keep, "up-to-date");
        }
    }

    /// KMM believes that what was loaded before a reboot is loaded until the node is Ready.
    bool waits_for_ready() const {
        return state_.status != nullptr && !now_.node_ready && !node_.boot_id.empty() &&
               state_.status->boot_id != node_.boot_id;
    }

    /// Unloaded and loaded; in the next pass only unloaded.
    void conclude_replaced() {
        const auto& status = verdict_.observed_status;
        if (!status) {
            conclude(Action::reload, "worker-running", "a running unloader is never cancelled");
            return;
        }
        if (taken_out_ && status->version != state_.spec->version) {
            conclude(Action::reload, "version-changed",
                     fmt::format("{} to {}", status->version.empty() ? "unversioned" : status->version,
                                 state_.spec->version));
        } else if (taken_out_) {
            conclude(Action::reload, "version-relabelled", state_.spec->version);
        } else if (!options_.next && status->config == state_.spec->config) {
            conclude(Action::reload, "worker-running", "a running unloader is never cancelled");
        } else {
            const bool image = status->config->container_image != state_.spec->config->container_image;
            const std::string what =
                image ? "another image" : changed_settings(*status->config, *state_.spec->config);
            conclude(options_.next ? Action::unload : Action::reload, "config-changed",
                     fmt::format("{}{}", what,
                                 options_.next ? "; the load follows in a later pass" : ""));
            if (options_.next) { show(*status); }
        }
    }

    void conclude_load() {
        const auto& status = verdict_.observed_status;
        if (!status) {
            conclude(Action::load, "not-loaded");
        } else if (status->config->kernel_version != state_.spec->config->kernel_version) {
            conclude(Action::load, "kernel-changed",
                     fmt::format("{} to {}", status->config->kernel_version, state_.spec->config->kernel_version));
        } else if (status->boot_id != node_.boot_id && !node_.boot_id.empty()) {
            conclude(Action::load, "node-rebooted");
        } else {
            conclude(Action::load, "worker-running", "a running loader ends before anything else happens");
        }
    }

    void conclude_absent() {
        auto [code, detail] = absence();
        const auto& status = verdict_.observed_status;
        if (options_.next && pod_is_at_work()) {
            conclude(Action::none, "worker-running", pod_text());
        } else if (options_.next && last_.step == PodStep::delete_pod) {
            conclude(Action::none, "worker-stale", verdict_.worker_pod);
        } else if (!status && !unloads_) {
            conclude(Action::none, code, detail);
        } else if (!status && verdict_.worker_pod.empty()) {  // nothing is there now, and nothing at the end
            const std::string passing = "nothing is loaded; KMM may load it until it has removed version-worker-pod";
            conclude(Action::none, code, detail.empty() ? passing : detail + "; " + passing);
        } else if (options_.next ? last_.step == PodStep::create_unloader : unloads_) {
            conclude(Action::unload, code, detail);
            if (status) { show(*status); }
        } else {
            conclude(Action::none, code, detail.empty() ? "gone with the reboot" : detail + "; gone with the reboot");
        }
    }

    const NodeView& view_;
    const api::Node& node_;
    const api::Module& module_;
    const Options& options_;
    std::optional<api::NodeModule> asked_, pod_entry_;
    Circumstances now_;
    PairState state_;
    Pass last_;
    bool loads_ = false, unloads_ = false;
    bool taken_out_ = false;  ///< the first Pod was made since spec had lost its entry
    Verdict verdict_;
};

}  // namespace

Options complete(Options options, const api::Objects& objects) {
    if (!options.schedule_key) { options.schedule_key = detect_schedule_key(objects); }
    if (!options.image_states) {
        auto states = std::make_shared<const ImageStates>(objects);
        if (!states->empty()) { options.image_states = std::move(states); }
    }
    return options;
}

Verdict judge(const NodeView& view, const Resolver& resolver, const Options& options) {
    return Judgement(view, resolver, options).run();
}

void judge_nodes(const api::Objects& objects, const Options& options,
                 const std::function<void(const NodeView&, std::vector<Verdict>&)>& visit) {
    const Options full = complete(options, objects);
    std::vector<const api::Module*> modules;
    for (const auto& module : objects.modules) { modules.push_back(&module); }
    std::stable_sort(modules.begin(), modules.end(), [](const api::Module* a, const api::Module* b) {
        return std::tie(a->meta.namespace_, a->meta.name) < std::tie(b->meta.namespace_, b->meta.name);
    });
    std::vector<Resolver> resolvers;
    resolvers.reserve(modules.size());
    for (const auto* module : modules) { resolvers.emplace_back(*module); }
    std::vector<Verdict> verdicts;
    for (const auto& view : views(objects)) {
        verdicts.clear();
        verdicts.reserve(resolvers.size());
        for (const auto& resolver : resolvers) { verdicts.push_back(judge(view, resolver, full)); }
        visit(view, verdicts);
    }
}

std::vector<Verdict> judge_all(const api::Objects& objects, const Options& options) {
    std::vector<std::pair<std::string_view, std::vector<Verdict>>> nodes;
    judge_nodes(objects, options, [&](const NodeView& view, std::vector<Verdict>& verdicts) {
        nodes.emplace_back(view.node->meta.name, std::move(verdicts));
    });
    std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Verdict> result;
    result.reserve(objects.nodes.size() * objects.modules.size());
    for (auto& [name, verdicts] : nodes) {
        std::move(verdicts.begin(), verdicts.end(), std::back_inserter(result));
        verdicts = {};
    }
    return result;
}

}  // namespace kmm::plan
