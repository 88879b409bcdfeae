// SPDX-License-Identifier: Apache-2.0
// One limit for all pipes and terminals that a command reads.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace kmm::sys {

/// From now on, read_file, read_fd and read_trusted_file wait for pipes and terminals until `patience` from now at the
/// most, then they fail with timeout "timeout". What is there already is read afterwards, too. k_patient takes the
/// limit away. For the start of a process: not while other threads read.
void limit_input_waits(std::chrono::milliseconds patience);

/// The limit of limit_input_waits if it has passed.
[[nodiscard]] std::optional<std::chrono::milliseconds> passed_input_limit();

/// For what reads many files, before each of them, here `path`. Errors: timeout "timeout" where the limit of
/// limit_input_waits has passed; interrupted "interrupted" after a signal.
void require_input_time(const std::string& path);

}  // namespace kmm::sys
