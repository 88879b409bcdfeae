// SPDX-License-Identifier: Apache-2.0
// What a person sees while a run is walked: a live table on a terminal, else one line per event.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cli/app.hpp"
#include "cli/table.hpp"
#include "upgrade/drive/driver.hpp"
#include "upgrade/drive/gate.hpp"
#include "upgrade/drive/recorder.hpp"
#include "kmm-upgrade/session/board.hpp"
#include "kmm-upgrade/session/causes.hpp"
#include "kmm-upgrade/session/event_command.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {

/// An event in two parts: "node-a loading -> loaded" and "loaded kmm_hello 8C1F0E".
struct EventText {
    std::string change, message;
};
/// What an event says; both are "" for events that tell a reader nothing. A long cause that `said` has is not repeated.
[[nodiscard]] EventText event_text(const upgrade::Event& event, SaidCauses& said);
/// The same as one line with the time of day before it, "10:41:07 node-a ...", or "".
[[nodiscard]] std::string event_line(const upgrade::Event& event, const std::string& time, SaidCauses& said);

/// Draws until it is destroyed or stopped. Its observer may be called from several threads.
class Progress {
public:
    Progress(cli::Context& context, const upgrade::Run& run);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    /// What the recorder calls for each event. It costs O(log nodes) and never waits for a command.
    [[nodiscard]] drive::Observer observer();
    /// From now on `command` (--on-event; "" for none) gets each event as a JSON line on its standard input.
    void pass_on(const std::string& command, std::function<bool()> is_stopped);
    /// Waits for the command of --on-event as EventCommand::finish does, and removes the live table; to be called
    /// before the result is printed. False if events were not passed on because the user has asked to stop.
    bool stop();
    /// As stop(), for a walk that ended like that: what the user has cut short is interrupted.
    [[nodiscard]] drive::Ended stop(drive::Ended ended);
    /// One permanent line on standard error, above the live table.
    void note(const std::string& text);
    /// What the run is about, as NAMESPACE/NAME.
    [[nodiscard]] std::string subject() const { return upgrade::describe(ledger_.run()).subject(); }

private:
    void seen(const upgrade::Event& event, const std::string& time);
    void draw();

    cli::Context& context_;
    std::mutex mutex_;
    upgrade::Ledger ledger_;  ///< grows by the events; only the live table needs it
    Board board_;
    SaidCauses said_;
    cli::LiveArea area_;
    std::chrono::steady_clock::time_point begin_, drawn_{};
    std::size_t finals_begin_ = 0;
    bool live_ = false;
    std::unique_ptr<EventCommand> command_;
    std::jthread ticker_;
};

/// The observer of `progress`, which passes events on to `command`, see Progress::pass_on. `is_stopped`: the user has
/// asked to stop. `progress` must outlive the observer.
[[nodiscard]] drive::Observer told_to_command(Progress& progress, const std::string& command,
                                              std::function<bool()> is_stopped);
/// The host's time of day; what a walk waits for is noted by `progress`, which must outlive the result.
[[nodiscard]] drive::Pace pace_of(Progress& progress);

}  // namespace kmm::tool_upgrade
