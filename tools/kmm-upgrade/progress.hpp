// SPDX-License-Identifier: Apache-2.0
// What a person sees while a run is walked: a live table on a terminal, else one line per event.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "cli/app.hpp"
#include "cli/table.hpp"
#include "drive/gate.hpp"
#include "drive/recorder.hpp"

namespace kmm::tool_upgrade {

/// What an event says: "node-a loading -> loaded  loaded kmm_hello 8C1F0E". "" for events that tell a reader nothing.
[[nodiscard]] std::string event_text(const upgrade::Event& event);
/// The same with the time of day before it, "10:41:07 node-a ...".
[[nodiscard]] std::string event_line(const upgrade::Event& event, const std::string& time);

/// Draws until it is destroyed or stopped. Its observer may be called from several threads.
class Progress {
public:
    Progress(cli::Context& context, const upgrade::Run& run);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    [[nodiscard]] drive::Observer observer();
    /// Removes the live table; to be called before the result is printed.
    void stop();
    /// One permanent line on standard error.
    void note(const std::string& text);
    /// What the run is about, as NAMESPACE/NAME.
    [[nodiscard]] std::string module() const { return ledger_.run().module(); }

private:
    void seen(const upgrade::Event& event, const std::string& time);
    void draw();

    cli::Context& context_;
    std::mutex mutex_;
    upgrade::Ledger ledger_;  ///< grows by the events; only what is drawn needs it
    cli::LiveArea area_;
    std::chrono::steady_clock::time_point begin_;
    std::size_t finals_begin_ = 0;
    bool live_ = false;
    std::jthread ticker_;
};

/// The observer of `progress`, and after it `command` (--on-event; "" for none) gets each event as a JSON line on its standard
/// input. What goes wrong with it is told once and changes nothing. `progress` must outlive the observer.
[[nodiscard]] drive::Observer told_to_command(Progress& progress, const std::string& command);
/// The host's time of day; what a walk waits for is noted by `progress`, which must outlive the result.
[[nodiscard]] drive::Pace pace_of(Progress& progress);

}  // namespace kmm::tool_upgrade
