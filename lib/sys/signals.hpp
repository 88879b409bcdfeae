// SPDX-License-Identifier: Apache-2.0
// Orderly end of a program on SIGINT, SIGTERM and SIGHUP, and descriptors 0 to 2 that are always there.
#pragma once

#include "base/exit_code.hpp"

namespace kmm::sys {

/// Descriptors 0, 1 and 2 that are closed are opened on /dev/null, so that no file or socket can ever become standard
/// output or error. Reading finds the end; writing fails with EBADF still, so that a result nobody can get is no
/// success.
void open_standard_descriptors();

/// Raises the limit of open files to 256, or as near to it as is allowed. Errors: io (74) "io" below 64: files that
/// cannot be opened would be taken for absent, or be left where they cannot be removed.
void require_open_files();

/// To be called once, first thing in main: SIGPIPE is ignored (writes report EPIPE instead); the first SIGINT, SIGTERM
/// or SIGHUP only requests an interrupt; a second one ends the process at once with 130, 143 or 129. A SIGINT or
/// SIGHUP that the parent had ignored (nohup, background jobs) stays ignored. Opens the standard descriptors, as
/// open_standard_descriptors does.
void install_signal_handlers();

/// True from the first signal on, for ever.
[[nodiscard]] bool interrupt_requested() noexcept;
/// SIGINT, SIGTERM or SIGHUP; 0 when nothing was requested.
[[nodiscard]] int interrupt_signal() noexcept;
/// The exit code of a program that interrupt_signal() has ended, as shells have it: 128 and its number.
[[nodiscard]] Exit interrupt_exit() noexcept;
/// Asks for an interrupt as a signal would, from inside the program. `signal` is one of those. Async-signal-safe.
void request_interrupt(int signal) noexcept;
/// Forgets a request. For tests.
void clear_interrupt() noexcept;
/// A descriptor that polls readable from the first signal on; -1 before install_signal_handlers. Not to be read or
/// closed.
[[nodiscard]] int interrupt_fd() noexcept;

}  // namespace kmm::sys
