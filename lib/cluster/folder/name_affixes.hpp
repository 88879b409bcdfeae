// SPDX-License-Identifier: Apache-2.0
// What kustomize adds to names of ConfigMaps and Secrets. Names of Modules and of other kinds stay: a finding says what
// changes them.
#pragma once

#include <string>

#include "value/node.hpp"

namespace kmm::cluster {

/// namePrefix and nameSuffix of one kustomization, or of several, the inner ones nearest to the name.
struct NameAffixes {
    std::string prefix, suffix;

    /// What a kustomization says; `root` is its document.
    [[nodiscard]] static NameAffixes of(const value::Node& root);
    [[nodiscard]] bool is_empty() const { return prefix.empty() && suffix.empty(); }
    bool operator==(const NameAffixes&) const = default;
    /// Whether `object` is a ConfigMap or Secret.
    [[nodiscard]] static bool renames(const value::Node& object);
    /// Adds those of a kustomization that has this one as a resource.
    void add_outer(const NameAffixes& outer);
    /// Changes the name of `object` if it is a ConfigMap or Secret, and those in a list of kind List. Places stay.
    void apply(value::Node& object) const;
};

}  // namespace kmm::cluster
