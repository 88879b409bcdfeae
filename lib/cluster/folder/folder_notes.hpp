// SPDX-License-Identifier: Apache-2.0
// What is reported of a directory: files that were not read, and changes that were not followed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cluster/folder/gitops.hpp"

namespace kmm::cluster {

/// The directory of a file as it is written, "." for none.
[[nodiscard]] std::string_view directory_part(std::string_view file);

/// Files of one directory by the reason why they have a note, in the order in which they were read.
struct FolderNotes {
    std::map<std::string, std::vector<std::string>> left_out;  ///< without an object; key: the chart's directory, or ""
    std::vector<std::string> templates;  ///< that no reader can read, of objects that decisions do not need
    std::vector<std::string> compared;   ///< templates of a reference for kubectl cluster-compare
    std::vector<std::string> parts;      ///< what kustomizations use and no object is in
    std::set<std::string> changing;      ///< kustomizations that change objects of KMM in a way that is not followed
    std::vector<std::string> not_built;  ///< kustomizations with resources that are not below the directory
    std::map<std::string, GitOpsChange> patching;  ///< the same of Argo CD and Flux, by their files

    /// Appends notes with the codes unknown-kind and kustomize-not-built, one for each reason, chart and GitOpsChange.
    void report(Diagnostics& diagnostics) const;
};

}  // namespace kmm::cluster
