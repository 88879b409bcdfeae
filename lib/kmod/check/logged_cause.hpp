// SPDX-License-Identifier: Apache-2.0
// Why a load failed, as the kernel and drivers say it in the log. Source: pr_err of Linux 6.1 kernel/module/main.c,
// kernel/params.c and drivers/base/firmware_loader/main.c. For kmod/load.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kmod/host/host.hpp"

namespace kmm::kmod {

inline constexpr std::string_view k_unknown_symbol = "Unknown symbol ";
inline constexpr std::string_view k_found_and_refused = "(err -22)";

/// A cause that the kernel names itself in one of its lines, and what helps against it; empty texts if it names none.
struct LoggedCause {
    std::string cause, hint;
};

/// Of the helper process, whose name is in it.
[[nodiscard]] bool is_of_lockdown(const std::string& line);

/// What a security module says of the helper process where no audit daemon takes it: "audit: type=1400 audit(1.2:3):
/// avc:  denied  { module_load } for  pid=9 comm="kmm-worker" ... tclass=system", 'apparmor="DENIED"
/// operation="capable" profile="x" pid=9 comm="kmm-worker" capname="sys_module"', 'type=1800 ... op=appraise_data
/// cause="IMA-signature-required" comm="kmm-worker"', "LoadPin: kernel-module denied obj=...".
[[nodiscard]] LoggedCause security_refusal(const std::string& line);

/// What the kernel says of a module for want of a signature that it takes; it names none.
[[nodiscard]] bool is_of_signatures(const std::string& line);

/// What those lines mean.
[[nodiscard]] LoggedCause logged_signature(const std::vector<std::string>& lines);

/// Of a load, though it names no module.
[[nodiscard]] bool is_of_any_load(const std::string& line);

/// The parameter whose value the kernel did not take, as one of its lines says: "demo: `x' invalid for parameter
/// `answer'", or "too large for parameter"; "" if none does.
[[nodiscard]] std::string refused_parameter(const std::vector<std::string>& lines);

/// Symbol versions, namespaces, vermagic, blacklists, lockdown, security modules, symbols that are exported twice or of
/// a proprietary module, BTF, struct module, relocations, room for modules, names that are registered twice.
/// `directory` is that of the host's modules.
[[nodiscard]] LoggedCause logged_cause(const std::vector<std::string>& lines, const ModuleFile& file,
                                       const HostPaths& host, const std::string& directory);

/// The firmware file that could not be loaded.
[[nodiscard]] LoggedCause logged_firmware(const std::vector<std::string>& lines, const HostPaths& host,
                                          const std::string& release);

}  // namespace kmm::kmod
