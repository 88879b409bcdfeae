// SPDX-License-Identifier: Apache-2.0
#include "registry/local/mirror_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/trust.hpp"

namespace kmm::registry {

namespace {

std::string text_of(const std::string& file) {
    constexpr std::size_t k_mirror_config_bytes = 4U << 20U;
    try {
        return sys::read_trusted_file(file, "mirror configuration", k_mirror_config_bytes);
    } catch (Error& error) {
        if (error.errno_cause() == EISDIR) {
            error.hint("--mirror-config takes files: name each one of the directory by itself");
        }
        throw;
    }
}

}  // namespace

std::vector<image::MirrorRule> read_mirror_files(const std::vector<std::string>& files) {
    std::vector<image::MirrorRule> rules;
    for (const auto& file : files) {
        for (auto& rule : image::read_mirrors(text_of(file), file)) {
            const std::string prefix = rule.prefix;
            if (const std::string other = image::join_rule(rules, std::move(rule)); !other.empty()) {
                throw Error(Exit::data, "bad-value",
                            fmt::format("{}: expected the same {} for {} as the files before it give, found another",
                                        base::escape(file), other, prefix))
                    .hint("--mirror-config files are taken together: write one [[registry]] for each prefix, in one "
                          "of them");
            }
        }
    }
    return rules;
}

}  // namespace kmm::registry
