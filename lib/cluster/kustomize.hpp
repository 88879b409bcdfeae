// SPDX-License-Identifier: Apache-2.0
// What kustomizations in a directory say of the files beside them. They are not built.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

/// The kustomizations among the files of a directory.
class Kustomizations {
public:
    /// `files` as object_files lists them. A kustomization that cannot be read says nothing.
    [[nodiscard]] static Kustomizations among(const std::vector<std::string>& files);

    /// Whether a kustomization has a file as a patch or as a setting, and none as a resource: what stands there is no
    /// object, or half of one.
    [[nodiscard]] bool is_part(const std::string& file) const;
    /// Which namespace objects of a file get that say none; "" if no kustomization says one.
    [[nodiscard]] std::string namespace_of(const std::string& file) const;
    /// The kustomizations that change objects of a file, which begins with `text`, in more than namespace_of says:
    /// sorted. kustomize puts its namespace in place of any other.
    [[nodiscard]] std::vector<std::string> changing(const std::string& file, std::string_view text) const;
    /// The ConfigMaps that configMapGenerator makes, each by its name without the hash that kustomize appends, with the
    /// keys and without the texts. Those whose namespace or keys are not in a kustomization are left out.
    [[nodiscard]] std::vector<value::Document> generated_config_maps() const;

private:
    struct Kustomization {
        std::string file, directory;
        std::string given_namespace;   ///< "" if it says none
        std::set<std::string> resources;  ///< files, and directories of other kustomizations
        bool changes = false;
        std::vector<value::Node> config_maps;  ///< that it generates; without a namespace unless it says one
    };

    void add(const std::string& file, std::string_view text);
    /// Those that a file is a resource of, nearest first.
    [[nodiscard]] std::vector<const Kustomization*> users_of(const std::string& file) const;

    std::vector<Kustomization> all_;
    std::map<std::string, std::vector<std::size_t>> by_resource_;
    std::set<std::string> parts_;
};

}  // namespace kmm::cluster
