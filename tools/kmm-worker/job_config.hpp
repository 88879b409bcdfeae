// SPDX-License-Identifier: Apache-2.0
// The documents of CONFIG, and where in it a fault is.
#pragma once

#include <string>

#include "base/error.hpp"
#include "kmm-worker/job.hpp"

namespace kmm::tool_worker {

/// `error` with another exit code, and `message` in the place of its own.
[[nodiscard]] Error with_exit(const Error& error, Exit exit, const std::string& message);

/// A fault in what CONFIG says, at its field, with which the message begins. A value that CONFIG cannot have is a fault
/// of the configuration (78), as its form is. A flag that is understood and refused, or that is modprobe's but not
/// ours, is none.
[[nodiscard]] Error as_configuration_fault(const Error& error, const Job& job);

/// Reads CONFIG from the file `name`, or from standard input for "-", into `job`: configuration, credentials, policies,
/// places. `expected_size` is the caller's word on how many bytes standard input has, "" for none. Errors: config (78)
/// with all faults of the documents; "truncated-input"; those of reading the file.
void read_config(const std::string& name, const std::string& expected_size, Needs needs, UnknownFields unknown,
                 Job& job);

}  // namespace kmm::tool_worker
