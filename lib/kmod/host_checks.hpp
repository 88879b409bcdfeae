// SPDX-License-Identifier: Apache-2.0
// Checks of a load against the host: its configuration, files, keys and switches. Used by preflight only.
#pragma once

#include "base/error.hpp"
#include "kmod/preflight.hpp"

namespace kmm::kmod {

/// What every check looks at.
struct CheckInput {
    const ModuleIndex& index;
    const LoadWish& wish;
    const HostPaths& host;
    const NodeFacts& facts;
    const KernelState& state;
    const std::string& directory;  ///< of the host's modules, may be ""
    const Preflight& found;        ///< order, host modules and configuration
};

/// Blacklists, install commands and options of modprobe.d and the kernel command line. Errors "blacklisted-module",
/// "install-command"; warnings "blacklisted-module", "install-command", "host-options".
void check_configuration(const CheckInput& input, Diagnostics& findings);
/// firmware= files that are neither in the image nor where the kernel looks. Warning "firmware-missing".
void check_firmware_files(const CheckInput& input, Diagnostics& findings);
/// Signer and keyrings. Errors "unsigned-module", "bad-signature", "key-not-trusted"; warning "key-not-trusted".
void check_signatures(const CheckInput& input, Diagnostics& findings);
/// Built-in modules, modules of the host with the same name or the same aliases, another live build. Error
/// "builtin-module"; warnings "name-conflict", "alias-conflict", "other-build-live".
void check_conflicts(const CheckInput& input, Diagnostics& findings);
/// What is live and stands in the way right now: modules that are coming or going, and ones that are to give way and are in use.
/// Warnings "module-on-its-way", "in-tree-in-use".
void check_live(const CheckInput& input, Diagnostics& findings);
/// Capability, SELinux, memory. Error "no-memory"; warnings "no-capability", "selinux".
void check_process(const CheckInput& input, Diagnostics& findings);

/// GPL-only exports and symbol namespaces, as far as headers and module files tell. Errors "gpl-only",
/// "namespace-missing" (a warning where the kernel's configuration allows it).
void check_exports(const CheckInput& input, Diagnostics& findings);

/// Appends a finding of the checks.
void add_finding(Diagnostics& findings, Severity severity, std::string code, std::string message, std::string hint = {});

/// True if modules without a valid signature are refused.
[[nodiscard]] bool wants_signatures(const KernelState& state);
/// The first five of `names` and how many more there are.
[[nodiscard]] std::string first_of(const std::vector<std::string>& names);
/// The kernel's firmware directories in search order, without empty ones.
[[nodiscard]] std::vector<std::string> firmware_directories(const HostPaths& host, const std::string& release);

}  // namespace kmm::kmod
