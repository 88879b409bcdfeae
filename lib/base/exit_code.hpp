// SPDX-License-Identifier: Apache-2.0
// The one table of exit codes that all three commands share.
#pragma once

#include <span>
#include <string_view>

namespace kmm {

/// Process exit codes. The numbers are a contract: they never change meaning between releases.
/// Source: ARCHITECTURE.md "Exit codes"; sysexits(3) for 64..78, timeout(1) for 124, shells for 129, 130 and 143.
enum class Exit : int {
    ok = 0,              ///< done, or nothing to do
    other = 1,           ///< anything not listed
    changes = 2,         ///< `diff` only: there are changes
    checks_failed = 10,  ///< checks failed, nothing was changed
    paused = 11,         ///< stopped by a failure or a pause, resumable
    partial = 12,        ///< some nodes failed or were skipped, the rest is done
    refused = 13,        ///< the kernel refused the module
    busy = 14,           ///< the module is in use
    hung = 15,           ///< the loader is stuck in the kernel, state unknown
    unsafe = 16,         ///< the image is unsafe or over a limit
    unhealthy = 17,      ///< the node is unhealthy after the step
    usage = 64,          ///< wrong option, argument or verb
    data = 65,           ///< malformed input
    not_found = 66,      ///< input or object not found
    unavailable = 69,    ///< network, registry or API unreachable after retries
    bug = 70,            ///< an internal invariant is broken
    io = 74,             ///< disk or state could not be read or written
    locked = 75,         ///< held by another run
    integrity = 76,      ///< digest, checksum or signature mismatch
    no_permission = 77,  ///< missing capability, file permission or registry credentials
    config = 78,         ///< configuration, or a state format newer than this program
    timeout = 124,       ///< --timeout reached
    hangup = 129,        ///< SIGHUP, state saved
    interrupted = 130,   ///< SIGINT, state saved
    terminated = 143,    ///< SIGTERM, state saved
};

/// One row of the table as `--help` and the man pages print it.
struct ExitCodeRow {
    Exit code;
    std::string_view name;     ///< short kebab-case name, e.g. "checks-failed"
    std::string_view meaning;  ///< one phrase, lower case, no full stop
};

/// All rows in ascending order of the number. Static storage.
[[nodiscard]] std::span<const ExitCodeRow> exit_code_table() noexcept;

/// True for the codes of a program that a signal has ended: 129, 130 and 143.
[[nodiscard]] bool is_interruption(Exit code) noexcept;

/// The short name of `code`, or "unknown" if it is not in the table.
[[nodiscard]] std::string_view exit_name(Exit code) noexcept;

}  // namespace kmm
