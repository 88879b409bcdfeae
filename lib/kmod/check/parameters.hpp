// SPDX-License-Identifier: Apache-2.0
// Module parameters: what the user asked for against what the module declares. The kernel itself only logs an unknown
// parameter and goes on, so everything is checked here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

/// Appends a finding for every parameter of `wanted` ("key=value" or "key") that the module does not declare (code
/// "unknown-parameter", with the nearest name as hint), that is malformed, or whose value does not fit the declared
/// type
/// ("bad-parameter"). What the kernel takes, perhaps for something else than what is meant, is a warning
/// ("odd-parameter"): such a boolean, a parameter that is given again with another value, one of the kernel's own.
/// Findings have exit `checks_failed`. Source: Linux kernel/params.c, lib/kstrtox.c.
void check_parameters(const ModuleFile& module, const std::vector<std::string>& wanted, Diagnostics& findings);

/// The text the kernel parses: entries separated by blanks, values with blanks in double quotes. Entries must have
/// passed `check_parameters`.
[[nodiscard]] std::string parameter_text(const std::vector<std::string>& wanted);

/// Whether the text that sysfs shows for a parameter of `type` can come from the wanted value: Y for 1, 16 for 0x10.
[[nodiscard]] bool shows_value(const std::string& type, const std::string& wanted, const std::string& shown);

/// "key" -> "value" of the entries; a key without "=" has "".
[[nodiscard]] std::map<std::string, std::string> parameter_map(const std::vector<std::string>& wanted);

}  // namespace kmm::kmod
