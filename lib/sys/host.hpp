// SPDX-License-Identifier: Apache-2.0
// Who and where this process is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kmm::sys {

/// The kernel's node name (uname -n). Never empty: "localhost" when unset.
[[nodiscard]] std::string host_name();
/// /etc/machine-id, 32 hexadecimal digits; "" if there is none.
[[nodiscard]] std::string machine_id();
/// /proc/sys/kernel/random/boot_id, a UUID; "" if it cannot be read.
[[nodiscard]] std::string boot_id();
/// Start of a process in clock ticks since boot (proc(5), field 22 of stat); nullopt if there is no such process.
/// A zombie counts as gone.
[[nodiscard]] std::optional<std::uint64_t> process_start_time(std::int64_t pid);

}  // namespace kmm::sys
