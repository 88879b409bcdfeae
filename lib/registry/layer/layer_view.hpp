// SPDX-License-Identifier: Apache-2.0
// The wanted part of an image as it grows layer by layer: every path rule, whiteouts, links. Pure: nothing is written
// until the whole image has been seen, so no order of entries can make a write go through a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/layer/path_rules.hpp"
#include "registry/layer/way.hpp"

namespace kmm::registry {

enum class EntryKind : std::uint8_t { directory, file, symlink, hardlink, special };

/// One entry of a tar, as the archive says it.
struct LayerEntry {
    std::string name;
    EntryKind kind = EntryKind::file;
    std::string target;        ///< of links
    std::uint64_t size = 0;    ///< of files, bytes after holes are filled
    bool executable = false;
    bool sparse = false;       ///< a file with holes; one at its end is not part of the content
};

/// Number of a stored content, from 0.
using ContentId = std::size_t;

/// Kept small: an image may have 100,000 of them.
struct ViewNode {
    std::size_t number = 0;  ///< of a file its ContentId; of a symlink that of its target
    std::uint32_t layer = 0;
    EntryKind kind = EntryKind::directory;  ///< directory, file or symlink
    bool executable = false;
};
using ViewNodes = std::map<std::string, ViewNode>;

/// Links inside the wanted part are kept, those on the way to it are followed: as soon as one is seen, the view turns
/// to where it leads. The finished view has everything at the paths that were asked for.
class LayerView {
public:
    LayerView(Wanted wanted, const Limits& limits);
    /// A view for a second reading, that from the beginning looks where the way ends: `real` is what other_way() said.
    LayerView(Wanted wanted, const Limits& limits, Wanted real);

    /// Layers are added lowest first.
    void begin_layer();
    /// Takes one entry. Returns the number under which the caller must store the content, nullopt if the content is not
    /// wanted. Errors: unsafe "image-unsafe", unsafe "image-limit", data "bad-layer".
    [[nodiscard]] std::optional<ContentId> add(const LayerEntry& entry);
    /// Where the wanted directories lie, if they turned out to lie where entries had already been passed over: all
    /// layers must be read again. To be asked after the last layer.
    [[nodiscard]] std::optional<Wanted> other_way() const;
    /// Files elsewhere in the image that links of modules and firmware in the wanted part lead to, also over other
    /// links: `weak-updates/x.ko` to another kernel's module, say, or a hard link to a file that two kernels share. To
    /// be asked after the last layer; with look_for() another reading takes them, and may find links among them to yet
    /// others.
    [[nodiscard]] std::set<std::string> far_files() const;
    void look_for(std::set<std::string> files) { far_wanted_ = std::move(files); }
    /// Resolves every link against the finished view; links that lead nowhere are dropped with a warning.
    /// Errors: unsafe "image-unsafe" for a link that leaves its root or runs in a circle.
    void finish();

    /// Paths relative to the root of the image, without the host link. Once finished, those asked for.
    [[nodiscard]] const ViewNodes& nodes() const noexcept { return tree_->nodes; }
    /// Where the symlink `link` of the view leads, as it says itself.
    [[nodiscard]] const std::string& target(const ViewNode& link) const { return tree_->targets.at(link.number); }
    /// The same as nodes(), for whoever needs nothing else any more.
    [[nodiscard]] ViewNodes take_nodes() { return std::move(change().nodes); }
    /// Names of the directories below the modules root, wanted or not, sorted.
    [[nodiscard]] std::vector<std::string> kernels() const;
    [[nodiscard]] const std::set<std::string>& warnings() const noexcept { return warnings_; }
    /// What is looked for at this moment: without links on the way.
    [[nodiscard]] const Wanted& wanted() const noexcept { return wanted_; }
    [[nodiscard]] const Wanted& asked() const noexcept { return asked_; }
    /// Where the symlinks of the finished view end, those that lead nowhere left out. Errors: as finish().
    [[nodiscard]] std::set<std::string> link_ends() const;
    /// Takes away the file at `path` again, of which only its rules were of interest.
    void drop_file(const std::string& path) { change().nodes.erase(path); }
    /// Where the file that the finished view has at `path` lies in the image itself.
    [[nodiscard]] std::string real_path(const std::string& path) const;

private:
    struct Tree {
        ViewNodes nodes;
        std::vector<std::string> targets;  ///< of symlinks, also of those that are gone
    };
    [[nodiscard]] Tree& change();
    [[nodiscard]] ViewNode link_to(std::string target);
    [[nodiscard]] bool is_on_way(const std::string& path) const;
    void check_way(const std::string& path, const LayerEntry& entry);
    void check_through(const std::string& path, const LayerEntry& entry);
    void pass_link(const std::string& path, const LayerEntry& entry);
    void take_way_link(const std::string& path, const LayerEntry& entry);
    void turn();
    void turn_if_cut();
    void move_to_asked(const std::map<std::string, std::string>& ends);
    [[nodiscard]] std::vector<std::string> asked_paths(const std::string& path) const;
    void check_target(const std::string& path, const LayerEntry& entry) const;
    void whiteout(const std::string& path);
    void erase_lower(const std::string& path, bool itself);
    void check_parents(const std::string& path);
    void place(const std::string& path, ViewNode node);
    [[nodiscard]] bool is_ignored_link(const std::string& path, const std::string& target);
    void add_symlink(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] bool add_link_to_file(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] bool add_hard_link_to_file(const std::string& path, const std::string& target);
    [[nodiscard]] bool may_mean_file(std::string_view path, std::string_view end) const;
    [[nodiscard]] bool is_of_far(const std::string& path, bool replaces) const;
    void refuse_far_below(const std::string& path) const;
    void await_far_file(const std::string& path, const std::string& end, ViewNode link);
    [[nodiscard]] std::optional<ContentId> add_far_file(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] ContentId take_content(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] const ViewNode* far_hard_link(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] std::optional<std::string> far_end(const std::string& path, const std::string& target) const;
    [[nodiscard]] const ViewNode* far_file(const std::string& path) const;
    void place_far_files();
    void add_hardlink(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] std::optional<std::string> resolve(const std::string& path, std::uint64_t& steps) const;

    Wanted asked_;
    Wanted wanted_;         ///< what is taken
    Wanted here_;           ///< where the way leads at this moment: wanted_, unless that is fixed_
    bool fixed_ = false;    ///< wanted_ does not turn any more
    bool missed_ = false;   ///< it turned to where something had been passed
    Way way_;
    std::set<std::string> way_links_;  ///< those followed at this moment
    std::map<std::string, std::string>
        moved_;  ///< of the finished view: asked path -> path in the image, where they differ
    const Limits* limits_;
    std::shared_ptr<Tree> tree_ = std::make_shared<Tree>();  ///< shared by copies of the view until one of them changes
    std::map<std::string, std::uint32_t> kernel_dirs_;  ///< name -> layer
    std::map<std::string, std::uint32_t> ignored_;  ///< paths of links that are left out on purpose -> layer
    struct FarLink {
        std::string target;  ///< the file elsewhere in the image that it means
        std::uint32_t layer = 0;
        EntryKind kind = EntryKind::symlink;  ///< symlink, or file for a hard link
    };
    std::map<std::string, FarLink> far_links_;        ///< by the path of the link
    std::set<std::string> far_wanted_;                ///< such files, to be taken when they come
    ViewNodes far_found_;                             ///< those that came
    std::map<std::string, std::string> far_hard_;     ///< those that are hard links to a file that is not looked for
    std::set<std::string> whiteouts_;                 ///< of the current layer
    std::set<std::string> warnings_;
    std::uint32_t layer_ = 0;
    std::uint64_t entries_ = 0;
    std::uint64_t bytes_ = 0;
    ContentId next_content_ = 0;
};

}  // namespace kmm::registry
