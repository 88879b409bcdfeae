// SPDX-License-Identifier: Apache-2.0
// What the runners share: the worker's command line, its document among other output, and judging how a call ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/seam/runner.hpp"
#include "sys/process.hpp"

namespace kmm::cluster {

/// Written as a line of its own to stdout and stderr on the node right before the worker starts. On stdout it marks
/// where the worker's own output begins; on stderr it proves that the worker may have started.
inline constexpr std::string_view k_started_marker = "kmm-worker-started";
/// Written to stderr on the node when the worker's program is not there; proof that nothing started.
inline constexpr std::string_view k_missing_marker = "kmm-worker-missing";

/// The call's arguments and "-o json".
[[nodiscard]] std::vector<std::string> call_words(const WorkerCall& call);
/// The worker's argv: `worker_command` split at blanks, then call_words.
[[nodiscard]] std::vector<std::string> worker_argv(const std::string& worker_command, const WorkerCall& call);

/// The worker's document in `text`: all of `text` if that is one JSON object with a kind, else the one such object in
/// it that begins with {"apiVersion":"kmmtools/, whatever other programs printed before or after it. Null if there is
/// none, or more than one.
[[nodiscard]] value::Node worker_document(std::string_view text);

/// What is known of a child apart from its result.
struct ChildLog {
    enum class End {
        ended,        ///< with its own exit code or, for a local worker, signal
        killed,       ///< the worker was killed by a signal on the node; which one is not known
        lost,         ///< the transport failed after the worker may have started
        unreachable,  ///< the transport failed before
    };
    End end = End::ended;
    bool started = true;  ///< false if a transport that announces the start has not
    std::string text;     ///< what the user may see of stderr and of the transport's log
};

/// Judges an ended child. A reply is `completed` when the worker ended by itself or by a signal on the node, with or
/// without a document; a document counts only without a timeout and a signal. The last lines of log.text become the
/// transport text.
[[nodiscard]] WorkerReply judge(const sys::ProcessResult& result, const ChildLog& log);

}  // namespace kmm::cluster
