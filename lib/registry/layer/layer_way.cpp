// SPDX-License-Identifier: Apache-2.0
// How a view follows the links on the way to the wanted part: where it looks, what it refuses, and back to the names
// that were asked for.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/layer_view.hpp"

namespace kmm::registry {

namespace {

Error off_way(const std::string& what, std::string_view path, std::string_view end = {}) {
    const std::string leads = end.empty() ? "" : fmt::format(", which leads to \"{}\"", base::escape(end));
    return Error(Exit::unsafe, "image-unsafe", fmt::format("{} \"{}\"{}", what, base::escape(path), leads));
}

}  // namespace

/// True if a link at `path` would be followed. What is in a directory that is taken whole is wanted itself.
bool LayerView::is_on_way(const std::string& path) const {
    if (path.empty()) {
        return false;
    }
    const std::vector<std::string> roots = here_.whole_roots();
    if (const auto root = std::find_if(roots.begin(), roots.end(), [&](const auto& one) { return is_in(path, one); });
        root != roots.end()) {
        return path == *root;
    }
    if (parent_of(path) == here_.modules_root) {
        return std::find(here_.kernels.begin(), here_.kernels.end(), name_of(path)) != here_.kernels.end();
    }
    return is_in(here_.modules_root, path) ||
           std::any_of(roots.begin(), roots.end(),
                       [&](const auto& root) { return is_in(root, path) && !here_.covers(path); });
}

/// Before anything is made of an entry: what it means for the links on the way.
void LayerView::check_way(const std::string& path, const LayerEntry& entry) {
    for (const std::string& link : way_links_) {
        if (path != link && is_in(path, link)) {
            throw off_way("expected no entry below a symbolic link, found", path);
        }
    }
    check_through(path, entry);
    if (name_of(path).starts_with(k_whiteout)) {
        return;
    }
    if (const std::size_t layer = way_.link_at(path); layer != 0) {
        if (layer == layer_ && way_links_.contains(path)) {
            throw off_way("expected one entry for each path, found a symbolic link and another entry at", path);
        }
        way_.erase(path);
    }
    if (entry.kind != EntryKind::directory) {
        way_.erase_lower(path, false, layer_);
    }
    turn_if_cut();
}

/// Whoever makes the whole image follows links: for him, an entry below one lies elsewhere. It must neither lie in the
/// wanted part nor seem to.
void LayerView::check_through(const std::string& path, const LayerEntry& entry) {
    const std::optional<std::string>& directory = way_.through(parent_of(path));
    if (!directory) {
        return;
    }
    const std::string_view name = name_of(path);
    const bool whiteout = name.starts_with(k_whiteout);
    std::string end = *directory;
    if (name != k_opaque) {
        end += (end.empty() ? "" : "/") + std::string(name.substr(whiteout ? k_whiteout.size() : 0));
    }
    const bool replaces = whiteout || entry.kind != EntryKind::directory;
    if (wanted_.covers(path) || wanted_.covers(end) || (wanted_.is_ancestor(end) && replaces) ||
        is_of_far(path, replaces) || is_of_far(end, replaces)) {
        throw off_way("expected no entry below a symbolic link, found", path, end);
    }
    way_.pass(*directory);
}

/// Remembers a link that is passed over, in case that the way should lead there.
void LayerView::pass_link(const std::string& path, const LayerEntry& entry) {
    if (entry.kind == EntryKind::symlink) {
        const bool sound = entry.target.size() <= limits_->path_bytes && entry.target.find('\0') == std::string::npos;
        way_.add(path, sound ? entry.target : std::string(), layer_, false);
    }
}

void LayerView::take_way_link(const std::string& path, const LayerEntry& entry) {
    check_target(path, entry);
    const auto below = [&](const auto& item) { return is_in(item->first, path); };
    for (auto item = nodes().lower_bound(path); item != nodes().end() && item->first.starts_with(path); ++item) {
        if (below(item) && item->second.layer == layer_) {
            throw off_way("expected no entry below a symbolic link, found", item->first);
        }
    }
    const bool above_kernels = is_in(wanted_.modules_root, path);
    if (above_kernels && std::any_of(kernel_dirs_.begin(), kernel_dirs_.end(),
                                     [&](const auto& item) { return item.second == layer_; })) {
        throw off_way("expected no entry below a symbolic link, found some below", path);
    }
    erase_lower(path, true);
    way_.add(path, entry.target, layer_, true);
    turn();
}

/// After links were removed.
void LayerView::turn_if_cut() {
    if (std::any_of(way_links_.begin(), way_links_.end(),
                    [&](const std::string& link) { return way_.link_at(link) == 0; })) {
        turn();
    }
}

/// The way has changed: from now on, what lies at its end is taken.
void LayerView::turn() {
    Route route = way_.route(asked_);
    way_links_ = std::move(route.links);
    const Wanted before = std::exchange(here_, std::move(route.real));
    if (fixed_ || here_ == before) {
        return;
    }
    wanted_ = here_;
    const bool other_root = wanted_.modules_root != before.modules_root;
    missed_ =
        missed_ || (other_root && way_.passed(wanted_.modules_root)) ||
        (wanted_.firmware_root != before.firmware_root && way_.passed(wanted_.firmware_root)) ||
        (wanted_.modprobed_root != before.modprobed_root && way_.passed(wanted_.modprobed_root)) ||
        (!other_root && std::any_of(wanted_.kernels.begin(), wanted_.kernels.end(), [&](const std::string& kernel) {
            return std::find(before.kernels.begin(), before.kernels.end(), kernel) == before.kernels.end() &&
                   way_.passed(wanted_.modules_root + "/" + kernel);
        }));
    // What was taken there is dropped, and would be missed if the way came back.
    way_.pass(before.modules_root);
    for (const std::string& kernel : before.kernels) {
        way_.pass(before.modules_root + "/" + kernel);
    }
    for (const std::string& root : before.whole_roots()) {
        way_.pass(root);
    }
    std::erase_if(change().nodes, [&](const auto& item) { return !wanted_.covers(item.first); });
    std::erase_if(ignored_, [&](const auto& link) { return !wanted_.covers(link.first); });
    std::erase_if(far_links_, [&](const auto& link) { return !wanted_.covers(link.first); });
    if (other_root) {
        kernel_dirs_.clear();
    }
}

std::optional<Wanted> LayerView::other_way() const {
    if (fixed_ && here_ != wanted_) {
        throw off_way("expected links that lead to one place each time on the way to", asked_.modules_root);
    }
    return missed_ ? std::optional(wanted_) : std::nullopt;
}

/// Where what lies at `path` was asked for: at several places if links of several names lead there.
std::vector<std::string> LayerView::asked_paths(const std::string& path) const {
    std::vector<std::string> result;
    const auto rest_of = [&](const std::string& root) {
        return path.size() > root.size() ? path.substr(root.size()) : std::string();
    };
    if (is_in(path, wanted_.modules_root)) {
        const std::string rest = rest_of(wanted_.modules_root);
        if (wanted_.kernels.empty()) {
            result.push_back(asked_.modules_root + rest);
        }
        for (std::size_t i = 0; i < wanted_.kernels.size(); ++i) {
            const std::string real = wanted_.modules_root + "/" + wanted_.kernels[i];
            if (is_in(path, real)) {
                result.push_back(asked_.modules_root + "/" + asked_.kernels[i] + rest_of(real));
            }
        }
    }
    const std::vector<std::string> roots = wanted_.whole_roots(), asked = asked_.whole_roots();
    for (std::size_t i = 0; i < roots.size(); ++i) {
        if (is_in(path, roots[i])) {
            result.push_back(asked[i] + rest_of(roots[i]));
        }
    }
    return result;
}

/// `ends`: where each link ends. The names of kernels may have changed, so that links between them need another target.
void LayerView::move_to_asked(const std::map<std::string, std::string>& ends) {
    for (const std::string& name : kernels()) {
        kernel_dirs_.try_emplace(name, layer_);
    }
    for (std::size_t i = 0; i < wanted_.kernels.size(); ++i) {
        if (kernel_dirs_.contains(wanted_.kernels[i])) {
            kernel_dirs_.try_emplace(asked_.kernels[i], layer_);
        }
    }
    ViewNodes moved;
    const std::map<std::string, std::string> far = std::exchange(moved_, {});
    for (ViewNodes from = take_nodes(); !from.empty(); from.erase(from.begin())) {
        const auto& [path, node] = *from.begin();
        for (const std::string& asked : asked_paths(path)) {
            ViewNode there = node;
            if (node.kind == EntryKind::symlink && wanted_.kernels != asked_.kernels) {
                std::string nearest;
                for (const std::string& end : asked_paths(ends.at(path))) {
                    const std::string way = std::filesystem::path("/" + end)
                                                .lexically_relative("/" + std::string(parent_of(asked)))
                                                .native();
                    nearest = nearest.empty() || way.size() < nearest.size() ? way : nearest;
                }
                if (!nearest.empty()) {
                    there.number = link_to(std::move(nearest)).number;
                }
            }
            moved[asked] = there;
            moved_[asked] = far.contains(path) ? far.at(path) : path;
        }
    }
    change().nodes = std::move(moved);
    wanted_ = here_ = asked_;
}

std::string LayerView::real_path(const std::string& path) const {
    const auto found = moved_.find(path);
    return found == moved_.end() ? path : found->second;
}

}  // namespace kmm::registry
