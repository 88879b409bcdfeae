// SPDX-License-Identifier: Apache-2.0
// What kubectl cluster-compare compares objects of a cluster with: templates beside the manifests of a repository.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

/// The references of kube-compare among the files of a directory.
class CompareReferences {
public:
    /// `files` as object_files lists them. A metadata.yaml that cannot be read says nothing.
    [[nodiscard]] static CompareReferences among(const std::vector<std::string>& files);

    /// Whether a file is the metadata.yaml of a reference or one that it names, or lies below it with actions of a
    /// template. Other files below it are manifests. A file that cannot be read is none of it.
    [[nodiscard]] bool has(const std::string& file) const;

private:
    void add_paths(const std::string& directory, const value::Node& node);

    std::set<std::string> directories_;  ///< "" for the working directory, else with a slash at the end
    std::set<std::string> files_;
};

}  // namespace kmm::cluster
