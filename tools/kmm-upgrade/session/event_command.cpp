// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/event_command.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"

namespace kmm::tool_upgrade {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds k_command_timeout{30};
constexpr milliseconds k_poll{100};          // how soon a wait at the end notices that the user has asked to stop
constexpr milliseconds k_silent_wait{2000};  // a longer wait at the end is said

std::string whole_seconds(milliseconds duration) {
    return fmt::format("{}s", std::chrono::ceil<std::chrono::seconds>(duration).count());
}

std::string events_text(std::size_t count) { return count == 1 ? "1 event" : fmt::format("{} events", count); }

}  // namespace

EventCommand::EventCommand(std::vector<std::string> words, Say say, std::function<bool()> is_stopped,
                           std::string directory)
    : words_(std::move(words)),
      directory_(std::move(directory)),
      say_(std::move(say)),
      is_stopped_(std::move(is_stopped)),
      thread_([this] { run(); }) {}

EventCommand::~EventCommand() {
    try {
        finish();
    } catch (...) {  // a line that could not be printed must not end the program
    }
    if (thread_.joinable()) thread_.join();
}

void EventCommand::push(std::string input) {
    const std::lock_guard guard(mutex_);
    if (is_finished_) return;
    queue_.push_back(std::move(input));
    changed_.notify_all();
}

bool EventCommand::is_ending() const {
    const std::lock_guard guard(mutex_);
    return is_ending_;
}

bool EventCommand::finish(milliseconds patience) {
    std::size_t left = 0;
    bool was_stopped = false;
    {
        std::unique_lock lock(mutex_);
        if (std::exchange(is_finished_, true)) return !is_cut_;
        const auto begin = std::chrono::steady_clock::now();
        bool is_said = false;
        while (!queue_.empty()) {
            const auto waited = std::chrono::steady_clock::now() - begin;
            was_stopped = is_stopped_();
            if (was_stopped || waited >= patience) break;
            if (!is_said && waited >= k_silent_wait) {
                is_said = true;
                const auto text = fmt::format("note: waiting up to {} for --on-event: {} to get {}",
                                              whole_seconds(patience), words_.front(), events_text(queue_.size()));
                lock.unlock();
                say_(text);
                lock.lock();
                continue;
            }
            changed_.wait_for(lock, k_poll);
        }
        left = queue_.size();
        is_cut_ = was_stopped;
        is_ending_ = true;
        changed_.notify_all();
    }
    thread_.join();
    if (left == 0) return true;
    say_(fmt::format("warning: --on-event: {} did not get the last {}: {}", words_.front(), events_text(left),
                     was_stopped ? "the upgrade was stopped" : "it was still busy after " + whole_seconds(patience)));
    return !was_stopped;
}

void EventCommand::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return is_ending_ || !queue_.empty(); });
        if (is_ending_) return;
        const auto input = queue_.front();
        lock.unlock();
        run_once(input);
        lock.lock();
        if (is_ending_) return;
        queue_.pop_front();
        changed_.notify_all();
    }
}

void EventCommand::run_once(const std::string& input) {
    sys::ProcessSpec spec;
    spec.argv = words_;
    spec.directory = directory_;
    spec.stdin_text = input;
    spec.timeout = k_command_timeout;
    spec.cancelled = [this] { return is_ending(); };
    std::string trouble;
    try {
        sys::require_trusted_program(words_.front(), directory_);
        const auto result = sys::run_process(spec);
        if (result.cancelled) return;
        if (result.timed_out) trouble = "took longer than " + whole_seconds(k_command_timeout);
        else if (result.signal != 0) trouble = fmt::format("was ended by signal {}", result.signal);
        else if (result.exit_code != 0) trouble = fmt::format("exited with {}", result.exit_code);
    } catch (const Error& error) {
        trouble = "could not be started: " + error.message();
    } catch (const std::exception& error) {
        trouble = fmt::format("could not be started: {}", error.what());
    }
    if (trouble.empty() || trouble == last_trouble_) return;
    say_(fmt::format("warning: --on-event: {} {}", words_.front(), trouble));
    last_trouble_ = trouble;
}

}  // namespace kmm::tool_upgrade
