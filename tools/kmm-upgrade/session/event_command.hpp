// SPDX-License-Identifier: Apache-2.0
// The command of --on-event: it gets one event after the other, and no node ever waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kmm::tool_upgrade {

/// Runs the command once for each event, in their order, on a thread of its own. What goes wrong with the command is
/// said, the same trouble once in a row, and changes nothing else.
class EventCommand {
public:
    using Say = std::function<void(const std::string& text)>;
    /// `words`: the command, not empty; `directory`: where it runs, "" for ours. `say` prints a line; `is_stopped`: the
    /// user has asked to stop. Both are called from several threads.
    EventCommand(std::vector<std::string> words, Say say, std::function<bool()> is_stopped, std::string directory = "");
    /// As finish().
    ~EventCommand();
    EventCommand(const EventCommand&) = delete;
    EventCommand& operator=(const EventCommand&) = delete;

    /// Puts an event, the command's standard input, at the end of the queue. O(1), never waits for the command. Thread
    /// safe.
    void push(std::string input);
    /// Returns once the command has got every event, at the latest after `patience`, and once the user has asked to
    /// stop without waiting at all. Then a command under way is ended with all that it has started, and the number of
    /// events that it did not get is said. Later calls, and events pushed later, do nothing. False if the command did
    /// not get every event because the user has asked to stop.
    bool finish(std::chrono::milliseconds patience = std::chrono::seconds(30));

private:
    void run();
    void run_once(const std::string& input);
    [[nodiscard]] bool is_ending() const;

    std::vector<std::string> words_;
    std::string directory_;
    Say say_;
    std::function<bool()> is_stopped_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::string> queue_;  ///< the first is the one under way
    std::string last_trouble_;
    bool is_ending_ = false, is_finished_ = false, is_cut_ = false;
    std::thread thread_;
};

}  // namespace kmm::tool_upgrade
