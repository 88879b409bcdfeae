// SPDX-License-Identifier: Apache-2.0
// Source: Argo CD reposerver/repository/repository.go (spec.source.directory), util/glob; github.com/gobwas/glob.
#include "cluster/folder/file_pattern.hpp"

#include <fnmatch.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace kmm::cluster {

namespace {

constexpr std::size_t k_patterns_max = 256;

/// Where the first alternatives of a pattern are: {, its commas, }. Empty for none.
struct Braces {
    std::vector<std::size_t> cuts;
    bool fit = true;
};

Braces first_braces(const std::string& pattern) {
    Braces braces;
    int depth = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        if (c == '\\') {
            ++i;
        } else if (c == '[') {
            const auto close = pattern.find(']', i + 1);
            if (close != std::string::npos) { i = close; }
        } else if (c == '{' && depth++ == 0) {
            braces.cuts.push_back(i);
        } else if (c == ',' && depth == 1) {
            braces.cuts.push_back(i);
        } else if (c == '}' && depth > 0 && --depth == 0) {
            braces.cuts.push_back(i);
            return braces;
        }
    }
    braces.fit = depth == 0;
    return braces;
}

}  // namespace

bool matches_file(const std::string& pattern, const std::string& path) {
    std::vector<std::string> open{pattern};
    for (std::size_t i = 0; i < open.size(); ++i) {
        const auto one = open[i];
        const auto [cuts, fit] = first_braces(one);
        if (!fit || open.size() > k_patterns_max) { return false; }
        if (cuts.empty() && ::fnmatch(one.c_str(), path.c_str(), 0) == 0) { return true; }
        for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
            open.push_back(one.substr(0, cuts.front()) + one.substr(cuts[k] + 1, cuts[k + 1] - cuts[k] - 1) +
                           one.substr(cuts.back() + 1));
        }
    }
    return false;
}

}  // namespace kmm::cluster
