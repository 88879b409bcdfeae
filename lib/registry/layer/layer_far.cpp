// SPDX-License-Identifier: Apache-2.0
// Links of modules and firmware to files that lie elsewhere in the image, where nothing else is taken. The bytes are
// the image's own, and get the link's name: nothing is followed on the host.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/layer_view.hpp"

namespace kmm::registry {

namespace {

/// True if `target`, of a link at `path` below `root`, begins with places that are not below `root`.
bool goes_outside(std::string_view path, std::string_view target, std::string_view root) {
    bool outside = target.starts_with('/');
    std::string_view at = parent_of(path);
    for (const std::string_view piece : base::split(target, '/')) {
        if (piece.empty() || piece == ".") {
            continue;
        }
        if (outside || piece != "..") {
            break;  // behind a name, ".." may be above what a link there leads to
        }
        at = parent_of(at);
        outside = !is_in(at, root);
    }
    return outside;
}

}  // namespace

/// Whether a link at `path` to `end` is one to a module under the name of a module, or to firmware.
bool LayerView::may_mean_file(std::string_view path, std::string_view end) const {
    const bool firmware = !wanted_.firmware_root.empty() && is_in(path, wanted_.firmware_root) &&
                          ("/" + std::string(end)).find("/firmware/") != std::string::npos;
    return firmware || (ends_like_module(path) && ends_like_module(end));
}

/// Whether `path` is a file elsewhere that is looked for, or one that `replaces` a directory above such a file.
bool LayerView::is_of_far(const std::string& path, bool replaces) const {
    if (far_wanted_.contains(path)) {
        return true;
    }
    const auto below = replaces ? far_wanted_.lower_bound(path + "/") : far_wanted_.end();
    return below != far_wanted_.end() && is_in(*below, path);
}

/// Of a layer with a file that is looked for and something else in the place of a directory above it, readers that make
/// the whole image and those that stack layers see different files.
void LayerView::refuse_far_below(const std::string& path) const {
    for (auto file = far_found_.lower_bound(path + "/"); file != far_found_.end() && is_in(file->first, path); ++file) {
        if (file->second.layer == layer_) {
            throw Error(Exit::unsafe, "image-unsafe",
                        fmt::format("expected a directory at \"{}\" in the layer that has a file below it, \"{}\"",
                                    base::escape(path), base::escape(file->first)));
        }
    }
}

/// Notes that `path` gets the file at `end`, of which another reading knows; what lower layers have at `path` goes.
void LayerView::await_far_file(const std::string& path, const std::string& end, ViewNode link) {
    place(path, link);
    change().nodes.erase(path);
    ignored_[path] = layer_;
    far_links_[path] = FarLink{end, layer_, link.kind};
}

/// True if the link means a file, or by a way outside something in its own wanted directory, and was taken as that.
/// Everything else is left to stricter rules.
bool LayerView::add_link_to_file(const std::string& path, const LayerEntry& entry) {
    std::optional<std::string> end = lexical_end(path, entry.target);
    if (end && !may_mean_file(path, *end) && !wanted_.covers(*end)) {
        end = way_.end_of(*end);  // as by a /lib that is one to usr/lib
    }
    if (!end) {
        return false;
    }
    if (wanted_.covers(*end)) {
        const std::optional<std::string> root = wanted_.root_of(path);
        if (!root || root != wanted_.root_of(*end) || !goes_outside(path, entry.target, *root)) {
            return false;
        }
        place(
            path,
            link_to(std::filesystem::path("/" + *end).lexically_relative("/" + std::string(parent_of(path))).native()));
        return true;
    }
    if (!may_mean_file(path, *end)) {
        return false;
    }
    await_far_file(path, *end, link_to(entry.target));
    return true;
}

/// The same for a hard link, which means the bytes that the file has at this place of the archive, whatever a later
/// layer puts there. Errors: data "bad-layer" if no such file came before.
bool LayerView::add_hard_link_to_file(const std::string& path, const std::string& target) {
    if (!may_mean_file(path, target)) {
        return false;
    }
    if (!far_wanted_.contains(target) || far_hard_.contains(target)) {
        await_far_file(path, target, ViewNode{0, layer_, EntryKind::file, false});
        return true;
    }
    const auto found = far_found_.find(target);
    if (found == far_found_.end()) {
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected the target of the hard link \"{}\" before it, found no file \"{}\"",
                                base::escape(path), base::escape(target)));
    }
    ViewNode node = found->second;
    node.layer = layer_;
    place(path, node);
    return true;
}

/// The file that a hard link elsewhere in the image means at this place of the archive; nullptr if it is not known. One
/// that nothing was looked for is noted for another reading.
const ViewNode* LayerView::far_hard_link(const std::string& path, const LayerEntry& entry) {
    std::string_view named = entry.target;
    named.remove_prefix(std::min(named.find_first_not_of('/'), named.size()));
    const std::string target = normalise_entry(named, *limits_);
    const ViewNodes& known = wanted_.covers(target) ? nodes() : far_found_;
    if (const auto found = known.find(target); found != known.end()) {
        return found->second.kind == EntryKind::file ? &found->second : nullptr;
    }
    if (!wanted_.covers(target) && (!far_wanted_.contains(target) || far_hard_.contains(target))) {
        far_hard_[path] = target;
    }
    return nullptr;
}

std::optional<ContentId> LayerView::add_far_file(const std::string& path, const LayerEntry& entry) {
    erase_lower(path, true);
    far_hard_.erase(path);
    if (entry.kind == EntryKind::hardlink) {
        if (const ViewNode* file = far_hard_link(path, entry); file != nullptr) {
            ViewNode node = *file;
            node.layer = layer_;
            far_found_[path] = node;
            return std::nullopt;
        }
    }
    if (entry.kind != EntryKind::file) {
        pass_link(path, entry);
        return std::nullopt;  // the link is told to lead nowhere
    }
    const ContentId content = take_content(path, entry);
    far_found_[path] = ViewNode{content, layer_, EntryKind::file, entry.executable};
    return content;
}

std::set<std::string> LayerView::far_files() const {
    std::set<std::string> files;
    for (const auto& [path, link] : far_links_) {
        files.insert(link.target);
        if (link.kind == EntryKind::symlink) {
            if (auto end = far_end(path, link.target); end && !wanted_.covers(*end)) {
                files.insert(std::move(*end));
            }
        }
    }
    for (const auto& [path, target] : far_hard_) {
        files.insert(target);
    }
    return files;
}

/// Where `target`, of a symbolic link at `path`, leads by other links of the image, as a /lib that is one to usr/lib;
/// nullopt if there is none, or it leads to what a link at `path` cannot mean.
std::optional<std::string> LayerView::far_end(const std::string& path, const std::string& target) const {
    std::optional<std::string> end = way_.end_of(target);
    return end && *end != target && may_mean_file(path, *end) ? end : std::nullopt;
}

/// The file at `path`, of which the view or another reading knows.
const ViewNode* LayerView::far_file(const std::string& path) const {
    const ViewNodes& known = wanted_.covers(path) ? nodes() : far_found_;
    const auto found = known.find(path);
    return found != known.end() && found->second.kind == EntryKind::file ? &found->second : nullptr;
}

/// The links become the files that they mean.
void LayerView::place_far_files() {
    for (const auto& [path, link] : far_links_) {
        std::string end = link.target;
        const ViewNode* file = far_file(end);
        if (file == nullptr && link.kind == EntryKind::symlink) {
            end = far_end(path, link.target).value_or(end);
            file = far_file(end);
        }
        if (file == nullptr) {
            warnings_.insert(fmt::format(
                "dangling-link: /{} -> /{}, which is not a file of the image; copy the file instead of linking it",
                base::escape(path), base::escape(link.target)));
            continue;
        }
        const ViewNode taken = *file;
        ignored_.erase(path);
        change().nodes[path] = taken;
        moved_[path] = end;
    }
}

}  // namespace kmm::registry
