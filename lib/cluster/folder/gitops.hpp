// SPDX-License-Identifier: Apache-2.0
// Which namespaces Argo CD, Flux and Fleet give to what a repository holds: their objects in the directory say it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

/// A namespace that one of them gives.
struct GitOpsNamespace {
    std::string name;        ///< "" for none
    bool is_forced = false;  ///< objects that say another get it, too
    std::string file;        ///< that says it
};

/// The paths that Applications and ApplicationSets of Argo CD, Kustomizations of Flux and a fleet.yaml apply, with the
/// namespace of objects that say none (destination.namespace, defaultNamespace) or of all (targetNamespace, namespace
/// of fleet.yaml).
class GitOpsPaths {
public:
    /// `files` as object_files lists them below the directory `top`. A file that cannot be read, one that is packed,
    /// and an object with variables in its path or namespace, say nothing; nor do objects that name several
    /// repositories between them.
    [[nodiscard]] static GitOpsPaths among(const std::string& top, const std::vector<std::string>& files);

    /// The namespace for what lies in one of `directories`: that of the longest path. None if no path leads there, or
    /// several with different namespaces. Paths begin at the root of a repository: that is `top`, or, where `top` holds
    /// no such directory and ends as the path begins, a directory above it. O(paths).
    [[nodiscard]] GitOpsNamespace namespace_of(const std::vector<std::string>& directories) const;

private:
    struct Applied {
        std::string path;         ///< "" for the root
        GitOpsNamespace given;
        bool with_below = false;  ///< directories below it, too
        bool is_bundle = false;   ///< `path` is below `top` already: it has a fleet.yaml
    };

    void add(const value::Node& root, const std::string& file);
    void add_bundle(const value::Node& root, const std::string& file);
    void add_path(const std::string& path, const GitOpsNamespace& given, bool with_below);
    /// Makes all paths relative to `top`; what does not lead into it goes.
    void resolve(const std::vector<std::string>& files);
    [[nodiscard]] std::string below_top(const std::string& directory) const;

    std::string top_;
    std::vector<Applied> all_;
    std::set<std::string> argo_repositories_, flux_repositories_;
};

}  // namespace kmm::cluster
