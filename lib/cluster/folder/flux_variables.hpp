// SPDX-License-Identifier: Apache-2.0
// What a Kustomization of Flux puts in place of ${NAME} in the objects that it applies (postBuild).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// The ConfigMaps and Secrets of a repository that Kustomizations of Flux take variables from.
class FluxSources {
public:
    /// One that postBuild.substituteFrom names.
    struct Reference {
        std::string kind, name;
        friend auto operator<=>(const Reference&, const Reference&) = default;
    };
    /// By name; nullopt where the file has another value than the cluster: one that sops has encrypted, or with
    /// variables of its own.
    using Values = std::map<std::string, std::optional<std::string>>;

    /// Reads those of `wanted` in `files`.
    [[nodiscard]] static FluxSources among(const std::vector<std::string>& files, const std::vector<Reference>& wanted);
    /// The values of one in `ns`, or in a file that says no namespace: that beside the file `user`, else those on which
    /// all of its name agree. nullopt if there is none. These are computed once for each name and namespace.
    [[nodiscard]] std::optional<Values> find(const Reference& reference, const std::string& ns,
                                             const std::string& user);

private:
    struct Found {
        std::string directory, ns;
        Values values;
    };
    void add(const value::Node& object, const std::string& file, const std::vector<Reference>& wanted);

    std::map<Reference, std::vector<Found>> found_;
    std::map<std::pair<Reference, std::string>, Values> agreed_;  ///< by reference and namespace
};

/// The variables of one Kustomization.
struct FluxVariables {
    std::map<std::string, std::string> values;  ///< postBuild.substitute, and what `look_up` has found
    bool has_others = false;                    ///< the cluster has more, or others
    std::vector<FluxSources::Reference> references = {};  ///< postBuild.substituteFrom
    std::string ns = {};                                  ///< of the Kustomization

    [[nodiscard]] static FluxVariables of(const value::Node& kustomization);
    /// Adds what `references` give: a later one goes before an earlier one, postBuild.substitute before both. `file` is
    /// that of the Kustomization.
    void look_up(FluxSources& sources, const std::string& file);
    /// Flux looks for variables at all.
    [[nodiscard]] bool are_used() const noexcept { return has_others || !values.empty(); }
};

/// What `replace_variables` could not replace.
struct ReplacedVariables {
    struct Unknown {
        value::Mark mark;         ///< where it stands first
        bool is_in_data = false;  ///< and nowhere but in the data of a ConfigMap or Secret
    };
    /// Variables without a value and without a default: nothing is put in their place.
    std::map<std::string, Unknown> unknown;
    std::string fault;        ///< why the object cannot be read as Flux applies it; "" if it can
    bool is_refused = false;  ///< Flux refuses it, too
    value::Mark fault_mark;
    std::vector<value::Mark> no_texts;  ///< values that are texts in the file and none after the replacement
};

/// Replaces the variables in all texts and keys of an object, and reads each text again in the form in which Flux
/// writes it before it replaces them: quotes of the file do not count. An object with the label or annotation
/// kustomize.toolkit.fluxcd.io/substitute: disabled stays as it is.
[[nodiscard]] ReplacedVariables replace_variables(value::Node& object, const FluxVariables& variables);

}  // namespace kmm::cluster
