// SPDX-License-Identifier: Apache-2.0
// Why nodes have failed: one cause that several nodes have in common is said once.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// Nodes that failed for the same cause: with equal code, message and hint, but for their own names in them.
struct Cause {
    std::string code;
    std::string message, hint;  ///< of several nodes with NODE for the name
    std::vector<std::string> nodes;  ///< in the order of the run; never empty
};

/// The causes of all failed nodes, in the order of their first nodes. O(nodes).
[[nodiscard]] std::vector<Cause> causes_of(const upgrade::Run& run);

/// Remembers what was said, so that a long cause is printed in full once.
class SaidCauses {
public:
    /// `message`, or "as node-a" where that node failed with this code and this long message before.
    [[nodiscard]] std::string text(const std::string& node, const std::string& code, const std::string& message);

private:
    std::map<std::string, std::string> first_;  ///< code and message to node
};

}  // namespace kmm::tool_upgrade
