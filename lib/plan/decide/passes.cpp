// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/passes.hpp"

#include "base/error.hpp"
#include "plan/kmm/eligible.hpp"

namespace kmm::plan {

namespace {

constexpr int k_passes_max = 32;  // the longest walk, a move of a version with an unload and a load, takes nine

Answer answer(bool yes) { return yes ? Answer::yes : Answer::no; }

bool is_loader(PodState state) {
    return state == PodState::loader || state == PodState::loader_restarted || state == PodState::loader_stale;
}

WorkerLabel worker_label(std::string_view version, std::string_view label) {
    if (version.empty()) { return WorkerLabel::unversioned; }
    if (label.empty()) { return WorkerLabel::missing; }
    return label == version ? WorkerLabel::equal : WorkerLabel::differs;
}

/// A Node without boot id, as people write them, has not rebooted. A status without one counts as from another boot.
bool has_rebooted(const PairState& state, const Circumstances& now) {
    if (!now.node_ready || state.this_boot || now.node->boot_id.empty()) { return false; }
    return state.status->boot_id != now.node->boot_id;
}

bool may_unload(const PairState& state, const Circumstances& now, const DecisionRow* row) {
    if (now.policy != UnloadPolicy::on_delete) { return now.policy == UnloadPolicy::always; }
    if (now.deleting || row == nullptr || row->want == Want::put) { return true; }
    const bool moves = now.eligibility == Eligibility::eligible && now.mapping == MappingState::found;
    return moves && !state.labels.module.empty();
}

/// The module reconciler: the entry in spec.
void reconcile_module(PairState& state, const Circumstances& now, Pass& pass) {
    Want want = Want::leave;
    if (now.deleting) {
        want = Want::remove;
    } else if (now.has_loader) {
        const Configured configured = state.spec != nullptr ? Configured::yes : Configured::no;
        pass.decision = &decision_row(now, configured, state.labels.worker);
        want = pass.decision->want;
    }
    if (want == Want::put) {
        pass.image_held = now.image_missing;
        if (!now.image_missing) { state.spec = now.wanted; }
    } else if (want == Want::remove && state.spec != nullptr) {
        pass.policy_held = !may_unload(state, now, pass.decision);
        if (!pass.policy_held) { state.spec = nullptr; }
    }
}

void sync_status(PairState& state, Pass& pass) {
    if (state.pod.state == PodState::none) { return; }
    SyncRow situation;
    situation.phase = state.pod.phase;
    situation.loader = answer(is_loader(state.pod.state));
    situation.known = answer(state.spec != nullptr || state.status != nullptr);
    pass.sync = &decide(situation);
    if (pass.sync->step == PodStep::nothing) { return; }
    if (pass.sync->step == PodStep::record_unload) { state.status = nullptr; }
    if (pass.sync->step == PodStep::record_load) {
        state.status = state.pod.entry;
        state.this_boot = true;
    }
    state.pod = WorkerPod{};
}

PodStep spec_step(const PairState& state, const Circumstances& now, Pass& pass) {
    SpecRow situation;
    situation.pod = state.pod.state;
    const bool loaded = state.status != nullptr;
    situation.loaded = answer(loaded);
    situation.same_config =
        answer(loaded && (state.status == state.spec || state.status->config == state.spec->config));
    situation.same_kernel =
        answer(loaded && state.status->config->kernel_version == state.spec->config->kernel_version);
    situation.rebooted = answer(loaded && has_rebooted(state, now));
    pass.spec = &decide(situation);
    return pass.spec->step;
}

PodStep orphan_step(const PairState& state, const Circumstances& now, Pass& pass) {
    OrphanRow situation;
    situation.rebooted = answer(has_rebooted(state, now));
    situation.pod = state.pod.state;
    pass.orphan = &decide(situation);
    return pass.orphan->step;
}

/// The NodeModulesConfig's reconciler.
void reconcile_node(PairState& state, const Circumstances& now, Pass& pass) {
    sync_status(state, pass);
    if (state.spec != nullptr && !tolerates(state.spec->tolerations, now.node->taints)) {
        pass.tolerations_held = true;
        state.ready_label = false;
        return;
    }
    if (state.spec != nullptr) {
        pass.step = spec_step(state, now, pass);
        if (pass.step == PodStep::create_unloader && now.policy == UnloadPolicy::never) {
            pass.policy_held = true;
            pass.step = PodStep::nothing;
        }
    } else if (state.status != nullptr) {
        pass.step = orphan_step(state, now, pass);
        if (pass.step == PodStep::create_unloader && !may_unload(state, now, pass.decision)) {
            pass.policy_held = true;
            pass.step = PodStep::nothing;
        }
    } else {
        state.pod = WorkerPod{};  // a Pod of a module that is in neither list is collected
    }
    if (pass.step == PodStep::create_loader) { state.pod = WorkerPod{PodState::loader, Phase::pending, state.spec}; }
    if (pass.step == PodStep::create_unloader) { state.pod = WorkerPod{PodState::unloader, Phase::pending, nullptr}; }
    if (pass.step == PodStep::delete_pod) { state.pod = WorkerPod{}; }
    if (pass.step == PodStep::forget) { state.status = nullptr; }
    if (state.spec == nullptr && state.status == nullptr) { state.ready_label = false; }
    if (state.spec != nullptr && state.status != nullptr && state.status->config == state.spec->config) {
        state.ready_label = true;
    }
}

}  // namespace

const DecisionRow& decision_row(const Circumstances& circumstances, Configured configured,
                                std::string_view worker_label_text) {
    Situation situation;
    situation.eligibility = circumstances.eligibility;
    situation.mapping = circumstances.mapping;
    situation.configured = configured;
    situation.worker = worker_label(circumstances.version, worker_label_text);
    return decide(situation);
}

Pass run_pass(PairState& state, const Circumstances& circumstances) {
    Pass pass;
    if (circumstances.labels_walked) { pass.label = next_step(state.labels); }
    pass.label_waits = pass.label == LabelStep::add_worker && state.ready_label;
    reconcile_module(state, circumstances, pass);
    reconcile_node(state, circumstances, pass);
    if (!pass.label_waits) { state.labels = after(pass.label, std::move(state.labels)); }
    return pass;
}

Settling settle(PairState state, const Circumstances& circumstances) {
    Settling result;
    result.state = std::move(state);
    Circumstances calm = circumstances;
    calm.node_ready = true;
    for (int i = 0; i < k_passes_max; ++i) {
        const PairState before = result.state;
        result.last = run_pass(result.state, calm);
        const Pass& pass = result.last;
        if (pass.sync != nullptr) {
            result.loads = result.loads || pass.sync->step == PodStep::record_load;
            result.unloads = result.unloads || pass.sync->step == PodStep::record_unload;
        }
        const bool pod_made = pass.step == PodStep::create_loader || pass.step == PodStep::create_unloader;
        if (pod_made && result.spec_cause == nullptr && result.orphan_cause == nullptr) {
            result.spec_cause = pass.spec;
            result.orphan_cause = pass.orphan;
        }
        if (pass.label != LabelStep::none && pass.label != LabelStep::stuck && !pass.label_waits) {
            result.label_steps.push_back(pass.label);
            result.worker_removed = result.worker_removed || pass.label == LabelStep::delete_worker;
        }
        if (result.state.pod.state == PodState::none) {
            if (result.state == before) { return result; }
        } else {
            result.state.pod.phase = Phase::succeeded;  // a failed one was deleted in this very pass
        }
    }
    throw bug("a module does not settle on node " + circumstances.node->meta.name);
}

}  // namespace kmm::plan
