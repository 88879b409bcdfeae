// SPDX-License-Identifier: Apache-2.0
// The module files below a directory, found as depmod finds them.
#pragma once

#include <string>
#include <vector>

namespace kmm::kmod {

/// One module file, with the paths that lead to it: its own below the directory comes first, those of links are sorted.
struct FoundFile {
    std::string file;  ///< where it can be opened
    std::vector<std::string> paths;
};

/// The module files below `directory`, sorted by path: links count for what they mean, but stay inside of `image_root`
/// ("" for the directory itself). Errors: unsafe "image-limit"; from_errno.
[[nodiscard]] std::vector<FoundFile> find_module_files(const std::string& directory, const std::string& image_root);

}  // namespace kmm::kmod
