// SPDX-License-Identifier: Apache-2.0
// A release of a recipe: the objects of its states in the order in which they are applied. It is kept in a Secret of
// the cluster.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::upgrade::recipe {

/// On every object that a rollout created: the recipe that it belongs to. Objects without it were there before, and are
/// not removed.
inline constexpr std::string_view k_label_recipe = "kmmtools.dev/recipe";

/// Which object: versions of one group are the same object.
struct ObjectId {
    std::string group, kind, space, name;
    friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};
[[nodiscard]] ObjectId id_of(const value::Node& object);

struct ReleaseObject {
    std::string kernel;  ///< whose copy it is, "" for an object of no kernel
    value::Node object;
    /// A build of a driver's image: applied once the image cannot be pulled.
    bool on_demand = false;
};

/// Nodes that get the label of a state when it is ready.
struct NodeChoice {
    std::map<std::string, std::string> labels;  ///< all of them
    std::string key;                            ///< and this one with one of `values`; "" for none
    std::vector<std::string> values;
    [[nodiscard]] bool selects(const value::Node& node) const;
};

struct State {
    std::string name;       ///< RESOURCE/STATE, as the record has it: "simple-kmod/1000-driver"
    std::string resource;
    std::string label;  ///< of nodes, once it is ready; "" for none: (namespace), (stateless), all but the last of
                        ///< states with one number
    NodeChoice nodes;
    std::vector<ReleaseObject> objects;
};

/// `pending`: a rollout has begun and was not completed; `deployed`: what the cluster has; `superseded`: was deployed
/// before another one.
enum class Status { pending, deployed, superseded };
[[nodiscard]] std::string_view to_string(Status status) noexcept;

struct Release {
    std::string recipe, version, lineage, created;
    std::int64_t revision = 0;
    Status status = Status::pending;
    std::vector<std::string> kernels;  ///< those of the nodes that it was rendered for
    std::vector<State> states;
    std::vector<ReleaseObject> kept;  ///< copies of earlier releases for kernels that are still needed

    /// nullptr if there is none of that name.
    [[nodiscard]] const State* find(std::string_view state) const noexcept;
    /// nullptr if neither a state nor `kept` has it.
    [[nodiscard]] const ReleaseObject* find(const ObjectId& id) const;
    /// Of all states and of `kept`.
    [[nodiscard]] std::set<ObjectId> ids() const;
};

[[nodiscard]] value::Node encode(const Release& release);
/// Inverse of encode. Errors: io "state-damaged" naming `place`; config "state-newer" for a format of later versions.
[[nodiscard]] Release decode_release(const value::Node& tree, const std::string& place);

/// What a release does not have of those before it.
struct Leftovers {
    std::vector<ReleaseObject>
        obsolete;  ///< in the order in which they are removed: the reverse of that in which they were applied
    std::vector<ReleaseObject> kept;      ///< copies for kernels of `needed` that the release was not rendered for
};
/// `all` are the releases of the recipe in any order; those of the same revision as `now` are left out. O(objects).
[[nodiscard]] Leftovers leftovers(const std::vector<Release>& all, const Release& now,
                                  const std::set<std::string>& needed);

/// Everything that `releases` (not empty) have, as one release: the states of the newest one, then what only earlier
/// ones have. An object is there once.
[[nodiscard]] Release merged(std::vector<Release> releases);

/// The name of the node label of a state: "specialresource.openshift.io/state-NAME-1000"; "" for a state without a
/// number.
[[nodiscard]] std::string state_label(std::string_view resource, std::string_view state);

}  // namespace kmm::upgrade::recipe
