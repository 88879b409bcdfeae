// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/path_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "base/clean_path.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_shown_max = 120;

std::string shown_name(std::string_view name) {
    return "\"" + base::escape(name.substr(0, k_shown_max)) + (name.size() > k_shown_max ? "…" : "") + "\"";
}

/// A directory of the image that the user named, as a relative path; KMM joins and cleans such paths, too.
std::string user_path(std::string_view text, const char* what) {
    auto below = base::path_below(text);
    if (!below || text.find('\0') != std::string_view::npos) {
        throw Error(Exit::data, "bad-path", fmt::format("{}: expected a path that stays in the image, found {}", what,
                                                        shown_name(text)));
    }
    return std::move(*below);
}

}  // namespace

std::string normalise_entry(std::string_view name, const Limits& limits) {
    if (name.size() > limits.path_bytes) {
        throw limit_error("the length of the path " + shown_name(name), "path_bytes", limits.path_bytes);
    }
    if (name.empty() || name.find('\0') != std::string_view::npos) {
        throw Error(Exit::data, "bad-layer", "expected a name for every entry of the layer, found " + shown_name(name));
    }
    if (name.front() == '/' && name.find_first_not_of('/') != std::string_view::npos) {  // kaniko calls the root "/"
        throw Error(Exit::unsafe, "image-unsafe", "expected relative names in the layer, found " + shown_name(name));
    }
    std::string result;
    std::size_t depth = 0;
    for (const std::string_view piece : base::split(name, '/')) {
        if (piece.empty() || piece == ".") {
            continue;
        }
        if (piece == "..") {
            throw Error(Exit::unsafe, "image-unsafe",
                        "expected names without \"..\" in the layer, found " + shown_name(name));
        }
        if (piece.size() > limits.component_bytes) {
            throw limit_error("the length of a component of the path " + shown_name(name), "component_bytes",
                              limits.component_bytes);
        }
        if (++depth > limits.depth) {
            throw limit_error("the depth of the path " + shown_name(name), "depth", limits.depth);
        }
        result += (result.empty() ? "" : "/") + std::string(piece);
    }
    return result;
}

bool ends_like_module(std::string_view name) noexcept {
    static constexpr std::string_view k_endings[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};
    return std::any_of(std::begin(k_endings), std::end(k_endings),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

bool is_in(std::string_view path, std::string_view directory) noexcept {
    return directory.empty() || path == directory ||
           (path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/');
}

std::string_view parent_of(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

namespace {

/// Asked for each entry of each layer.
bool is_in_whole(const Wanted& wanted, std::string_view path) {
    return (!wanted.firmware_root.empty() && is_in(path, wanted.firmware_root)) ||
           (!wanted.modprobed_root.empty() && is_in(path, wanted.modprobed_root));
}

}  // namespace

bool Wanted::covers(std::string_view path) const {
    if (is_in_whole(*this, path)) {
        return true;
    }
    if (!is_in(path, modules_root)) {
        return false;
    }
    if (kernels.empty()) {
        return true;
    }
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const std::string& kernel) { return is_in(path, modules_root + "/" + kernel); });
}

bool Wanted::is_ancestor(std::string_view path) const {
    const auto is_below = [path](const std::string& root) { return !root.empty() && is_in(root, path); };
    return !covers(path) && (is_in(modules_root, path) || is_below(firmware_root) || is_below(modprobed_root));
}

std::vector<std::string> Wanted::whole_roots() const {
    std::vector<std::string> roots{firmware_root, modprobed_root};
    std::erase(roots, "");
    return roots;
}

std::optional<std::string> Wanted::root_of(std::string_view path) const {
    if (is_in(path, modules_root)) {
        return modules_root;
    }
    for (const std::string& root : whole_roots()) {
        if (is_in(path, root)) {
            return root;
        }
    }
    return std::nullopt;
}

std::optional<std::string> lexical_end(std::string_view path, std::string_view target) {
    std::string end(target.starts_with('/') ? std::string_view() : parent_of(path));
    for (const std::string_view piece : base::split(target, '/')) {
        if (piece == "..") {
            if (end.empty()) {
                return std::nullopt;
            }
            end = parent_of(end);
        } else if (!piece.empty() && piece != ".") {
            end += (end.empty() ? "" : "/") + std::string(piece);
        }
    }
    return end;
}

Wanted wanted_below(const std::string& dir_name, const std::vector<std::string>& kernels, bool all_kernels,
                    const std::string& firmware_path, const std::string& modprobed_dir) {
    Wanted wanted;
    const std::string directory = user_path(dir_name, "dirName");
    wanted.modules_root = directory.empty() ? "lib/modules" : directory + "/lib/modules";
    for (const std::string& kernel : kernels) {
        if (kernel.empty() || user_path(kernel, "kernel version") != kernel || kernel.find('/') != std::string::npos) {
            throw Error(Exit::data, "bad-path",
                        "kernel version: expected one directory name, found " + shown_name(kernel));
        }
        if (!all_kernels) {
            wanted.kernels.push_back(kernel);
        }
    }
    if (kernels.empty() && !all_kernels) {
        throw Error(Exit::data, "bad-path", "expected the kernel version whose modules are wanted, found none");
    }
    const auto take_root = [](std::string& root, const std::string& path, const char* field) {
        if (path.empty()) {
            return;
        }
        root = user_path(path, field);
        if (root.empty()) {
            throw Error(Exit::data, "bad-path",
                        fmt::format("{}: expected a directory below the root of the image", field));
        }
    };
    take_root(wanted.firmware_root, firmware_path, "firmwarePath");
    take_root(wanted.modprobed_root, modprobed_dir, "modprobedDir");
    return wanted;
}

}  // namespace kmm::registry
