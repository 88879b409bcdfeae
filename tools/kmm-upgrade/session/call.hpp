// SPDX-License-Identifier: Apache-2.0
// One call of the program: its command line, its console, its clock, and when it has to stop.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "cli/app.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/random.hpp"

namespace kmm::tool_upgrade {

class Call {
public:
    /// Writes nothing. Errors: usage "bad-value" for --api-timeout; those of cli::require_report for --metrics.
    Call(const cli::Args& args, cli::Context& context);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// True once a signal asked to stop or --timeout passed.
    [[nodiscard]] bool stopped() const;
    /// The exit code of having stopped: 129, 130, 143 or 124.
    [[nodiscard]] Exit stop_exit() const;
    /// Errors: "interrupted", with stop_exit(), once stopped.
    void require_going_on() const;
    /// One line of answer to `question`; nullopt at the end of the input and once stopped(), also if an answer came
    /// with it.
    [[nodiscard]] std::optional<std::string> ask(const std::string& question) const;
    /// "note: TEXT" on standard error, unless --quiet. The text is escaped; its commands get PlaceOptions. Thread safe.
    void note(const std::string& text) const;

    /// Calls `write`, for a file beside the result, then `print`, for the result. An error of `write` hides no result:
    /// it is told after it on standard error, and its exit code is returned where `print` returns ok.
    [[nodiscard]] Exit print_beside(const std::function<void()>& write, const std::function<Exit()>& print) const;

    [[nodiscard]] const cli::Args& args() const noexcept { return args_; }
    [[nodiscard]] cli::Context& context() const noexcept { return context_; }
    [[nodiscard]] sys::LinuxClock& clock() noexcept { return clock_; }
    [[nodiscard]] sys::LinuxFileOps& files() noexcept { return files_; }
    [[nodiscard]] sys::LinuxRandom& random() noexcept { return random_; }
    /// --api-timeout.
    [[nodiscard]] std::chrono::milliseconds api_timeout() const noexcept { return api_timeout_; }

private:
    const cli::Args& args_;
    cli::Context& context_;
    sys::LinuxClock clock_;
    sys::LinuxFileOps files_;
    sys::LinuxRandom random_;
    std::chrono::milliseconds api_timeout_{300'000};
    std::optional<std::chrono::milliseconds> deadline_;  ///< monotonic
};

/// The path from the root, with links followed as far as they lead; `path` itself where that is not known.
[[nodiscard]] std::string absolute_path(const std::string& path);

}  // namespace kmm::tool_upgrade
