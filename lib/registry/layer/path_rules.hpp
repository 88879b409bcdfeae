// SPDX-License-Identifier: Apache-2.0
// What a name inside an image may look like, and which names are wanted. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/layer/limits.hpp"

namespace kmm::registry {

/// The relative path that an entry's name means: without leading "./", doubled or trailing slashes and "." components;
/// "" is the root of the image. Errors: unsafe "image-unsafe" for an absolute name and for any ".." component; data
/// "bad-layer" for an empty name or a NUL; unsafe "image-limit" for path_bytes, component_bytes and depth.
[[nodiscard]] std::string normalise_entry(std::string_view name, const Limits& limits);

/// True if `path` is `directory` or below it; every path is in "" (the root).
[[nodiscard]] bool is_in(std::string_view path, std::string_view directory) noexcept;

/// The directory part, "" for a top-level name; and the last component.
[[nodiscard]] std::string_view parent_of(std::string_view path) noexcept;
[[nodiscard]] std::string_view name_of(std::string_view path) noexcept;

/// The path in the image that `target`, of a link at `path`, names if nothing on its way is a link; nullopt if it
/// leaves the image.
[[nodiscard]] std::optional<std::string> lexical_end(std::string_view path, std::string_view target);

/// How the name of a whiteout begins; what follows is the name that it takes away.
inline constexpr std::string_view k_whiteout = ".wh.";
/// The name of the whiteout of everything that lower layers have in its directory.
inline constexpr std::string_view k_opaque = ".wh..wh..opq";

/// True for a name of a module's file: ".ko", also compressed.
[[nodiscard]] bool ends_like_module(std::string_view name) noexcept;

/// The part of an image that is extracted.
struct Wanted {
    std::string modules_root;          ///< "opt/lib/modules"
    std::vector<std::string> kernels;  ///< directory names below it; empty for all
    std::string firmware_root;         ///< "firmware", "" for none
    std::string modprobed_root = {};   ///< "etc/modprobe.d", "" for none

    friend bool operator==(const Wanted&, const Wanted&) = default;

    /// True if the content of `path` is extracted.
    [[nodiscard]] bool covers(std::string_view path) const;
    /// True if `path` is a directory on the way to something wanted.
    [[nodiscard]] bool is_ancestor(std::string_view path) const;
    /// The roots of which everything is taken: those of firmware and of modprobe.d files that are not "".
    [[nodiscard]] std::vector<std::string> whole_roots() const;
    /// The root (modules, firmware, modprobe.d) that `path` lies in; nullopt if in neither.
    [[nodiscard]] std::optional<std::string> root_of(std::string_view path) const;
};

/// The modules of `kernels`, or of all, below <dir_name>/lib/modules, the firmware below `firmware_path` and the files
/// of `modprobed_dir` ("" for none). Errors: data "bad-path" for a path or kernel that holds ".." or a slash where none
/// may be.
[[nodiscard]] Wanted wanted_below(const std::string& dir_name, const std::vector<std::string>& kernels,
                                  bool all_kernels, const std::string& firmware_path,
                                  const std::string& modprobed_dir = {});

}  // namespace kmm::registry
