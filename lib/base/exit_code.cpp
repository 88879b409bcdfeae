// SPDX-License-Identifier: Apache-2.0
#include "base/exit_code.hpp"

#include <array>

namespace kmm {
namespace {

constexpr std::array k_rows = {
    ExitCodeRow{Exit::ok, "ok", "done, or nothing to do"},
    ExitCodeRow{Exit::other, "error", "anything not listed here"},
    ExitCodeRow{Exit::changes, "changes", "there are changes (diff)"},
    ExitCodeRow{Exit::checks_failed, "checks-failed", "checks failed, nothing was changed"},
    ExitCodeRow{Exit::paused, "paused", "stopped by a failure or a pause, resumable"},
    ExitCodeRow{Exit::partial, "partial", "some nodes failed or were skipped"},
    ExitCodeRow{Exit::refused, "module-refused", "the kernel refused the module"},
    ExitCodeRow{Exit::busy, "module-busy", "the module is in use"},
    ExitCodeRow{Exit::hung, "loader-hung", "the loader hangs in the kernel"},
    ExitCodeRow{Exit::unsafe, "image-unsafe", "the image is unsafe or over a limit"},
    ExitCodeRow{Exit::unhealthy, "node-unhealthy", "the node is unhealthy after the step"},
    ExitCodeRow{Exit::usage, "usage", "wrong option, argument or verb"},
    ExitCodeRow{Exit::data, "malformed", "malformed input"},
    ExitCodeRow{Exit::not_found, "not-found", "input or object not found"},
    ExitCodeRow{Exit::unavailable, "unavailable", "unreachable after retries"},
    ExitCodeRow{Exit::bug, "bug", "a bug in this program"},
    ExitCodeRow{Exit::io, "io", "a file could not be read or written"},
    ExitCodeRow{Exit::locked, "locked", "held by another run"},
    ExitCodeRow{Exit::integrity, "integrity", "digest or signature mismatch"},
    ExitCodeRow{Exit::no_permission, "no-permission", "missing permission or credentials"},
    ExitCodeRow{Exit::config, "config", "bad configuration, or state of a newer program"},
    ExitCodeRow{Exit::timeout, "timeout", "--timeout was reached"},
    ExitCodeRow{Exit::hangup, "hangup", "ended by SIGHUP, state saved"},
    ExitCodeRow{Exit::interrupted, "interrupted", "interrupted by SIGINT, state saved"},
    ExitCodeRow{Exit::terminated, "terminated", "ended by SIGTERM, state saved"},
};

}  // namespace

std::span<const ExitCodeRow> exit_code_table() noexcept { return k_rows; }

bool is_interruption(Exit code) noexcept {
    return code == Exit::hangup || code == Exit::interrupted || code == Exit::terminated;
}

std::string_view exit_name(Exit code) noexcept {
    for (const auto& row : k_rows) {
        if (row.code == code) return row.name;
    }
    return "unknown";
}

}  // namespace kmm
