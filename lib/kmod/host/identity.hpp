// SPDX-License-Identifier: Apache-2.0
// Whether a live module is a given file: by the bytes that this tool handed to the kernel, else by what file and kernel
// declare.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kmod/host/host.hpp"
#include "kmod/host/module_index.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

enum class Identity { same, different, unknown };

/// Verdict on "is the live module this file", with what was compared.
struct IdentityVerdict {
    Identity identity = Identity::unknown;
    std::string what;            ///< "sha256", "build id", "srcversion" or "origin", "" for unknown
    std::string loaded, wanted;  ///< the compared values
};

/// srcversion and build id, as far as both sides have them: one source makes many builds, so either tells two apart; if
/// they agree, `what` is the stronger one, the build id. With neither on both sides a module of the kernel's own tree
/// still is none from outside of it; else the identity is unknown.
[[nodiscard]] IdentityVerdict compare_identity(const ModuleFile& file, const LiveModule& live);

/// The same, but the digest of the loaded bytes decides where it is on record and the record is about this very live
/// module. Reads the file again in that case. Errors: as read_module_bytes; integrity (76) "digest-mismatch" when it is
/// not the file that was indexed.
[[nodiscard]] IdentityVerdict judge_identity(const HostPaths& host, const IndexedModule& module,
                                             const LiveModule& live);

/// "sha256", "buildID" or "srcversion" for a verdict that is `same`, else "": member sameBy of documents.
[[nodiscard]] std::string same_by(const IdentityVerdict& verdict);
/// The same for people: "sha256", "build id", "srcversion only, no proof" (anybody can write a srcversion into other
/// bytes).
[[nodiscard]] std::string same_by_text(std::string_view same_by);

/// Lower-case hex SHA-256 of a module's decompressed bytes without an appended signature: signing and packing do not
/// change what runs.
[[nodiscard]] std::string code_sha256(const ModuleFile& file, std::string_view plain);

/// Notes that the kernel was handed code with that digest as `module`, which is live now, in <run>/bytes/<module>: with
/// boot id, size, srcversion, address (if it can be read) and the number of its directory in sysfs, which is another
/// one after each load. Nothing is noted where boot id or size are not known. Errors: from_errno.
void note_loaded_bytes(const HostPaths& host, const std::string& module, const std::string& sha256);
/// Removes that note, if there is one.
void forget_loaded_bytes(const HostPaths& host, const std::string& module);
/// The noted digest, if what is live now is what the note is about.
[[nodiscard]] std::optional<std::string> loaded_sha256(const HostPaths& host, const std::string& module);

}  // namespace kmm::kmod
