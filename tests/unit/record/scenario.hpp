// SPDX-License-Identifier: Apache-2.0
// One life of a state directory, played by all fault tests: a run with five entries, archived, and a second one.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "record/state_dir.hpp"
#include "support/sanitized.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::record::test {

class FixedClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'790'000'000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return {}; }
    bool sleep_for(std::chrono::milliseconds) override { return true; }
};

/// Sanitizers make forks and checksums tens of times slower; they look at the code, the plain build at all points.
inline const std::size_t k_stride = kmm::test::sanitized() ? 16 : 1;

inline constexpr int k_entries = 5;  ///< of the first run, its header included
inline constexpr int k_steps = k_entries + 2;

inline value::Node payload_of(int entry) {
    return value::Node::mapping({{"entry", value::Node(entry)},
                                 {"node", value::Node("worker-" + std::to_string(entry))},
                                 {"text", value::Node("line\nbreak \"quoted\" \xc3\xa9")}});
}

/// Plays the whole life; `on_step(n)` is called when step n (from 1) is acknowledged. Steps 1 to k_entries are the
/// entries of the first run, then comes its archiving, then the begin of the second run.
inline void play(const std::string& dir, sys::FileOps& ops, const std::function<void(int)>& on_step) {
    const FixedClock clock;
    StateDir state(dir, ops, clock);
    state.begin(payload_of(1));
    on_step(1);
    for (int entry = 2; entry <= k_entries; ++entry) {
        state.append(payload_of(entry));
        on_step(entry);
        state.write_snapshot(payload_of(entry));
    }
    state.archive("first");
    on_step(k_entries + 1);
    state.begin(payload_of(1));
    on_step(k_entries + 2);
}

/// "" if what `dir` holds is what a crash after step `acked` may leave, else what is wrong. The record must show every
/// acknowledged step, and at most the one after it.
inline std::string verdict(const std::string& dir, int acked) {
    sys::LinuxFileOps ops;
    const FixedClock clock;
    const StateDir state(dir, ops, clock);
    try {
        const Loaded now = state.load();
        const std::vector<HistoryItem> history = state.history();
        for (std::size_t i = 0; i < now.entries.size(); ++i) {
            if (!now.entries[i].payload.same_value(payload_of(static_cast<int>(i) + 1))) {
                return "entry " + std::to_string(i + 1) + " is another one";
            }
        }
        int reached = static_cast<int>(now.entries.size());
        if (!history.empty()) {
            if (history.size() != 1 || state.load_history(history[0]).entries.size() != k_entries) {
                return "the history is not the first run";
            }
            reached = k_entries + 1 + static_cast<int>(now.entries.size());
        }
        if (reached < acked || reached > acked + 1) {
            return "acknowledged " + std::to_string(acked) + " steps, found " + std::to_string(reached);
        }
        return {};
    } catch (const Error& error) {
        return error.code() + ": " + error.message();
    }
}

/// Goes on from whatever `dir` holds and returns "" if that works to the end of a run.
inline std::string go_on(const std::string& dir) {
    sys::LinuxFileOps ops;
    const FixedClock clock;
    StateDir state(dir, ops, clock);
    try {
        std::size_t count = state.load().entries.size();
        if (count == 0) {
            state.begin(payload_of(1));
            count = 1;
        }
        state.append(payload_of(static_cast<int>(count) + 1));
        state.write_snapshot(payload_of(0));
        const Loaded after = StateDir(dir, ops, clock).load();
        if (after.entries.size() != count + 1 || after.partial_tail || !after.warnings.empty()) {
            return "the appended entry is not there";
        }
        state.archive("end");
        return StateDir(dir, ops, clock).load().entries.empty() ? "" : "the run is still there";
    } catch (const Error& error) {
        return error.code() + ": " + error.message();
    }
}

/// A state directory of its own in a temporary one: in memory where that is possible, because what a real disk makes of
/// an fsync is modelled, not awaited.
class ScratchState {
public:
    ScratchState()
        : base_("kmm-record-", ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ""), path_(base_.path() + "/state") {
        sys::LinuxFileOps ops;
        const FixedClock clock;
        StateDir(path_, ops, clock).open(true);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    sys::TempDir base_;
    std::string path_;
};

}  // namespace kmm::record::test
