// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/ignored.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/clean_path.hpp"
#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/text.hpp"

namespace kmm::cluster {

namespace {

bool glob_takes(std::string_view glob, std::string_view path) {
    if (glob.starts_with("./")) { glob.remove_prefix(2); }
    while (glob.ends_with('/')) { glob.remove_suffix(1); }
    const bool whole = glob.find('/') != std::string_view::npos;
    if (glob.starts_with('/')) { glob.remove_prefix(1); }
    std::size_t begin = 0;
    while (true) {
        const std::size_t end = path.find('/', begin);
        if (base::glob_matches(glob, whole ? path.substr(0, end)
                                           : path.substr(begin, end == std::string_view::npos ? end : end - begin))) {
            return true;
        }
        if (end == std::string_view::npos) { return false; }
        begin = end + 1;
    }
}

}  // namespace

Ignored::Ignored(const std::vector<std::string>& globs, const std::string& out) {
    const auto path = out.empty() ? std::string() : base::clean_path(out);
    for (const auto& glob : globs) { globs_.emplace_back(glob, !path.empty() && glob_takes(glob, path)); }
}

void Ignored::require_directory(const std::vector<std::string>& names) const {
    if (globs_.empty() || std::any_of(names.begin(), names.end(), [](const std::string& name) {
            std::error_code error;
            return std::filesystem::is_directory(name, error);
        })) {
        return;
    }
    throw Error(Exit::usage, "missing-option", "--ignore requires a directory of -f")
        .hint("files that -f names are always read");
}

bool Ignored::takes(std::string_view path) {
    bool found = false;
    for (auto& [glob, is_used] : globs_) {
        if (glob_takes(glob, path)) { found = is_used = true; }
    }
    return found;
}

std::string Ignored::notes() const {
    std::string text;
    for (const auto& [glob, is_used] : globs_) {
        if (!is_used) { text += fmt::format("note: --ignore {} matches no file of the input\n", base::escape(glob)); }
    }
    return text;
}

}  // namespace kmm::cluster
