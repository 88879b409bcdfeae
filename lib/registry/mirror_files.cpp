// SPDX-License-Identifier: Apache-2.0
#include "registry/mirror_files.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/file_ops.hpp"

namespace kmm::registry {

std::vector<image::MirrorRule> read_mirror_files(const std::vector<std::string>& files) {
    constexpr std::size_t k_mirror_config_bytes = 4U << 20U;
    std::vector<image::MirrorRule> rules;
    for (const auto& file : files) {
        for (auto& rule : image::read_mirrors(sys::read_file(file, k_mirror_config_bytes), file)) {
            const std::string prefix = rule.prefix;
            if (!image::join_rule(rules, std::move(rule))) {
                throw Error(Exit::data, "bad-value", fmt::format("{}: expected the location of {} that the files before it give, found another", base::escape(file), prefix))
                    .hint("--mirror-config files are taken together: name each prefix's location in one of them");
            }
        }
    }
    return rules;
}

}  // namespace kmm::registry
