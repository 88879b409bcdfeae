// SPDX-License-Identifier: Apache-2.0
// Running a child program without a shell.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kmm::sys {

struct ProcessSpec {
    std::vector<std::string> argv;             ///< argv[0] is looked up in PATH
    std::string directory;  ///< where the child runs and what a relative path is of; "", or if it is gone: where we run
    std::string stdin_text;                    ///< fed completely, then closed
    std::vector<std::pair<std::string, std::string>> extra_env;
    std::optional<std::chrono::milliseconds>
        timeout;  ///< then SIGTERM, after `grace` SIGKILL, for all that it has started in its session
    std::function<bool()>
        cancelled;  ///< optional, asked once a second and after signals: true ends it as the timeout does
    std::size_t output_max = 16U << 20U;       ///< bytes kept of each stream; the rest is read and dropped
    bool keep_end = false;                     ///< of longer streams the end is kept, not the beginning
    std::function<void(std::string_view)> on_stderr_line;  ///< optional, called while the child runs
    bool inherit_streams = false;  ///< the child has our standard input, output and error: nothing is fed or kept
    std::vector<int> inherited;    ///< descriptors above 2 that the child gets too, under the same numbers
    std::chrono::milliseconds grace{2000};     ///< between SIGTERM and SIGKILL
    /// Own session, so that a terminal's Ctrl-C reaches only the parent.
    bool new_session = true;
};

struct ProcessResult {
    int exit_code = -1;        ///< valid when `signal` is 0
    int signal = 0;            ///< the signal that ended the child, else 0
    bool timed_out = false;
    bool cancelled = false;    ///< ended because ProcessSpec::cancelled said so
    std::string out, err;
};

/// Runs the child to its end. It gets descriptors above 2 only if `inherited` names them. Errors: when it cannot start
/// (not_found 66 "command-not-found", otherwise io). Thread safe.
[[nodiscard]] ProcessResult run_process(const ProcessSpec& spec);

/// Becomes the command, looked up as by run_process; returns only why it cannot. Errors: not_found "command-not-found"
/// if it is not in PATH.
[[nodiscard]] Error replace_process(const std::vector<std::string>& argv);

}  // namespace kmm::sys
