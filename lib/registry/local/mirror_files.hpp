// SPDX-License-Identifier: Apache-2.0
// Mirrors as files of the user tell them.
#pragma once

#include <string>
#include <vector>

#include "image/mirrors.hpp"

namespace kmm::registry {

/// The rules of all files, in their order, as PullRequest::mirrors takes them. Errors: those of sys::read_file (4 MiB
/// at most) and of image::read_mirrors.
[[nodiscard]] std::vector<image::MirrorRule> read_mirror_files(const std::vector<std::string>& files);

}  // namespace kmm::registry
