// SPDX-License-Identifier: Apache-2.0
// The run in memory and its journal, changed together: what is not recorded has not happened.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "record/space.hpp"
#include "record/state_dir.hpp"
#include "sys/clock.hpp"
#include "upgrade/event.hpp"
#include "upgrade/run.hpp"

namespace kmm::drive {

/// Where events go. On return of `append` they survive power loss (or the journal is no real one).
class Journal {
public:
    virtual ~Journal() = default;
    virtual void begin(const value::Node& header) = 0;
    virtual void append(const value::Node& event) = 0;
    /// Refreshes what `show` reads fast. Losing it loses nothing.
    virtual void snapshot(const value::Node& run) = 0;
};

/// The state directory's journal. The caller holds the lock. A disk that is full is told with what to do then (record/space.hpp).
class StateJournal final : public Journal {
public:
    explicit StateJournal(record::StateDir& directory) : directory_(directory) {}
    void begin(const value::Node& header) override { directory_.begin(header); }
    void append(const value::Node& event) override {
        record::with_space_explained(directory_.path(), k_go_on, [&] { directory_.append(event); });
    }
    void snapshot(const value::Node& run) override {
        record::with_space_explained(directory_.path(), k_go_on, [&] { directory_.write_snapshot(run); });
    }

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

/// Told of every event after it was recorded. Called under the recorder's mutex: must not call back.
using Observer = std::function<void(const upgrade::Event&, const upgrade::Run&, const std::string& time)>;

/// Thread safe. Errors of the journal are thrown to whoever records; the run in memory is unchanged then.
class Recorder {
public:
    Recorder(upgrade::Run run, Journal& journal, const sys::Clock& clock, Observer observer);
    /// Checks the move, makes it durable, takes it over, tells the observer. Errors: as upgrade::apply and the journal's.
    void record(const upgrade::Event& event);
    /// A copy of the run as it is now.
    [[nodiscard]] upgrade::Run run() const;
    [[nodiscard]] upgrade::NodeRecord node(const std::string& name) const;
    /// Refreshes the snapshot.
    void save();

private:
    mutable std::mutex mutex_;
    upgrade::Run run_;
    Journal& journal_;
    const sys::Clock& clock_;
    Observer observer_;
};

/// The run a state directory holds; nullopt when it is idle. Warnings of the reader are appended to `warnings`.
[[nodiscard]] std::optional<upgrade::Run> load_run(const record::Loaded& loaded, std::vector<std::string>& warnings);

}  // namespace kmm::drive
