// SPDX-License-Identifier: Apache-2.0
// Where the generators of an ApplicationSet of Argo CD lead.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

/// Stands in a namespace for the last part of the directory that a pattern matches.
inline constexpr char k_matched_name = '\x01';

/// Path and namespace of an Application that a set makes.
struct GeneratedPath {
    std::string path;  ///< may be a pattern of directories, as a git generator has it
    std::string ns;    ///< may have k_matched_name
    std::vector<std::string> excluded;  ///< patterns of directories that `path` does not mean
    friend auto operator<=>(const GeneratedPath&, const GeneratedPath&) = default;
};

/// What the generators of `set` make of path and namespace of its template. Values of lists and directories are filled
/// in, in matrices, too; variables of other generators stay as they are. Applications
/// that are equal in path and namespace, as a matrix with a list has them, are there once.
[[nodiscard]] std::vector<GeneratedPath> generated_paths(const value::Node& set, const std::string& path,
                                                         const std::string& ns);

/// Whether a path is a pattern.
[[nodiscard]] bool is_path_pattern(std::string_view path) noexcept;
/// Whether `directory` matches the pattern: * and ? match no slash.
[[nodiscard]] bool matches_path(const std::string& pattern, const std::string& directory);

}  // namespace kmm::cluster
