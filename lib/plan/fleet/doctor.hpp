// SPDX-License-Identifier: Apache-2.0
// What upgrades and operators leave behind in a cluster, and how it is mended.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"

namespace kmm::plan {

/// What the record of kmm-upgrade has to do with: nothing of it is a finding.
struct Recorded {
    std::string cordon_owner;        ///< how the recorded run signs its cordons, "" without a run that goes on
    std::set<std::string> cordoned;  ///< nodes it has cordoned
    std::string module = {};         ///< NAMESPACE/NAME, if it is of a Module
};

/// What mends a finding, where that is safe once somebody has agreed. `lift_cordon`: only if the node was named.
struct Mend {
    enum class Kind { none, remove_labels, lift_cordon, remove_pod };
    struct Label {
        std::string node, key, value;
    };
    Kind kind = Kind::none;
    std::vector<Label> labels;       ///< of remove_labels: nothing else may have changed them
    std::string module;              ///< NAMESPACE/NAME, if the labels are of a Module that is there
    std::string node, owner;         ///< of lift_cordon: what the annotation says, "" for none
    std::string namespace_, name, uid;  ///< of remove_pod
    /// For people, as "remove label ... from node-a": "" for none.
    [[nodiscard]] std::string text() const;
};

struct Finding {
    Diagnostic diagnostic;
    Mend mend;
};

/// Everything that does not go away by itself; the hint of each finding is the command that mends it, or says who can.
/// Warnings: version-labels-stuck, label-key-leftover, cordon-loses-version, node-missing (as a plan has them);
/// left-unloaded (on the way to the version that the labels ask for, without a worker Pod under way), label-left (of a
/// Module that is gone), cordon-left (by a kmm-upgrade that is not at work), deletion-stuck (finalizers) and
/// worker-pod-left (of a node that is gone). Notes: cordon-foreign. Sorted by severity, code, then object. O(plan).
[[nodiscard]] std::vector<Finding> examine(const api::Objects& objects, const Recorded& recorded);

}  // namespace kmm::plan
