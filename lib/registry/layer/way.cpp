// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/way.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::registry {

namespace {

constexpr std::uint64_t k_links_bytes = 4U << 20U;
constexpr std::size_t k_passed_max = 200'000;
constexpr int k_followed_max = 40;  // as Linux does

Error no_way(std::string message) {
    return Error(Exit::unsafe, "image-unsafe", std::move(message))
        .hint("set dirName and firmwarePath to the real directories of the image, without links");
}

std::string way_name(std::string_view path) { return "\"" + base::escape(path) + "\""; }

std::string child_of(std::string_view directory, std::string_view name) {
    return directory.empty() ? std::string(name) : std::string(directory) + "/" + std::string(name);
}

}  // namespace

void Way::add(const std::string& path, const std::string& target, std::size_t layer, bool kept) {
    erase_lower(path, false, layer);
    erase(path);
    const std::uint64_t bytes = path.size() + target.size();
    if (!kept && link_bytes_ + bytes > k_links_bytes) {
        lost_ = true;
        return;
    }
    link_bytes_ += bytes;
    links_[path] = Link{target, layer};
    if (last_through_ && (last_linked_ || is_in(*last_through_, path))) {
        last_through_.reset();
    }
}

std::size_t Way::link_at(const std::string& path) const {
    const auto found = links_.find(path);
    return found == links_.end() ? 0 : found->second.layer;
}

void Way::erase(const std::string& path) {
    if (const auto found = links_.find(path); found != links_.end()) {
        link_bytes_ -= path.size() + found->second.target.size();
        links_.erase(found);
        if (last_linked_) last_through_.reset();
    }
}

void Way::erase_lower(const std::string& path, bool itself, std::size_t layer) {
    if (itself && link_at(path) < layer) {
        erase(path);
    }
    const std::string prefix = path.empty() ? path : path + "/";
    for (auto item = links_.lower_bound(prefix); item != links_.end() && item->first.starts_with(prefix);) {
        if (item->second.layer < layer) {
            link_bytes_ -= item->first.size() + item->second.target.size();
            item = links_.erase(item);
            if (last_linked_) last_through_.reset();
        } else {
            ++item;
        }
    }
}

/// The path without links that `path` means.
std::string Way::walk(const std::string& path, Above above, std::set<std::string>& followed) const {
    const auto put = [](std::vector<std::string>& todo, std::string_view pieces) {
        const auto split = base::split(pieces, '/');
        for (auto piece = split.rbegin(); piece != split.rend(); ++piece) {
            if (!piece->empty() && *piece != ".") {
                todo.emplace_back(*piece);
            }
        }
    };
    std::vector<std::string> todo;
    put(todo, path);
    std::string at;
    int count = 0;
    while (!todo.empty()) {
        const std::string piece = std::move(todo.back());
        todo.pop_back();
        if (piece == "..") {
            if (at.empty() && above == Above::is_refused) {
                throw no_way("the way to " + way_name(path) + " leaves the image by a symbolic link");
            }
            at = std::string(parent_of(at));
            continue;
        }
        at = child_of(at, piece);
        const auto link = links_.find(at);
        if (link == links_.end()) {
            continue;
        }
        if (++count > k_followed_max) {
            throw no_way("the symbolic links on the way to " + way_name(path) + " run in a circle");
        }
        followed.insert(at);
        const std::string& target = link->second.target;
        if (target.empty()) {
            throw no_way("expected a target of the symbolic link " + way_name(at));
        }
        at = target.starts_with('/') ? std::string() : std::string(parent_of(at));
        put(todo, target);
    }
    return at;
}

Route Way::route(const Wanted& asked) const {
    Route route;
    route.real = asked;
    route.real.modules_root = walk(asked.modules_root, Above::is_refused, route.links);
    if (route.real.modules_root.empty()) {
        throw no_way("expected a directory of modules, found a symbolic link to the root of the image on the way to " +
                     way_name(asked.modules_root));
    }
    for (std::string& kernel : route.real.kernels) {
        const std::string path = route.real.modules_root + "/" + kernel;
        const std::string real = walk(path, Above::is_refused, route.links);
        if (real.empty() || parent_of(real) != route.real.modules_root) {
            throw no_way(
                fmt::format("expected a directory or a link to one beside it, found the symbolic link {} to {}",
                            way_name(path), way_name("/" + real)));
        }
        kernel = name_of(real);
    }
    const auto walk_root = [&](const std::string& from, std::string& real, std::string_view what) {
        if (from.empty()) {
            return;
        }
        real = walk(from, Above::is_refused, route.links);
        if (real.empty()) {
            throw no_way(fmt::format(
                "expected a directory of {}, found a symbolic link to the root of the image on the way to {}", what,
                way_name(from)));
        }
    };
    walk_root(asked.firmware_root, route.real.firmware_root, "firmware");
    walk_root(asked.modprobed_root, route.real.modprobed_root, "modprobe.d files");
    if (lost_ && !route.links.empty()) {
        throw no_way("the image has more symbolic links than are looked at on the way to " +
                     way_name(asked.modules_root));
    }
    return route;
}

const std::optional<std::string>& Way::through(std::string_view directory) {
    if (last_through_ == directory) {
        return through_;
    }
    last_through_ = directory;
    through_.reset();
    last_linked_ = false;
    for (std::string_view at = directory; !last_linked_ && !at.empty() && !links_.empty(); at = parent_of(at)) {
        last_linked_ = links_.contains(at);
    }
    if (last_linked_) {
        try {
            std::set<std::string> followed;
            through_ = walk(*last_through_, Above::is_root, followed);
        } catch (const Error&) {
            // A circle, or a link to nothing: nobody gets anywhere by it.
        }
    }
    return through_;
}

std::optional<std::string> Way::end_of(const std::string& path) const {
    if (lost_) {
        return std::nullopt;
    }
    try {
        std::set<std::string> followed;
        return walk(path, Above::is_root, followed);
    } catch (const Error&) {
        return std::nullopt;
    }
}

void Way::pass(std::string_view directory) {
    if (directory == last_passed_) {
        return;
    }
    last_passed_ = directory;
    while (passed_.size() < k_passed_max && passed_.insert(std::hash<std::string_view>()(directory)).second &&
           !directory.empty()) {
        directory = parent_of(directory);
    }
}

bool Way::passed(std::string_view directory) const {
    return passed_.size() >= k_passed_max || passed_.contains(std::hash<std::string_view>()(directory));
}

}  // namespace kmm::registry
