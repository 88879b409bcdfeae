// SPDX-License-Identifier: Apache-2.0
// Orderly end of a program on SIGINT, SIGTERM and SIGHUP, and descriptors 0 to 2 that are always there.
#pragma once

namespace kmm::sys {

/// Descriptors 0, 1 and 2 that are closed are opened on /dev/null, so that no file or socket can ever become standard
/// output or error. Reading finds the end; writing fails with EBADF still, so that a result nobody can get is no
/// success.
void open_standard_descriptors();

/// To be called once, first thing in main: SIGPIPE is ignored (writes report EPIPE instead); the first SIGINT, SIGTERM
/// or SIGHUP only requests an interrupt; a second one ends the process at once with 130 (SIGINT) or 143. A SIGINT or
/// SIGHUP that the parent had ignored (nohup, background jobs) stays ignored. Opens the standard descriptors, as
/// open_standard_descriptors does.
void install_signal_handlers();

/// True from the first signal on, for ever.
[[nodiscard]] bool interrupt_requested() noexcept;
/// SIGINT or SIGTERM (SIGHUP counts as SIGTERM); 0 when nothing was requested.
[[nodiscard]] int interrupt_signal() noexcept;
/// Asks for an interrupt as a signal would, from inside the program. `signal` is SIGINT or SIGTERM. Async-signal-safe.
void request_interrupt(int signal) noexcept;
/// Forgets a request. For tests.
void clear_interrupt() noexcept;
/// A descriptor that polls readable from the first signal on; -1 before install_signal_handlers. Not to be read or
/// closed.
[[nodiscard]] int interrupt_fd() noexcept;

}  // namespace kmm::sys
