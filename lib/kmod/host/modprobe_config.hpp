// SPDX-License-Identifier: Apache-2.0
// The host's own modprobe.d files, the module settings of its kernel command line, and beside them the files of an
// image's modprobedDir. Source: man 5 modprobe.d; libkmod-config.c of kmod 30; Linux
// Documentation/admin-guide/kernel-parameters.txt.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/host/host.hpp"
#include "kmod/ko/config_lines.hpp"

namespace kmm::kmod {

/// Who wrote a line.
enum class ConfigSource { host, image };

/// A setting and where it stands, "/etc/modprobe.d/a.conf:3" or "/proc/cmdline"; of an image
/// "image:/opt/modprobe.d/a.conf:3".
struct HostOption {
    std::string text;
    std::string where;
    ConfigSource source = ConfigSource::host;
    std::size_t order = 0;  ///< among the options of all modules, as modprobe goes through them
};

/// One `alias` line.
struct HostAlias {
    std::string pattern;  ///< as it is written
    std::string module;
    std::string where;
    ConfigSource source = ConfigSource::host;
};

/// One `install` or `remove` line.
struct HostCommand {
    std::string pattern;  ///< of module names, as it is written
    std::string text;
    std::string where;
    ConfigSource source = ConfigSource::host;
};

/// What a softdep names, in its order; normalised.
struct SoftNames {
    std::vector<std::string> pre;   ///< modules or aliases to load before
    std::vector<std::string> post;  ///< modules or aliases to load after
};

/// One `softdep` line.
struct SoftLine {
    std::string pattern;  ///< of module names, as it is written
    SoftNames names;
    bool before_modules = true;  ///< in a file that modprobe reads before modules.softdep, by its name
};

/// Module names are normalised.
struct ModprobeConfig {
    std::map<std::string, std::vector<HostOption>> options;   ///< module -> KEY=VALUE entries, in effective order
    std::size_t options_read = 0;                             ///< how many all of them together are
    std::map<std::string, HostOption> blacklist;              ///< module -> where; concerns aliases, and -b
    std::vector<HostAlias> aliases;          ///< in order: modprobe loads the modules of all lines that fit
    std::set<std::string> kernel_blacklist;  ///< module_blacklist=: the kernel itself refuses these; as written, which
                                             ///< is how it compares them
    std::vector<HostCommand> install, remove;                 ///< in order; never run
    std::vector<SoftLine> softdeps;                           ///< in order: modprobe takes the first that fits alone
};

/// Whether `name` is what `alias`, a pattern of fnmatch as modules and modprobe.d have them, stands for. `-` and `_`
/// are the same.
[[nodiscard]] bool alias_fits(const std::string& alias, const std::string& name);

/// What is around module `name`: of the first of its softdeps alone, as libkmod has it, which are the lines of `config`
/// and `own`, the softdep= values of its file (depmod writes each into modules.softdep as a line).
[[nodiscard]] SoftNames soft_names(const std::vector<SoftLine>& config, const std::string& name,
                                   const std::vector<std::string>& own);

/// Whether modprobe takes no install command of module `name`: what soft_names has around it names one of `known`, the
/// modules that are loaded with it (libkmod-module.c of kmod 30, __kmod_module_fill_softdep).
[[nodiscard]] bool is_install_dropped(const std::vector<SoftLine>& config, const std::string& name,
                                      const std::vector<std::string>& own, const std::vector<std::string>& known);

/// The modules that `alias` lines make of `name`, without "off"; nullopt if there is no such line. modprobe takes them
/// instead of a module of that name, and of aliases in modules.
[[nodiscard]] std::optional<std::vector<std::string>> aliased(const std::vector<HostAlias>& aliases,
                                                              const std::string& name);

/// Gives the options of `alias`, too, to `module`, which is loaded under that name, as libkmod does: in the order in
/// which the lines stand, whichever of the two names they have.
void add_alias_options(ModprobeConfig& config, const std::string& alias, const std::string& module);

/// The command for module `name`, nullptr for none: the first whose pattern fits, as libkmod has it.
[[nodiscard]] const HostCommand* command_for(const std::vector<HostCommand>& commands, const std::string& name);

/// A file of an image's modprobedDir.
struct ImageConfigFile {
    std::string name;
    std::string shown;  ///< "image:/opt/modprobe.d/a.conf"
    std::vector<ConfigLine> lines;
};

/// Whether modprobe reads files of that name in modprobe.d.
[[nodiscard]] bool is_config_name(const std::string& name);

/// What `files`, sorted by name, say without a host.
[[nodiscard]] ModprobeConfig image_modprobe_config(const std::vector<ImageConfigFile>& files);

/// Reads the directories in modprobe's order (etc, run, usr/local/lib, usr/lib, lib); a file hides those of the same
/// name in later ones. One of `image` stands behind that of its name: what the host forbids is not for images to allow.
/// Unreadable files and unknown lines are skipped, as modprobe does.
[[nodiscard]] ModprobeConfig read_modprobe_config(const HostPaths& host,
                                                  const std::vector<ImageConfigFile>& image = {});

}  // namespace kmm::kmod
