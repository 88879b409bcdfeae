// SPDX-License-Identifier: Apache-2.0
// How a program of the administrator ended, in words for people.
#pragma once

#include <chrono>
#include <string>

#include "sys/process.hpp"

namespace kmm::drive {

/// "took longer than 5m", "was ended by signal 9" or "exited with 1"; "" for a program that went well. `limit` is the
/// time that it had.
[[nodiscard]] std::string program_fault(const sys::ProcessResult& result, std::chrono::milliseconds limit);

}  // namespace kmm::drive
