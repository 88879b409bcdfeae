// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/recorder.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::drive {

Recorder::Recorder(upgrade::Run run, Journal& journal, const sys::Clock& clock, Observer observer)
    : header_(run), ledger_(std::move(run)), journal_(journal), clock_(clock), observer_(std::move(observer)) {}

void Recorder::record(const upgrade::Event& event) {
    {
        const std::lock_guard guard(mutex_);
        const auto time = base::format_rfc3339(clock_.now_unix());
        auto change = ledger_.judge(event, time);
        std::list<Told> told;
        if (observer_) told.push_back({event, time});
        journal_.append(upgrade::encode(event));
        // Durable: nothing from here on throws.
        ledger_.commit(std::move(change));
        untold_.splice(untold_.end(), told);
    }
    if (event.kind == upgrade::EventKind::paused || (event.node.empty() && upgrade::is_final_run_state(event.to)))
        save();
    tell();
}

void Recorder::save() noexcept {
    const std::lock_guard guard(mutex_);
    try {
        journal_.snapshot(upgrade::encode(ledger_.run()));
    } catch (...) {
        // A disk that is full says so at the next event.
    }
}

void Recorder::tell() {
    std::unique_lock lock(mutex_);
    if (is_telling_) return;
    is_telling_ = true;
    while (!untold_.empty()) {
        std::list<Told> next;
        next.splice(next.end(), untold_, untold_.begin());
        lock.unlock();
        try {
            observer_(next.front().event, next.front().time);
        } catch (...) {
            // What people see is worth less than what was done.
        }
        lock.lock();
    }
    is_telling_ = false;
}

upgrade::RunState Recorder::state() const {
    const std::lock_guard guard(mutex_);
    return ledger_.run();
}

upgrade::Decision Recorder::next_steps(const std::set<std::string>& in_flight) const {
    const std::lock_guard guard(mutex_);
    return upgrade::next_steps(ledger_.run(), in_flight, ledger_.index());
}

upgrade::Run Recorder::run() const {
    const std::lock_guard guard(mutex_);
    return ledger_.run();
}

upgrade::NodeRecord Recorder::node(const std::string& name) const {
    const std::lock_guard guard(mutex_);
    const auto* found = ledger_.find(name);
    if (found == nullptr) throw bug(fmt::format("node {} is not in the record", name));
    return *found;
}

std::optional<upgrade::Run> load_run(const record::Loaded& loaded, const upgrade::Procedures& procedures,
                                     std::vector<std::string>& warnings) {
    warnings.insert(warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
    if (loaded.entries.empty()) return std::nullopt;
    std::vector<upgrade::TimedPayload> payloads;
    payloads.reserve(loaded.entries.size());
    for (const auto& entry : loaded.entries) payloads.push_back({entry.time, entry.payload});
    return upgrade::replay(payloads, procedures);
}

}  // namespace kmm::drive
