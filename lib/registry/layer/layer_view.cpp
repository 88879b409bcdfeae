// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/layer_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

namespace {

constexpr int k_links_max = 40;
constexpr std::uint64_t k_link_steps_max = 10'000'000;  // of all links of an image together

std::string shown(std::string_view path) { return "\"" + base::escape(path) + "\""; }

/// Whether a link's target is the host's directory of modules of `kernel`, or one below it, where build and worker Pods
/// of KMM may have it: in /lib or /usr/lib, also below /host.
bool is_host_modules(const std::string& target, const std::string& kernel) {
    std::string path = std::filesystem::path(target).lexically_normal().native();
    for (const std::string_view prefix : {"/host/", "/usr/"}) {
        if (path.starts_with(prefix)) path.erase(0, prefix.size() - 1);
    }
    const std::string directory = "/lib/modules/" + kernel;
    return path == directory || path.starts_with(directory + "/");
}

Error hostile(std::string message) { return Error(Exit::unsafe, "image-unsafe", std::move(message)); }
Error malformed(std::string message) { return Error(Exit::data, "bad-layer", std::move(message)); }

std::string join(std::string_view directory, std::string_view name) {
    return directory.empty() ? std::string(name) : std::string(directory) + "/" + std::string(name);
}

bool is_printable(std::string_view path) {
    return base::is_utf8(path) && std::none_of(path.begin(), path.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20U || c == 0x7F;
    });
}

}  // namespace

LayerView::LayerView(Wanted wanted, const Limits& limits)
    : asked_(std::move(wanted)), wanted_(asked_), here_(asked_), limits_(&limits) {}

LayerView::LayerView(Wanted wanted, const Limits& limits, Wanted real)
    : asked_(std::move(wanted)), wanted_(std::move(real)), here_(asked_), fixed_(true), limits_(&limits) {}

/// To be asked before anything of the tree is looked up that is then changed.
LayerView::Tree& LayerView::change() {
    if (tree_.use_count() > 1) {
        tree_ = std::make_shared<Tree>(*tree_);
    }
    return *tree_;
}

ViewNode LayerView::link_to(std::string target) {
    std::vector<std::string>& targets = change().targets;
    targets.push_back(std::move(target));
    return {targets.size() - 1, layer_, EntryKind::symlink, false};
}

void LayerView::begin_layer() {
    ++layer_;
    whiteouts_.clear();
}

std::optional<ContentId> LayerView::add(const LayerEntry& entry) {
    if (++entries_ > limits_->entries) {
        throw limit_error("the number of entries of the image", "entries", limits_->entries);
    }
    const std::string path = normalise_entry(entry.name, *limits_);
    const std::string_view name = name_of(path);
    check_way(path, entry);
    if (name.starts_with(k_whiteout)) {
        whiteout(path);
        return std::nullopt;
    }
    if (entry.kind != EntryKind::directory) {
        refuse_far_below(path);
    }
    if (entry.kind == EntryKind::symlink && is_on_way(path)) {
        take_way_link(path, entry);
        return std::nullopt;
    }
    if (wanted_.is_ancestor(path)) {
        if (entry.kind != EntryKind::directory && fixed_ && !path.empty()) {
            erase_lower(path, true);  // a directory again before the last layer ends, or nothing would be there
            pass_link(path, entry);
        } else if (entry.kind != EntryKind::directory) {
            throw hostile(fmt::format("expected a directory on the way to the wanted files, found another kind of "
                                      "entry at {}", shown(path.empty() ? "." : path)))
                .hint("set dirName and firmwarePath to the real directories of the image, without links");
        }
        return std::nullopt;
    }
    if (!wanted_.covers(path)) {
        if (far_wanted_.contains(path) && entry.kind != EntryKind::directory) {
            return add_far_file(path, entry);
        }
        pass_link(path, entry);
        if (entry.kind != EntryKind::directory && !far_found_.empty()) {
            erase_lower(path, false);  // it may take the place of a directory with such a file
        }
        way_.pass(entry.kind == EntryKind::directory ? std::string_view(path) : parent_of(path));
        if (is_in(path, wanted_.modules_root)) {
            const std::string rest = path.substr(wanted_.modules_root.size() + 1);
            const std::size_t slash = rest.find('/');
            if (slash != std::string::npos || entry.kind == EntryKind::directory) {
                kernel_dirs_[rest.substr(0, slash)] = layer_;
            }
        }
        return std::nullopt;
    }
    if (!is_printable(path)) {
        throw hostile("expected printable UTF-8 names, found " + shown(path));
    }
    check_parents(path);
    switch (entry.kind) {
        case EntryKind::special:
            throw hostile("expected files, directories and links, found a device, pipe or socket at " + shown(path));
        case EntryKind::symlink: add_symlink(path, entry); return std::nullopt;
        case EntryKind::hardlink: add_hardlink(path, entry); return std::nullopt;
        case EntryKind::directory: place(path, ViewNode{0, layer_, EntryKind::directory, false}); return std::nullopt;
        case EntryKind::file: break;
    }
    const ContentId content = take_content(path, entry);
    place(path, ViewNode{content, layer_, EntryKind::file, entry.executable});
    return content;
}

ContentId LayerView::take_content(const std::string& path, const LayerEntry& entry) {
    if (entry.size > limits_->file_bytes) {
        throw limit_error("the size of the file " + shown(path), "file_bytes", limits_->file_bytes);
    }
    bytes_ += entry.size;
    if (bytes_ > limits_->inflated_bytes) {
        throw limit_error("the size of the wanted files", "inflated_bytes", limits_->inflated_bytes);
    }
    return next_content_++;
}

void LayerView::whiteout(const std::string& path) {
    const std::string directory(parent_of(path));
    const std::string_view name = name_of(path);
    if (!whiteouts_.insert(path).second) {
        throw malformed("expected one entry for each path of a layer, found two for " + shown(path));
    }
    for (std::string parent = directory; wanted_.covers(parent); parent = std::string(parent_of(parent))) {
        const auto found = nodes().find(parent);
        if (ignored_.contains(parent) || (found != nodes().end() && found->second.kind == EntryKind::symlink)) {
            throw hostile("expected no entry below a symbolic link, found " + shown(path));
        }
    }
    if (name == k_opaque) {
        erase_lower(directory, false);
        turn_if_cut();
        return;
    }
    const std::string_view victim = name.substr(k_whiteout.size());
    if (victim.empty()) {
        throw malformed("expected a name after .wh., found " + shown(path));
    }
    if (victim == "." || victim == "..") {
        throw hostile("expected a whiteout of a name, found " + shown(path));
    }
    erase_lower(join(directory, victim), true);
    turn_if_cut();
}

/// Removes what lower layers put below `path`, and `path` as well if `itself`.
void LayerView::erase_lower(const std::string& path, bool itself) {
    const auto sweep = [&](auto& container, const auto& is_gone) {
        if (itself) {
            if (const auto found = container.find(path); found != container.end() && is_gone(*found)) {
                container.erase(found);
            }
        }
        const std::string prefix = path.empty() ? path : path + "/";
        auto item = container.lower_bound(prefix);
        while (item != container.end() && item->first.starts_with(prefix)) {
            item = is_gone(*item) ? container.erase(item) : std::next(item);
        }
    };
    if (const auto first = nodes().lower_bound(path); first != nodes().end() && first->first.starts_with(path)) {
        sweep(change().nodes, [&](const auto& item) { return item.second.layer < layer_; });
    }
    sweep(ignored_, [&](const auto& item) { return item.second < layer_; });
    sweep(far_links_, [&](const auto& item) { return item.second.layer < layer_; });
    sweep(far_found_, [&](const auto& item) { return item.second.layer < layer_; });
    way_.erase_lower(path, itself, layer_);
    if (is_in(wanted_.modules_root, path)) {
        std::erase_if(kernel_dirs_, [&](const auto& item) { return item.second < layer_; });
    } else if (itself && parent_of(path) == wanted_.modules_root) {
        if (const auto found = kernel_dirs_.find(std::string(name_of(path)));
            found != kernel_dirs_.end() && found->second < layer_) {
            kernel_dirs_.erase(found);
        }
    }
}

/// Every directory above `path` (inside the wanted part) becomes known; anything else there is a fault.
void LayerView::check_parents(const std::string& path) {
    ViewNodes& nodes = change().nodes;
    for (std::string parent(parent_of(path)); wanted_.covers(parent); parent = std::string(parent_of(parent))) {
        if (ignored_.contains(parent)) {
            throw hostile("expected no entry below a symbolic link, found " + shown(path));
        }
        const auto found = nodes.find(parent);
        if (found == nodes.end()) {
            nodes.emplace(parent, ViewNode{0, layer_, EntryKind::directory, false});
        } else if (found->second.kind == EntryKind::symlink) {
            throw hostile("expected no entry below a symbolic link, found " + shown(path));
        } else if (found->second.kind != EntryKind::directory) {
            throw malformed("expected a directory above " + shown(path) + ", found a file");
        } else {
            found->second.layer = layer_;
        }
    }
}

void LayerView::place(const std::string& path, ViewNode node) {
    const auto refuse_second = [&](EntryKind first) {
        if (node.kind == EntryKind::symlink || first == EntryKind::symlink) {
            throw hostile("expected one entry for each path, found a symbolic link and another entry at " +
                          shown(path));
        }
        throw malformed("expected one entry for each path of a layer, found two for " + shown(path));
    };
    if (const auto far = far_links_.find(path); far != far_links_.end() && far->second.layer == layer_) {
        refuse_second(far->second.kind);
    }
    const auto found = nodes().find(path);
    if (found != nodes().end()) {
        const bool both_directories =
            found->second.kind == EntryKind::directory && node.kind == EntryKind::directory;
        if (!both_directories && found->second.layer == layer_) {
            refuse_second(found->second.kind);
        }
        if (!both_directories) {
            erase_lower(path, true);
        }
    }
    ignored_.erase(path);
    far_links_.erase(path);
    if (parent_of(path) == wanted_.modules_root && node.kind == EntryKind::directory) {
        kernel_dirs_[std::string(name_of(path))] = layer_;
    }
    change().nodes[path] = node;
}

/// The links that builds leave in a kernel directory and that point at the host or at kernel sources: they mean nothing
/// outside the image and are never created (KMM: "host" for in-tree dependencies; kbuild: "build" and "source").
bool LayerView::is_ignored_link(const std::string& path, const std::string& target) {
    const std::string_view directory = parent_of(path);
    if (parent_of(directory) != wanted_.modules_root) {
        return false;
    }
    const std::string kernel(name_of(directory));
    const std::string_view name = name_of(path);
    const auto is_host = [&](const std::string& one) { return is_host_modules(target, one); };
    bool host = is_host(kernel);
    for (std::size_t i = 0; i < wanted_.kernels.size(); ++i) {
        host = host || (wanted_.kernels[i] == kernel && is_host(asked_.kernels[i]));
    }
    if (!host && name != "build" && name != "source") {
        return false;
    }
    if (host) {
        warnings_.insert(fmt::format("host-link: /{} -> {}", base::escape(path), base::escape(target)));
    } else {
        warnings_.insert(fmt::format("build-link-ignored: /{}", base::escape(path)));
    }
    return true;
}

void LayerView::check_target(const std::string& path, const LayerEntry& entry) const {
    if (entry.target.empty() || entry.target.find('\0') != std::string::npos) {
        throw malformed("expected a target of the symbolic link " + shown(path));
    }
    if (entry.target.size() > limits_->path_bytes) {
        throw limit_error("the length of the target of the link " + shown(path), "path_bytes", limits_->path_bytes);
    }
}

void LayerView::add_symlink(const std::string& path, const LayerEntry& entry) {
    check_target(path, entry);
    const bool ignored = is_ignored_link(path, entry.target);
    if (!ignored && add_link_to_file(path, entry)) {
        return;
    }
    if (!ignored && entry.target.front() == '/') {
        throw hostile(fmt::format("expected a relative link, found {} -> {}", shown(path), shown(entry.target)));
    }
    place(path, link_to(entry.target));
    if (ignored) {
        change().nodes.erase(path);
        ignored_[path] = layer_;
        return;
    }
    // Lexically, at once: a link that leaves its root is refused even if something replaces it later.
    const std::string root = wanted_.root_of(path).value_or("");
    const std::optional<std::string> end = lexical_end(path, entry.target);
    if (!end) {
        throw hostile(fmt::format("the link {} -> {} leaves the image", shown(path), shown(entry.target)));
    }
    if (!is_in(*end, root)) {
        throw hostile(fmt::format("the link {} -> {} leaves {}", shown(path), shown(entry.target), shown(root)))
            .hint("copy what it leads to instead of linking it when the image is built");
    }
}

void LayerView::add_hardlink(const std::string& path, const LayerEntry& entry) {
    // kaniko writes where the first name of the file is in a container, from its root on.
    std::string_view named = entry.target;
    named.remove_prefix(std::min(named.find_first_not_of('/'), named.size()));
    const std::string target = normalise_entry(named, *limits_);
    if (!wanted_.covers(target)) {
        if (add_hard_link_to_file(path, target)) {
            return;
        }
        throw hostile(fmt::format("the hard link {} -> {} leaves the wanted directory", shown(path), shown(target)))
            .hint("copy the file instead of linking it when the image is built");
    }
    const auto found = nodes().find(target);
    if (found == nodes().end()) {
        throw malformed(fmt::format("expected the target of the hard link {} before it, found no {}", shown(path),
                                    shown(target)));
    }
    if (found->second.kind != EntryKind::file) {
        throw hostile(fmt::format("expected a hard link to a file, found {} -> {}", shown(path), shown(target)));
    }
    if (path == target) {
        throw malformed("the hard link " + shown(path) + " is its own target");
    }
    ViewNode node = found->second;
    node.layer = layer_;
    place(path, node);
}

/// Walks the link at `path` through the view; the path it ends at, nullopt if it leads nowhere.
std::optional<std::string> LayerView::resolve(const std::string& path, std::uint64_t& steps) const {
    const std::string root = wanted_.root_of(path).value_or("");
    std::vector<std::string> todo{std::string(name_of(path))};
    std::string at(parent_of(path));
    int links = 0;
    while (!todo.empty()) {
        const std::string piece = std::move(todo.back());
        todo.pop_back();
        if (++steps > k_link_steps_max) {
            throw hostile("the symbolic links of the image take too many steps to follow");
        }
        if (piece.empty() || piece == ".") {
            continue;
        }
        at = piece == ".." ? std::string(parent_of(at)) : join(at, piece);
        if (!is_in(at, root)) {
            throw hostile(fmt::format("the link {} leaves {}", shown(path), shown(root)));
        }
        if (at == root) {
            continue;
        }
        const auto found = nodes().find(at);
        if (found == nodes().end()) {
            const auto below = nodes().lower_bound(at + "/");
            if (below == nodes().end() || !is_in(below->first, at)) {
                return std::nullopt;
            }
            continue;
        }
        if (found->second.kind == EntryKind::symlink) {
            if (++links > k_links_max) {
                throw hostile("the link " + shown(path) + " runs in a circle");
            }
            at = std::string(parent_of(at));
            const auto pieces = base::split(target(found->second), '/');
            for (auto it = pieces.rbegin(); it != pieces.rend(); ++it) {
                todo.emplace_back(*it);
            }
        } else if (found->second.kind == EntryKind::file && !todo.empty()) {
            return std::nullopt;
        }
    }
    return at;
}

void LayerView::finish() {
    std::vector<std::string> dangling;
    std::uint64_t steps = 0;
    std::map<std::string, std::string> ends;
    for (const auto& [path, node] : nodes()) {
        if (node.kind != EntryKind::symlink) {
            continue;
        }
        const auto end = resolve(path, steps);
        if (!end) {
            dangling.push_back(path);
            const bool here = wanted_.covers(lexical_end(path, target(node)).value_or(""));
            warnings_.insert(fmt::format("dangling-link: /{} -> {}{}", base::escape(path), base::escape(target(node)),
                                         here ? "" : ", which is in no directory that is taken"));
            continue;
        }
        ends[path] = *end;
        const auto found = nodes().find(*end);
        if (parent_of(path) == wanted_.modules_root &&
            (found == nodes().end() || found->second.kind == EntryKind::directory)) {
            kernel_dirs_[std::string(name_of(path))] = node.layer;
        }
    }
    for (const std::string& path : dangling) {
        change().nodes.erase(path);
    }
    place_far_files();
    if (asked_ != wanted_) {
        move_to_asked(ends);
    }
    // Directories that only came to be known as parents of what is gone stay: an empty directory harms nobody.
}

std::set<std::string> LayerView::link_ends() const {
    std::set<std::string> ends;
    std::uint64_t steps = 0;
    for (const auto& [path, node] : nodes()) {
        if (node.kind == EntryKind::symlink) {
            if (auto end = resolve(path, steps)) {
                ends.insert(std::move(*end));
            }
        }
    }
    return ends;
}

std::vector<std::string> LayerView::kernels() const {
    std::set<std::string> names;
    for (const auto& [name, layer] : kernel_dirs_) {
        names.insert(name);
    }
    for (const auto& [path, node] : nodes()) {
        if (is_in(path, wanted_.modules_root) && path != wanted_.modules_root) {
            const std::string_view rest = std::string_view(path).substr(wanted_.modules_root.size() + 1);
            if (rest.find('/') != std::string_view::npos || node.kind == EntryKind::directory) {
                names.emplace(rest.substr(0, rest.find('/')));
            }
        }
    }
    return {names.begin(), names.end()};
}

}  // namespace kmm::registry
