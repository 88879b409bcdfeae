// SPDX-License-Identifier: Apache-2.0
// What the ssh and the local runner share: the worker's command line, and judging how a call ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/runner.hpp"
#include "sys/process.hpp"

namespace kmm::cluster {

/// Written to stderr on the node right before the worker starts; proof that it may have started.
inline constexpr std::string_view k_started_marker = "kmm-worker-started";
/// Written to stderr on the node when the worker's program is not there; proof that nothing started.
inline constexpr std::string_view k_missing_marker = "kmm-worker-missing";

/// `text` as one word of a POSIX shell, whatever it contains (NUL excepted).
[[nodiscard]] std::string shell_quote(std::string_view text);

/// The worker's argv: `worker_command` split at blanks, the call's arguments, "-o json".
[[nodiscard]] std::vector<std::string> worker_argv(const std::string& worker_command, const WorkerCall& call);

enum class Started { no, maybe };

/// Judges an ended child. `started`: whether the worker may have started; `transport_failed`: the exit code is the
/// transport's own (ssh's 255). A reply is `completed` only with exactly one JSON document on stdout, an exit code, and no
/// timeout. `stderr_text` is what the user may see of the child's stderr; its last lines become the transport text.
[[nodiscard]] WorkerReply
judge(const sys::ProcessResult& result, Started started, bool transport_failed, std::string_view stderr_text);

}  // namespace kmm::cluster
