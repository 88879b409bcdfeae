// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/situation.hpp"

#include <limits>

#include "api/labels.hpp"
#include "plan/kmm/eligible.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_label_prefix = "kmm.node.kubernetes.io/",
                           k_label_beta_prefix = "beta.kmm.node.kubernetes.io/";

/// Of a place in the heap, whose last bits are alike.
std::size_t hash_of(const void* place) { return reinterpret_cast<std::uintptr_t>(place) >> 4U; }

void append_number(std::string& key, std::uint64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& key, std::string_view text) {
    append_number(key, text.size());
    key += text;
}

}  // namespace

Situations::Situations(std::vector<const api::Module*> modules, api::ScheduleKey schedule_key)
    : modules_(std::move(modules)) {
    traces_.resize(modules_.size());
    numbers_.reserve(std::size_t{1} << 14U);  // growing is what costs
    for (std::size_t i = 0; i < modules_.size(); ++i) {
        const auto& ns = modules_[i]->meta.namespace_;
        const auto& name = modules_[i]->meta.name;
        places_.emplace(ns + "/" + name, i);
        marks_[api::label_version_module(ns, name)].emplace_back(i, Mark::module);
        marks_[api::label_version_worker_pod(ns, name)].emplace_back(i, Mark::worker);
        marks_[api::label_version_schedule(schedule_key, ns, name)].emplace_back(i, Mark::schedule);
        marks_[api::label_ready(ns, name)].emplace_back(i, Mark::ready);
        marks_[api::label_version_device_plugin(ns, name)].emplace_back(i, Mark::leftover);
    }
}

Situations::Traces& Situations::touch(std::size_t module) {
    Traces& traces = traces_[module];
    if (!traces.exists) { touched_.push_back(module); }
    traces.exists = true;
    return traces;
}

const Situations::Marks& Situations::marks_of(const std::string& key) {
    static const Marks k_none;
    auto& last = last_marks_[hash_of(&key) % k_last];
    if (last.first == &key) { return *last.second; }
    const bool has_prefix = key.starts_with(k_label_prefix) || key.starts_with(k_label_beta_prefix);
    const auto found = has_prefix ? marks_.find(key) : marks_.end();
    last = {&key, found == marks_.end() ? &k_none : &found->second};
    return *last.second;
}

/// Where among the Modules the one of the entry is; their count if it is not among them.
std::size_t Situations::place_of(const api::NodeModule& entry) {
    auto& last = last_places_[hash_of(&*entry.config) % k_last];
    if (last < modules_.size()) {
        const auto& meta = modules_[last]->meta;
        if (meta.name == entry.name && meta.namespace_ == entry.namespace_) { return last; }
    }
    key_.assign(entry.namespace_).append("/").append(entry.name);
    const auto found = places_.find(key_);
    if (found == places_.end()) { return modules_.size(); }
    last = found->second;
    return last;
}

void Situations::look_at_labels(const api::Labels& labels) {
    for (const auto& [key, text] : labels) {
        for (const auto& [module, mark] : marks_of(key)) {
            Traces& traces = touch(module);
            switch (mark) {
                case Mark::module: traces.module = &text; break;
                case Mark::worker: traces.worker = &text; break;
                case Mark::schedule: traces.schedule = &text; break;
                case Mark::ready: traces.is_ready = true; break;
                case Mark::leftover: traces.is_leftover = true; break;
            }
        }
    }
}

void Situations::look_at_entries(const std::vector<api::NodeModule>& entries, const api::NodeModule* Traces::*part) {
    for (const auto& entry : entries) {
        const auto place = place_of(entry);
        if (place == modules_.size()) {
            has_unknown_ = true;
            continue;
        }
        Traces& traces = touch(place);
        if (traces.*part == nullptr) { traces.*part = &entry; }  // the first one counts
    }
}

const Situations::Taints& Situations::taints_of(const api::Node& node) {
    key_.clear();
    for (const auto& taint : node.taints) {
        for (const auto* text : {&taint.key, &taint.value, &taint.effect}) { append_text(key_, *text); }
    }
    const auto [found, fresh] =
        taint_sets_.try_emplace(key_, Taints{static_cast<std::uint32_t>(taint_sets_.size()), {}});
    Taints& taints = found->second;
    if (!fresh) { return taints; }
    for (const auto* module : modules_) {
        api::Taint first;
        if (tolerates(loader_tolerations(*module), node.taints, &first)) {
            taints.blocking.push_back(0);
            continue;
        }
        key_.clear();
        for (const auto* text : {&first.key, &first.value, &first.effect}) { append_text(key_, *text); }
        taints.blocking.push_back(taint_numbers_.emplace(key_, taint_numbers_.size() + 1).first->second);
    }
    return taints;
}

bool Situations::look(const NodeView& view) {
    for (const auto module : touched_) { traces_[module] = Traces{}; }
    touched_.clear();
    has_unknown_ = false;
    node_ = view.node;
    if (view.config != nullptr) {
        look_at_entries(view.config->spec, &Traces::spec);
        look_at_entries(view.config->status, &Traces::status);
    }
    if (node_->kernel_version.empty() || !view.pods.empty()) { return false; }
    look_at_labels(node_->meta.labels);
    taints_ = &taints_of(*node_);
    key_.clear();
    append_text(key_, node_->kernel_version);
    append_text(key_, node_->ready.value_or("-"));
    key_ += node_->boot_id.empty() ? '0' : '1';
    row_ = &rows_.try_emplace(key_, static_cast<std::uint32_t>(rows_.size()), Row(2 * modules_.size())).first->second;
    return true;
}

bool Situations::are_tolerated(const api::NodeModule& entry) {
    const auto [found, fresh] = tolerated_.try_emplace({&*entry.tolerations, taints_->number}, false);
    if (fresh) { found->second = tolerates(entry.tolerations, node_->taints); }
    return found->second;
}

void Situations::append(const api::NodeModule* entry) {
    if (entry == nullptr) { return append_number(key_, 0); }
    for (const void* part :
         {static_cast<const void*>(&*entry->config), static_cast<const void*>(&*entry->tolerations)}) {
        append_number(key_, reinterpret_cast<std::uintptr_t>(part));
    }
    for (const auto* text : {&entry->version, &entry->service_account_name, &entry->image_repo_secret}) {
        append_text(key_, *text);
    }
}

std::size_t Situations::numbered() {
    const auto [found, fresh] = numbers_.try_emplace(key_, count_);
    if (fresh) { ++count_; }
    return found->second;
}

std::size_t Situations::number(std::size_t module, bool selected) {
    // What is not selected does not run, whatever is tolerated.
    const std::uint32_t blocking = selected ? taints_->blocking[module] : std::numeric_limits<std::uint32_t>::max();
    const Traces& traces = traces_[module];
    const bool is_plain = !traces.exists && (!selected || blocking == 0);
    std::size_t* known = is_plain ? &row_->second[2 * module + (selected ? 1 : 0)] : nullptr;
    if (known != nullptr && *known != 0) { return *known - 1; }
    key_.clear();
    append_number(key_, row_->first);
    append_number(key_, module);
    append_number(key_, blocking);
    for (const auto* text : {traces.module, traces.worker, traces.schedule}) {
        append_text(key_, text == nullptr ? std::string_view() : *text);
    }
    key_ += traces.is_ready ? '1' : '0';
    key_ += traces.is_leftover ? '1' : '0';
    append(traces.spec);
    key_ += traces.spec != nullptr && are_tolerated(*traces.spec) ? '1' : '0';
    append(traces.status);
    // Whether either boot id is empty is in the row and in this.
    key_ += traces.status != nullptr && traces.status->boot_id == node_->boot_id ? '1' : '0';
    const std::size_t number = numbered();
    if (known != nullptr) { *known = number + 1; }
    return number;
}

}  // namespace kmm::plan
