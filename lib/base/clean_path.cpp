// SPDX-License-Identifier: Apache-2.0
#include "base/clean_path.hpp"

#include <utility>
#include <vector>

#include "base/text.hpp"

namespace kmm::base {

std::string clean_path(std::string_view path) {
    const bool rooted = path.starts_with('/');
    std::vector<std::string_view> kept;
    for (const std::string_view piece : split(path, '/')) {
        if (piece.empty() || piece == ".") continue;
        if (piece != "..") {
            kept.push_back(piece);
        } else if (!kept.empty() && kept.back() != "..") {
            kept.pop_back();
        } else if (!rooted) {
            kept.push_back(piece);
        }
    }
    std::string result = rooted ? "/" : "";
    for (const std::string_view piece : kept) {
        if (!result.empty() && result.back() != '/') result += '/';
        result += piece;
    }
    return result.empty() ? "." : result;
}

std::string join_paths(std::initializer_list<std::string_view> parts) {
    std::string joined;
    for (const std::string_view part : parts) {
        if (part.empty()) continue;
        if (!joined.empty()) joined += '/';
        joined += part;
    }
    return joined.empty() ? joined : clean_path(joined);
}

std::optional<std::string> path_below(std::string_view path) {
    while (path.starts_with('/')) { path.remove_prefix(1); }
    std::string clean = clean_path(path);  // as a relative path: what leads out keeps its ".."
    if (clean == ".." || clean.starts_with("../")) { return std::nullopt; }
    return clean == "." ? std::string() : std::move(clean);
}

std::string directory_of(std::string_view file) {
    const auto slash = file.rfind('/');
    return std::string(slash == std::string_view::npos ? "" : file.substr(0, slash));
}

}  // namespace kmm::base
