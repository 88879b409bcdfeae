// SPDX-License-Identifier: Apache-2.0
#include "registry/mirror_files.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "sys/file_ops.hpp"

namespace kmm::registry {

std::vector<image::MirrorRule> read_mirror_files(const std::vector<std::string>& files) {
    constexpr std::size_t k_mirror_config_bytes = 4U << 20U;
    std::vector<image::MirrorRule> rules;
    for (const auto& file : files) {
        auto read = image::read_mirrors(sys::read_file(file, k_mirror_config_bytes), file);
        std::move(read.begin(), read.end(), std::back_inserter(rules));
    }
    return rules;
}

}  // namespace kmm::registry
