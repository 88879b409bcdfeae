// SPDX-License-Identifier: Apache-2.0
// The wanted part of an image as it grows layer by layer: every path rule, whiteouts, links. Pure: nothing is written
// until the whole image has been seen, so no order of entries can make a write go through a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "registry/path_rules.hpp"

namespace kmm::registry {

enum class EntryKind { directory, file, symlink, hardlink, special };

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

struct ViewNode {
    EntryKind kind = EntryKind::directory;  ///< directory, file or symlink
    std::size_t layer = 0;
    ContentId content = 0;
    std::string target;
    bool executable = false;
};

class LayerView {
public:
    LayerView(Wanted wanted, const Limits& limits);

    /// Layers are added lowest first.
    void begin_layer();
    /// Takes one entry. Returns the number under which the caller must store the content, nullopt if the content is not
    /// wanted. Errors: unsafe "image-unsafe", unsafe "image-limit", data "bad-layer".
    [[nodiscard]] std::optional<ContentId> add(const LayerEntry& entry);
    /// Resolves every link against the finished view; links that lead nowhere are dropped with a warning.
    /// Errors: unsafe "image-unsafe" for a link that leaves its root or runs in a circle.
    void finish();

    /// Paths relative to the root of the image, without the host link.
    [[nodiscard]] const std::map<std::string, ViewNode>& nodes() const noexcept { return nodes_; }
    /// Names of the directories below the modules root, wanted or not, sorted.
    [[nodiscard]] std::vector<std::string> kernels() const;
    [[nodiscard]] const std::set<std::string>& warnings() const noexcept { return warnings_; }
    [[nodiscard]] const Wanted& wanted() const noexcept { return wanted_; }

private:
    void whiteout(const std::string& path);
    void erase_lower(const std::string& path, bool itself);
    void check_parents(const std::string& path);
    void place(const std::string& path, ViewNode node);
    [[nodiscard]] bool is_ignored_link(const std::string& path, const std::string& target);
    void add_symlink(const std::string& path, const LayerEntry& entry);
    void add_hardlink(const std::string& path, const LayerEntry& entry);
    [[nodiscard]] std::optional<std::string> resolve(const std::string& path, std::uint64_t& steps) const;

    Wanted wanted_;
    const Limits* limits_;
    std::map<std::string, ViewNode> nodes_;
    std::map<std::string, std::size_t> kernel_dirs_;  ///< name -> layer
    std::set<std::string> ignored_;                   ///< paths of links that are left out on purpose
    std::set<std::string> whiteouts_;                 ///< of the current layer
    std::set<std::string> warnings_;
    std::size_t layer_ = 0;
    std::uint64_t entries_ = 0;
    std::uint64_t bytes_ = 0;
    ContentId next_content_ = 0;
};

}  // namespace kmm::registry
