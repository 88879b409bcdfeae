// SPDX-License-Identifier: Apache-2.0
// May the cluster go to the next kernel? One answer made of all verdicts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::recipe::decide {

/// What was asked of a driver's image for one kernel.
enum class Looked { nothing, image, modules };

/// What one driver says of one kernel.
struct KernelVerdict {
    std::string subject;  ///< "drivers/kmm-hello", "SpecialResource hello"
    std::string kernel;
    bool ready = false;
    std::string reason;   ///< a code
    std::string message;  ///< "" if the reason says it all
    Looked looked = Looked::nothing;  ///< image: that it is there; modules: that the modules in it fit the kernel
};

struct Upgradeable {
    bool status = false;
    std::string reason;   ///< as conditions have it: "AsExpected", "NoImageNoSource", "MultipleReasons"
    std::string message;  ///< the first few that are not ready, and how many more there are
    std::vector<KernelVerdict> blocking;
};

/// True if every driver is ready; the message says how far images were looked into. No verdict at all is false, reason
/// "NothingChecked".
[[nodiscard]] Upgradeable judge_upgrade(const std::vector<KernelVerdict>& verdicts);

/// "NoImageNoSource" of "no-image-no-source".
[[nodiscard]] std::string condition_reason(std::string_view code);

/// Which object carries the condition Upgradeable.
struct StatusTarget {
    bool is_operator_condition = false;  ///< of OLM; else ClusterOperator
    std::string name;
    std::string name_space;              ///< of an OperatorCondition
};
/// "clusteroperator", "clusteroperator/NAME", "operatorcondition/NAMESPACE/NAME"; nullopt for anything else.
[[nodiscard]] std::optional<StatusTarget> parse_status_target(std::string_view text);

/// The object with nothing but the condition, for kubectl apply --server-side: ClusterOperator config.openshift.io/v1
/// with status.conditions, OperatorCondition operators.coreos.com/v2 with spec.conditions. `time` is RFC 3339.
[[nodiscard]] value::Node status_patch(const StatusTarget& target, const Upgradeable& upgradeable,
                                       const std::string& time);

}  // namespace kmm::recipe::decide
