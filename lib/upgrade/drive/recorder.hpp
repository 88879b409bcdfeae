// SPDX-License-Identifier: Apache-2.0
// The run in memory and its journal, changed together: what is not recorded has not happened.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "record/space.hpp"
#include "record/state_dir.hpp"
#include "sys/clock.hpp"
#include "upgrade/engine/event.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::drive {

/// Where events go. On return of `append` they survive power loss (or the journal is no real one).
class Journal {
public:
    virtual ~Journal() = default;
    virtual void begin(const value::Node& header) = 0;
    virtual void append(const value::Node& event) = 0;
    /// Keeps the run as one document, against which the journal is checked when it is read. Losing it loses nothing.
    virtual void snapshot(const value::Node& run) = 0;
};

/// The state directory's journal. The caller holds the lock. A disk that is full is told with what to do then
/// (record/space.hpp).
class StateJournal final : public Journal {
public:
    explicit StateJournal(record::StateDir& directory) : directory_(directory) {}
    void begin(const value::Node& header) override { directory_.begin(header); }
    void append(const value::Node& event) override {
        record::with_space_explained(directory_.path(), k_go_on, [&] { directory_.append(event); });
    }
    void snapshot(const value::Node& run) override { directory_.write_snapshot(run); }

private:
    static constexpr std::string_view k_go_on = "kmm-upgrade resume";
    record::StateDir& directory_;
};

/// Keeps everything in memory: dry runs and tests.
class MemoryJournal final : public Journal {
public:
    void begin(const value::Node& header) override { entries.push_back(header); }
    void append(const value::Node& event) override { entries.push_back(event); }
    void snapshot(const value::Node&) override {}
    std::vector<value::Node> entries;
};

/// Called for every event after it was recorded, in the order of the journal, by one thread at a time and outside of
/// the recorder's mutex. The run may be further by then. What it throws is forgotten: the event is recorded.
using Observer = std::function<void(const upgrade::Event&, const std::string& time)>;

/// Thread safe. Errors of the journal are thrown to whoever records; the run in memory is unchanged then.
class Recorder {
public:
    Recorder(upgrade::Run run, Journal& journal, const sys::Clock& clock, Observer observer);
    /// Checks the move, makes it durable, takes it over, calls the observer (if another thread is calling it, that
    /// thread goes on with this event). Costs the same in a run of any size, but for pauses and the end of the run,
    /// which refresh the snapshot. Errors: as upgrade::Ledger::judge and the journal's; none once the event is durable.
    void record(const upgrade::Event& event);
    /// What is fixed in the run. Valid as long as this object.
    [[nodiscard]] const upgrade::Header& header() const noexcept { return header_; }
    /// A copy of where the run is.
    [[nodiscard]] upgrade::RunState state() const;
    /// A copy of one node. O(log nodes).
    [[nodiscard]] upgrade::NodeRecord node(const std::string& name) const;
    /// upgrade::next_steps of the run as it is now.
    [[nodiscard]] upgrade::Decision next_steps(const std::set<std::string>& in_flight) const;
    /// A copy of the run as it is now. O(nodes): for verbs, not for steps.
    [[nodiscard]] upgrade::Run run() const;
    /// Refreshes the snapshot. Never fails: the journal has everything. O(nodes).
    void save() noexcept;
    /// What `body` returns of the run. Nothing is recorded meanwhile: it must be quick, and not call back.
    template <typename Body>
    [[nodiscard]] auto look(Body&& body) const {
        const std::lock_guard guard(mutex_);
        return body(ledger_.run());
    }

private:
    struct Told {
        upgrade::Event event;
        std::string time;
    };
    void tell();
    const upgrade::Header header_;
    mutable std::mutex mutex_;
    upgrade::Ledger ledger_;
    Journal& journal_;
    const sys::Clock& clock_;
    Observer observer_;
    std::list<Told> untold_;   ///< recorded, and not yet given to the observer
    bool is_telling_ = false;  ///< a thread is giving them
};

/// The run a state directory holds, of one of `procedures`; nullopt when it is idle. Warnings of the reader are
/// appended to `warnings`.
[[nodiscard]] std::optional<upgrade::Run> load_run(const record::Loaded& loaded, const upgrade::Procedures& procedures,
                                                  std::vector<std::string>& warnings);

}  // namespace kmm::drive
