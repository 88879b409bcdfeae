// SPDX-License-Identifier: Apache-2.0
// The modprobe.d files of an image, KMM's modprobe.modprobedDir. Source: KMM's internal/pod/scripts/
// copy-modprobed-dir.sh and docs/enhancements/0005-modprobed-config.md.
#pragma once

#include <string>
#include <vector>

#include "kmod/host/modprobe_config.hpp"
#include "sandbox/confined.hpp"

namespace kmm::kmod {

/// Where an image's files of modprobe.d are, and what else is there.
struct ImageConfigPlace {
    std::string directory;          ///< on this host
    std::string root;               ///< links in `directory` must not lead out of this directory
    std::string shown;              ///< what the directory is called in the image
    bool has_loading_order = false; ///< KMM writes its softdep.conf beside these files
};

/// `modprobed_dir` of the image whose tree is at `root`.
[[nodiscard]] ImageConfigPlace image_config_place(const std::string& root, const std::string& modprobed_dir,
                                                  bool has_loading_order);

/// Reads the files in `parser`, or in this process without one. Of what is no name of modprobe.d, and so is not read,
/// `warnings` get a line ("modprobed-dir"). As KMM has it: not_found (66) "modprobed-dir-not-in-image" where there is
/// no such directory; data (65) "bad-modprobed-dir" for one that is no directory, has no regular file or a
/// sub-directory in it, or a softdep.conf beside a loading order. Also: unsafe (16) "image-unsafe" for a link out of
/// the tree, "image-limit" for too much; sandbox::Confined::lost().
[[nodiscard]] std::vector<ImageConfigFile> read_image_config(const ImageConfigPlace& place, sandbox::Confined* parser,
                                                             std::vector<std::string>& warnings);

}  // namespace kmm::kmod
