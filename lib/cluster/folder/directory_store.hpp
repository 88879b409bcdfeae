// SPDX-License-Identifier: Apache-2.0
// The embedded cluster: a directory of Kubernetes objects, one YAML or JSON file each, that people edit too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <unordered_set>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/folder/file_cache.hpp"
#include "cluster/seam/store.hpp"
#include "sys/file_ops.hpp"
#include "edit/edit.hpp"

namespace kmm::cluster {

/// Every *.yaml, *.yml and *.json below the directory holds one object; where a file lies does not matter, only its
/// kind and name. Names that start with a dot are skipped. Objects that the store creates go to
/// nodemodulesconfigs/NAME.yaml. Changes touch the changed fields only: comments, order and unknown fields stay
/// (entries of spec.modules and status.modules are rewritten as a list). Every write re-reads the file first and gives
/// up with "conflict" if somebody else changes it meanwhile. Thread safe.
class DirectoryStore final : public ClusterStore {
public:
    /// Nothing is read yet. `ops` must outlive the store.
    DirectoryStore(std::string path, sys::FileOps& ops);

    /// Codes of diagnostics beyond those of the readers and decoders: unreadable-file, one-object-per-file,
    /// symlink-loop, link-leaves. Errors: not_found "cluster-not-found" when there is no such directory.
    [[nodiscard]] Snapshot read() override;

    /// Reads the files in which the objects were last time. If one is not there any more, or cannot be read, it reads
    /// everything.
    [[nodiscard]] Snapshot read_about(const Subject& subject) override;
    /// As ClusterStore. A label of `expected` that already has the value of `change` is no conflict.
    void patch_node_labels(const std::string& node, const LabelChange& change, const LabelChange& expected) override;
    void put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                         const std::optional<std::optional<api::NodeModule>>& spec,
                         const std::optional<std::optional<api::NodeModule>>& status) override;
    void put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                       const std::string& architecture) override;
    /// With `create` also check_writable(). Errors: config "bad-cluster-id" for a file that holds no UUID.
    [[nodiscard]] std::string identity(bool create) override;
    /// Nobody tells of changes here: sleeps a while, a second at most.
    [[nodiscard]] std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds timeout) override;
    [[nodiscard]] std::string describe() const override;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// Changes one Node by the edits that `make_edits` finds for its tree; none is nothing to do. Errors: as
    /// patch_node_labels.
    void change_node(const std::string& node,
                     const std::function<std::vector<edit::Edit>(const value::Node& root)>& make_edits);

    /// Fails now rather than in the middle of a run: every directory that holds a Node or a NodeModulesConfig, and the
    /// top, must accept new files. Removes temporary files of killed writers. Errors: from_errno (77 or 74) with a
    /// hint.
    void check_writable();
    /// Tries, in memory, the changes that an upgrade makes to the documents of these nodes; `label` is one that it
    /// sets. Errors: data "cannot-edit" with position and hint; those of patch_node_labels.
    void check_editable(const std::vector<std::string>& nodes, const std::string& label);

private:
    using Key = std::pair<std::string, std::string>;  ///< kind and name, NAMESPACE/NAME where it has one
    /// Edits for the tree of an object; empty for "nothing to do".
    using MakeEdits = std::function<std::vector<edit::Edit>(const value::Node& root)>;

    [[nodiscard]] Snapshot read_locked();
    /// Appends what a file holds; it is decoded only if its bytes are others than last time.
    void read_object(const std::string& file, Snapshot& snapshot);
    /// Where the store creates a NodeModulesConfig.
    [[nodiscard]] std::string config_file(const std::string& node) const;
    [[nodiscard]] std::optional<std::string> locate(const std::string& kind, const std::string& name);
    /// True if there is a file that was not there when everything was read last. Reads no file.
    [[nodiscard]] bool has_new_files();
    /// True if the object was found and is now as wanted. Not finding it counts only if every file could be read: else
    /// the faults are thrown, because it may be in one of those.
    bool change(const std::string& kind, const std::string& name, const MakeEdits& make_edits);
    void create_config(const std::string& node, const value::Node& object);
    [[nodiscard]] Error node_not_found(const std::string& node) const;

    std::string path_;
    sys::FileOps& ops_;
    std::mutex mutex_;
    std::map<Key, std::string> files_;
    std::unordered_set<std::string> listed_;  ///< all files, when everything was read last, and those made since
    std::uint64_t listed_sum_ = 0;            ///< of the names that has_new_files found last, or of listed_
    FileCache cache_;
    Diagnostics faults_;  ///< of the last reading
    bool indexed_ = false;
};

}  // namespace kmm::cluster
