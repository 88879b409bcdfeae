// SPDX-License-Identifier: Apache-2.0
// What a Kustomization of Flux puts in place of ${NAME} in the objects that it applies (postBuild).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::cluster {

/// The variables of one Kustomization.
struct FluxVariables {
    std::map<std::string, std::string> values;  ///< postBuild.substitute
    bool has_others = false;  ///< postBuild.substituteFrom names ConfigMaps or Secrets, which the cluster has

    [[nodiscard]] static FluxVariables of(const value::Node& kustomization);
    /// Flux looks for variables at all.
    [[nodiscard]] bool are_used() const noexcept { return has_others || !values.empty(); }
};

/// Replaces the variables in all texts and keys of an object, $$ by $, and reads a plain scalar again, as Flux does; a
/// quoted one stays a text, where Flux reads it again if it then stands plain. An object with the label or annotation
/// kustomize.toolkit.fluxcd.io/substitute: disabled stays as it is. `text` is what the object was read from. Returns
/// the variables without a value and without a default, and where each stands first: nothing is put in their place.
/// What is in the braces beside a name and a default (:= :- =) counts as such.
[[nodiscard]] std::map<std::string, value::Mark> replace_variables(value::Node& object, std::string_view text,
                                                                   const FluxVariables& variables);

}  // namespace kmm::cluster
