// SPDX-License-Identifier: Apache-2.0
// The host's own modules below /lib/modules/<release>. Only these trees, which belong to the host's administrator, are
// given to libkmod; nothing of an image ever is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kmod/host/host.hpp"

namespace kmm::kmod {

/// Facts of a module file of the host, compressed or not.
struct HostModule {
    std::string name;
    std::string path;                           ///< in the host's tree; it may be a link, see host_module_file()
    std::string vermagic;                       ///< "" if it could not be read
    ModuleSignature signature = {};             ///< empty without one
    std::vector<std::string> exported;          ///< symbols, sorted
    std::map<std::string, std::uint32_t> crcs;  ///< symbol -> CRC the running kernel must have for it
    std::map<std::string, std::uint32_t> exported_crcs = {};  ///< of `exported`, those that have one
    std::vector<std::string> depends = {};      ///< modules that it says it needs, normalised
    std::vector<std::string> softdeps = {};     ///< texts of softdep=, "pre: NAME… post: NAME…"
    std::uint64_t structure_bytes = 0;          ///< of struct module, in files that could be read
    bool retpoline = false;                     ///< built against Spectre v2, as modules of a kernel that is are
};

/// Answer to "what has to be loaded for NAME from the host's tree".
struct HostNeed {
    bool builtin = false;                ///< part of the kernel image: nothing to load
    std::vector<HostModule> modules;     ///< dependencies first, NAME last; empty for built-in ones
    /// What one of `modules` needs and the tree does not have, as after half an installation: (needed, who needs it).
    /// The index of the host may name a file that is gone.
    std::vector<std::pair<std::string, std::string>> missing = {};
};

/// The directory of the running kernel: <lib_modules>/<release>, or with a trailing "+" cut off, else the same below
/// /usr/lib/modules and where NixOS has it; "" if none exists. Below host.root, links lead where they lead on the host.
[[nodiscard]] std::string host_module_directory(const HostPaths& host, const std::string& release);

/// The file that `path`, a module of the tree in `directory`, means. It may be a link, as in weak-updates, which leads
/// where it leads on the host that has `directory` as its /lib/modules/RELEASE; where it leads to itself there, as in a
/// copy made of links, where it leads here.
[[nodiscard]] std::string host_module_file(const std::string& directory, const std::string& path);

/// Names in modules.builtin of the host's tree.
[[nodiscard]] std::set<std::string> builtin_names(const std::string& directory);

/// nullopt if the host's tree does not have `name`. Uses the host's index; without one, file names below `directory`
/// and their depends=, and modules.builtin. Errors: io.
[[nodiscard]] std::optional<HostNeed> find_host_module(const std::string& directory, const std::string& name);

/// Calls `body` with the facts of the file of each of `names` that the host's tree has, until it returns false. In no
/// order.
void each_host_module(const std::string& directory, const std::vector<std::string>& names,
                      const std::function<bool(const HostModule&)>& body);

/// The modules that the host's index has under `alias`, as a softdep may name them; empty without an index.
[[nodiscard]] std::vector<std::string> host_modules_with_alias(const std::string& directory, const std::string& alias);

/// Facts of some module of the tree that belongs to the kernel itself: the reference for vermagic and symbol versions.
/// nullopt when the tree has none.
[[nodiscard]] std::optional<HostModule> reference_module(const std::string& directory);

/// The signature of `reference`, a module of the kernel's own; nullptr if it has none, or the module is of another
/// release than `directory`. It is as valid as `reference`.
[[nodiscard]] const ModuleSignature* own_signature(const HostModule* reference, const std::string& directory);

/// The module of the host's tree that exports `symbol`, from its modules.symbols; "" if none is known.
[[nodiscard]] std::string host_exporter(const std::string& directory, const std::string& symbol);

/// Where the headers of the kernel with the modules in `directory` are: its link `build`, which is absolute and leads
/// where it leads on the host that has `directory` as its /lib/modules/RELEASE. The link itself where it leads
/// somewhere here.
[[nodiscard]] std::string header_directory(const std::string& directory);

/// GPL-only marks and namespaces of the same file; symbols with neither are left out.
[[nodiscard]] std::map<std::string, Export> header_exports(const std::string& directory);

/// CRCs of Module.symvers in the kernel's headers; empty when they are not installed.
[[nodiscard]] std::map<std::string, std::uint32_t> header_crcs(const std::string& directory);

}  // namespace kmm::kmod
