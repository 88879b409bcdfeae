// SPDX-License-Identifier: Apache-2.0
// What the running kernel and its module sub-system say about themselves. Every root is a field, so that tests use
// trees of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

/// Where the host's facts are. Paths without a final slash.
struct HostPaths {
    std::string proc = "/proc";
    std::string sys = "/sys";
    std::string lib_modules = "/lib/modules";
    std::string kmsg = "/dev/kmsg";
    std::string run = "/run/kmm-worker";  ///< what this tool loaded since boot
    std::string etc = "/etc";
    std::string root = "";  ///< where the host's root is mounted, "" for here: what the kernel calls /x is root + "/x"
};

/// Where what the host, and so the kernel, calls `path` is to be found here. Below host.root, symbolic links lead where
/// they lead on the host; what is not there yet stays as it is written.
[[nodiscard]] std::string here_of(const HostPaths& host, const std::string& path);

/// What the host calls `path`, a path here: the part below host.root, `path` itself if it is not below.
[[nodiscard]] std::string on_host(const HostPaths& host, const std::string& path);

/// Go's name of the architecture that uname(2) calls `machine`: "arm" for "armv7l", "386" for "i586".
[[nodiscard]] std::string architecture_of(const std::string& machine);

/// The machine and its kernel, from procfs and /etc.
struct NodeFacts {
    std::string name;          ///< host name
    std::string kernel;        ///< release as reported, "+" included
    std::string boot_id, machine_id;
    std::string architecture;  ///< Go name, "amd64"
    std::string os_image;      ///< PRETTY_NAME of os-release
};

/// Switches of the kernel that decide whether a module may be loaded.
struct KernelState {
    bool modules_supported = true;
    std::string lockdown = "unavailable";  ///< none, integrity, confidentiality; "unavailable" without the LSM
    bool sig_enforce = false;
    bool modules_disabled = false;
    std::uint64_t tainted = 0;             ///< bits of /proc/sys/kernel/tainted
    std::string decompression = "none";    ///< /sys/module/compression: gzip, xz, zstd or none
    bool cap_sys_module = false;           ///< of this process
};

/// One module that is live, or on its way.
struct LiveModule {
    std::string name;
    std::string state;                ///< live, coming, going, builtin
    std::string srcversion, build_id, version;
    std::string taint;                ///< letters, e.g. "OE"
    std::optional<long> refcount;     ///< absent when the kernel cannot unload modules
    std::vector<std::string> holders; ///< modules that use this one, sorted
    std::map<std::string, std::string> parameters;  ///< the readable ones
};

[[nodiscard]] NodeFacts node_facts(const HostPaths& host);
[[nodiscard]] KernelState kernel_state(const HostPaths& host);
/// /proc/sys/kernel/tainted; nullopt when it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> known_taint(const HostPaths& host);
/// The same, 0 when it cannot be read.
[[nodiscard]] std::uint64_t taint_bits(const HostPaths& host);
/// "O", "E" for bits 12 and 13, "bit 31" for one that has no letter in Linux, as those of distributions; ascending.
/// Source: Documentation/admin-guide/tainted-kernels.rst.
[[nodiscard]] std::vector<std::string> taint_names(std::uint64_t bits);
/// The same in one text: "OE", "OE, bit 31".
[[nodiscard]] std::string taint_letters(std::uint64_t bits);

/// Whether the kernel marks it with O: its file does not say that it is of the kernel's own tree.
[[nodiscard]] inline bool is_out_of_tree(const LiveModule& module) {
    return module.taint.find('O') != std::string::npos;
}
/// nullopt when no such module is known to the kernel. Names in either spelling.
[[nodiscard]] std::optional<LiveModule> live_module(const HostPaths& host, const std::string& name);
/// Whether /proc/modules has it as "[permanent]": it has an init function and no exit function, and the kernel never
/// unloads it.
[[nodiscard]] bool is_permanent(const HostPaths& host, const std::string& name);
/// Names in /proc/modules, sorted.
[[nodiscard]] std::vector<std::string> live_modules(const HostPaths& host);

/// Those of `wanted` that the kernel or a live module exports, from the __ksymtab_ entries of kallsyms; kernels that
/// hide these are asked for plain names. nullopt when kallsyms cannot be read or is empty.
[[nodiscard]] std::optional<std::set<std::string>> kernel_exports(const HostPaths& host,
                                                                  const std::set<std::string>& wanted);

/// Those of `wanted` in the export tables, with the module that exports each, "" for the kernel itself. nullopt also
/// for a kernel that hides these tables.
[[nodiscard]] std::optional<std::map<std::string, std::string>> exporters_of(const HostPaths& host,
                                                                             const std::set<std::string>& wanted);

/// Those of `wanted` that kallsyms has as symbols, exported or not. nullopt when it cannot be read or is empty. Cost:
/// may read all of it.
[[nodiscard]] std::optional<std::set<std::string>> kernel_functions(const HostPaths& host,
                                                                    const std::set<std::string>& wanted);

}  // namespace kmm::kmod
