// SPDX-License-Identifier: Apache-2.0
// Which files below a directory have objects.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"

namespace kmm::cluster {

/// Whether files that gzip has packed are taken.
enum class PackedFiles { skip, take };

/// True for *.yaml, *.yml and *.json.
[[nodiscard]] bool is_object_file(std::string_view name) noexcept;

/// The *.yaml, *.yml and *.json below a directory, sorted by path; links that stay in it are followed, names that start
/// with a dot are skipped, and a file that several links lead to is there once. Whoever writes links into a directory
/// must not choose what else of the machine is read: those that leave it are faults, unless they lead to one of `named`
/// or below it, which are files and directories that are read for themselves. Faults: unreadable-file (also a link that
/// leads nowhere), symlink-loop, link-leaves. With PackedFiles::take those that gzip has packed, too: NAME.gz, unless
/// NAME is beside it. Errors: those of sys::require_input_time.
[[nodiscard]] std::vector<std::string> object_files(const std::string& directory, Diagnostics& diagnostics,
                                                    PackedFiles packed = PackedFiles::skip,
                                                    const std::vector<std::string>& named = {});

/// What is found below a directory.
struct ObjectFiles {
    std::vector<std::string> files;         ///< each once, however many names it has
    std::unordered_set<std::string> names;  ///< all names
};

/// The same with all names, and without a limit of time: a cluster directory is read after a signal, too.
[[nodiscard]] ObjectFiles find_object_files(const std::string& directory, Diagnostics& diagnostics);

}  // namespace kmm::cluster
