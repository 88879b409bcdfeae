// SPDX-License-Identifier: Apache-2.0
// Which files below a directory hold objects.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace kmm::cluster {

enum class FilesFound { plain, plain_or_gzip };  ///< names that hold objects: *.yaml, or also *.yaml.gz

/// As object_files() of one argument less; where `found` says so, compressed files (*.yaml.gz) are among them.
[[nodiscard]] std::vector<std::string> object_files(const std::string& directory, Diagnostics& diagnostics,
                                                    FilesFound found);

}  // namespace kmm::cluster
