// SPDX-License-Identifier: Apache-2.0
// What a kernel offers to modules, known without running it: the symbols it exports and how it was configured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kmod/check/versions.hpp"

namespace kmm::kernel {

/// One line of Module.symvers.
struct Export {
    std::uint32_t crc = 0;
    std::string owner;     ///< "vmlinux", or the path of the exporting module without ".ko"
    bool gpl_only = false;
    std::string ns;        ///< symbol namespace, "" for none
    friend bool operator==(const Export&, const Export&) = default;
};

/// Everything that is known of one kernel. Members that nothing told stay empty.
struct Interface {
    std::string source;                     ///< where it was read: path as the user named it
    std::string release;                    ///< "6.1.0-56-amd64"
    std::string vermagic;                   ///< as the kernel compares it, "" if the configuration did not tell
    std::string architecture;               ///< "amd64", "arm64", ...
    std::map<std::string, Export> exports;  ///< by symbol
    std::set<std::string> modules;          ///< normalised names of the kernel's own modules that export something
    bool signatures_forced = false;         ///< CONFIG_MODULE_SIG_FORCE
    std::optional<bool> signatures_checked; ///< CONFIG_MODULE_SIG; nullopt if there was no configuration
    kmod::MissingVersions missing_versions = kmod::MissingVersions::taken;
    bool lenient_namespaces = false;        ///< CONFIG_MODULE_ALLOW_MISSING_NAMESPACE_IMPORTS
};

/// Reads Module.symvers (kernel 5.4 and later: CRC, symbol, module, export type, namespace, parted by tabs) into `to`.
/// Errors: data (65) "bad-symvers" with file:line for a line that is none, and for a text without any.
void read_symvers(std::string_view text, const std::string& file, Interface& to);

/// Takes architecture, switches and the words of vermagic from a kernel configuration (CONFIG_X=y lines). Needs
/// `to.release`. vermagic stays "" where it cannot be put together (structure randomisation, other architectures).
/// Source: Linux include/linux/vermagic.h and arch/*/include/asm/vermagic.h, 5.4 to 6.12.
void read_configuration(std::string_view text, Interface& to);

/// All that a judgement of modules follows from, as text: another text, another judgement. Not where it was read.
[[nodiscard]] std::string text_of(const Interface& interface);

/// The release in utsrelease.h, "" if it is not there.
[[nodiscard]] std::string release_of_header(std::string_view text);

}  // namespace kmm::kernel
