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
/// Name of a user; "uid N" for one that has none here.
[[nodiscard]] std::string user_name(std::int64_t uid);
/// Who runs this process, for records and messages: the user of the effective uid; for root under sudo the user who
/// called sudo (SUDO_USER, if that is a user of this host; nobody else is believed, as the variable is theirs to set).
/// Needs no terminal. "/" and control characters are "_".
[[nodiscard]] std::string caller_name();
/// Which pid namespace this process is in, as the kernel names it ("pid:[4026531836]"); "" if /proc does not say. Pids
/// of another one mean nothing here.
[[nodiscard]] std::string pid_namespace();
/// Start of a process in clock ticks since boot (proc(5), field 22 of stat); nullopt if there is no such process.
/// A zombie counts as gone.
[[nodiscard]] std::optional<std::uint64_t> process_start_time(std::int64_t pid);

}  // namespace kmm::sys
