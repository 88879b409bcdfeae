// SPDX-License-Identifier: Apache-2.0
// Which namespaces Argo CD, Flux and Fleet give to what a repository holds: their objects in the directory say it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

/// The paths that Applications and ApplicationSets of Argo CD, Kustomizations of Flux and a fleet.yaml apply, with the
/// namespace of objects that say none: destination.namespace, targetNamespace, and namespace or defaultNamespace.
class GitOpsPaths {
public:
    /// `files` as object_files lists them below the directory `top`. A file that cannot be read, and an object with
    /// variables in its path or namespace, say nothing.
    [[nodiscard]] static GitOpsPaths among(const std::string& top, const std::vector<std::string>& files);

    /// The namespace for what lies in one of `directories`: that of the longest path. "" if no path leads there, or
    /// several with different namespaces. Paths begin at the root of a repository, of which `top` may be a part: they
    /// are compared with the ends of directories. O(paths).
    [[nodiscard]] std::string namespace_of(const std::vector<std::string>& directories) const;

private:
    struct Applied {
        std::string path;         ///< as joined; "" for the root
        std::string given_namespace;
        bool with_below = false;  ///< directories below it, too
    };

    void add(const value::Node& root);
    void add_path(const std::string& path, const std::string& given_namespace, bool with_below);
    [[nodiscard]] bool leads_to(const Applied& applied, const std::string& directory) const;

    std::string top_;
    std::vector<Applied> all_;
};

}  // namespace kmm::cluster
