// SPDX-License-Identifier: Apache-2.0
// Checks of a load against the host: its configuration, files, keys and switches. Used by preflight only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/check/versions.hpp"
#include "kmod/host/firmware.hpp"

namespace kmm::kmod {

/// What every check looks at.
struct CheckInput {
    const ModuleIndex& index;
    const LoadRequest& request;
    const HostPaths& host;
    const NodeFacts& facts;
    const KernelState& state;
    const std::string& directory;  ///< of the host's modules, may be ""
    const Preflight& found;        ///< order, host modules and configuration
};

/// Blacklists, install commands and options of modprobe.d and the kernel command line. Errors "blacklisted-module",
/// "install-command"; warnings "blacklisted-module", "install-command", "host-options".
void check_configuration(const CheckInput& input, Diagnostics& findings);
/// firmware= files that are neither in the image nor where the kernel looks, or only in a form that it cannot read.
/// Warnings "firmware-missing", "firmware-compressed".
void check_firmware_files(const CheckInput& input, Diagnostics& findings);
/// Signer and keyrings. Errors "unsigned-module", "bad-signature", "key-not-trusted", "key-revoked"; the last two
/// also as warnings.
void check_signatures(const CheckInput& input, const HostModule* reference, Diagnostics& findings);
/// Built-in modules, modules of the host with the same name or the same aliases, another live build. Error
/// "builtin-module"; warnings "name-conflict", "alias-conflict", "other-build-live".
void check_conflicts(const CheckInput& input, Diagnostics& findings);
/// Whether this is a kernel of SUSE that takes supported modules alone.
[[nodiscard]] bool refuses_unsupported(const HostPaths& host);
/// A module that such a kernel refuses. Error "module-unsupported".
void check_support(const HostPaths& host, const ModuleFile& file, Diagnostics& findings);
/// What a module says of itself; `reference` is a module of the kernel's own, nullptr if there is none. Errors
/// "module-unsupported", "structure-differs"; warnings "license-taint", "no-retpoline", "intree-flag".
void check_marks(const CheckInput& input, const HostModule* reference, Diagnostics& findings);
/// What is live and stands in the way right now: modules that are coming or going, and ones that are to give way and
/// are in use or not the kernel's own. Warnings "module-on-its-way", "in-tree-in-use", "not-in-tree".
void check_live(const CheckInput& input, Diagnostics& findings);
/// Where all that is wanted is live already with the identity of the files, and nothing gives way: what the kernel or
/// the host's configuration would refuse today is a warning, as a load has nothing to hand to the kernel. Of signatures
/// that holds only for identities by the bytes or the build id. Returns these findings as they were.
[[nodiscard]] Diagnostics pardon_live(const CheckInput& input, Diagnostics& findings);
/// For a load that finds `name` not live, or as another build: what was pardoned holds. Errors: of require_passed().
void require_live(const Preflight& checked, const std::string& name, const std::string& module);
/// Capability, SELinux, memory. Error "no-memory"; warnings "no-capability", "selinux".
void check_process(const CheckInput& input, Diagnostics& findings);

/// Symbols that a module of the order exports and that the kernel, a live module or another one of the order exports,
/// too. Error "duplicate-symbol".
void check_duplicate_symbols(const CheckInput& input, Diagnostics& findings);

/// GPL-only exports and symbol namespaces, as far as headers and module files tell. Errors "gpl-only",
/// "namespace-missing" (a warning where the kernel's configuration allows it).
void check_exports(const CheckInput& input, Diagnostics& findings);

/// The versions of symbols that the running kernel compares those of modules with, as far as this host tells: by a
/// module of the kernel's own, its headers, the modules of its tree that are loaded first, and, where these do not do,
/// the files of live modules.
class KernelVersions {
public:
    /// `reference` may be null. All arguments must outlive this.
    KernelVersions(const ModuleIndex& index, const HostPaths& host, const std::string& directory,
                   const HostModule* reference)
        : index_(index), host_(host), directory_(directory), reference_(reference) {}

    /// Whether the kernel's own rule for modules of another release is known to be met: rows in __versions, and every
    /// symbol the module uses, module_layout among them, with the version that the running kernel has.
    [[nodiscard]] bool fit(const ModuleFile& file, const std::vector<HostModule>& host_modules);
    /// Whether a symbol that the module uses is known to have another version in the running kernel.
    [[nodiscard]] bool differ(const ModuleFile& file) { return !compare(file, {}).of_kernel.empty(); }
    /// Tells what differs or is missing (see report_versions), and by a warning "versions-not-checked" what nothing
    /// here tells of symbols but `unexported`, which are refused anyway.
    void check(const ModuleFile& file, const std::vector<HostModule>& host_modules,
               const std::set<std::string>& unexported, Diagnostics& findings);

private:
    [[nodiscard]] VersionResult compare(const ModuleFile& file, const std::vector<HostModule>& host_modules);
    /// With the files of live modules, if it takes them.
    [[nodiscard]] VersionResult compare_all(const ModuleFile& file, const std::vector<HostModule>& host_modules);
    void read_live(const std::vector<std::string>& symbols);
    void add(const HostModule& module);

    const ModuleIndex& index_;
    const HostPaths& host_;
    const std::string& directory_;
    const HostModule* reference_;
    std::map<std::string, std::uint32_t, std::less<>> known_;
    bool read_ = false, live_read_ = false, headers_ = false;
};

/// MemAvailable in bytes; nullopt where it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> available_memory(const HostPaths& host);

/// Whether the kernel's configuration has `option`=y ("CONFIG_X"); nullopt where no configuration can be read.
[[nodiscard]] std::optional<bool> kernel_option(const CheckInput& input, std::string_view option);

/// In which forms firmware `file` is in `directories`: "" as it is, ".xz", ".zst", ".gz".
[[nodiscard]] std::vector<std::string> firmware_forms(const HostPaths& host,
                                                      const std::vector<std::string>& directories,
                                                      const std::string& file);

/// Whether some device fits both aliases, which are glob patterns: `*` before the lower-case name of the next field
/// fits a value, which has no lower-case letters, any other `*` all; `[...]` is taken to fit any character.
[[nodiscard]] bool aliases_meet(std::string_view a, std::string_view b);

/// True if the user asked for `name` to be taken out of the way.
[[nodiscard]] bool gives_way(const CheckInput& input, const std::string& name);

/// Modules of the host that claim a device that one of the order claims. Warning "alias-conflict".
void check_aliases(const CheckInput& input, Diagnostics& findings);

/// Error "module-unsupported" for a module that a kernel of SUSE refuses, as its sysctl "unsupported" is 0. Source:
/// patches.suse/supported-flag of SUSE's kernels.
void check_support(const HostPaths& host, const ModuleFile& file, Diagnostics& findings);

/// Appends a finding of the checks.
void add_finding(Diagnostics& findings, Severity severity, std::string code, std::string message,
                 std::string hint = {});

/// Whether `module` is a file of the host's own tree, which is loaded by its name.
[[nodiscard]] bool is_of_host(const CheckInput& input, const IndexedModule& module);

/// True if modules without a valid signature are refused.
[[nodiscard]] bool wants_signatures(const KernelState& state);
/// The first five of `names` and how many more there are.
[[nodiscard]] std::string first_of(const std::vector<std::string>& names);
/// The kernel's firmware directories in search order, without empty ones.
[[nodiscard]] std::vector<std::string> firmware_directories(const HostPaths& host, const std::string& release);

/// Files that the running kernel reads instead of those of the same name below `to`, as a directory that it searches
/// before has them with other bytes; as paths of the host.
[[nodiscard]] std::vector<std::string> firmware_before(const HostPaths& host, const std::string& to,
                                                       const std::vector<FirmwareFile>& installed);
/// Files that it reads instead of compressed ones of `installed`, wherever it searches: it asks for the name without
/// .xz and .zst first, then for .zst, then for .xz. As paths of the host; a name that `installed` has in both forms is
/// left out.
[[nodiscard]] std::vector<std::string> firmware_instead(const HostPaths& host,
                                                        const std::vector<FirmwareFile>& installed);

}  // namespace kmm::kmod
