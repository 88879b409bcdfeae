// SPDX-License-Identifier: Apache-2.0
#include "drive/recorder.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/replay.hpp"

namespace kmm::drive {

Recorder::Recorder(upgrade::Run run, Journal& journal, const sys::Clock& clock, Observer observer)
    : run_(std::move(run)), journal_(journal), clock_(clock), observer_(std::move(observer)) {}

void Recorder::record(const upgrade::Event& event) {
    const std::lock_guard guard(mutex_);
    const auto time = base::format_rfc3339(clock_.now_unix());
    upgrade::Run next = run_;
    upgrade::apply(next, event, time);
    journal_.append(upgrade::encode(event));
    run_ = std::move(next);
    if (observer_) observer_(event, run_, time);
    // The snapshot is a cache: refreshed where a reader would look for news, not at every intent.
    if (event.kind != upgrade::EventKind::intent && event.kind != upgrade::EventKind::observed)
        journal_.snapshot(upgrade::encode(run_));
}

upgrade::Run Recorder::run() const {
    const std::lock_guard guard(mutex_);
    return run_;
}

upgrade::NodeRecord Recorder::node(const std::string& name) const {
    const std::lock_guard guard(mutex_);
    const auto* found = run_.find(name);
    if (found == nullptr) throw bug(fmt::format("node {} is not in the record", name));
    return *found;
}

void Recorder::save() {
    const std::lock_guard guard(mutex_);
    journal_.snapshot(upgrade::encode(run_));
}

std::optional<upgrade::Run> load_run(const record::Loaded& loaded, std::vector<std::string>& warnings) {
    warnings.insert(warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
    if (loaded.entries.empty()) return std::nullopt;
    std::vector<upgrade::TimedPayload> payloads;
    payloads.reserve(loaded.entries.size());
    for (const auto& entry : loaded.entries) payloads.push_back({entry.time, entry.payload});
    return upgrade::replay(payloads);
}

}  // namespace kmm::drive
