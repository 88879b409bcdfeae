// SPDX-License-Identifier: Apache-2.0
// Which Nodes are cordoned or not Ready, read no more often than needed.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "upgrade/drive_kubernetes/node_tools.hpp"

namespace kmm::drive {

/// All Nodes are read at most every five seconds, however many nodes are begun in that time. Thread safe. `tools`
/// outlives it.
class UnavailableNodes {
public:
    explicit UnavailableNodes(NodeTools& tools) : tools_(tools) {}
    /// Why each of them is unavailable. Errors: those of ClusterView::read.
    [[nodiscard]] std::map<std::string, std::string> names();
    /// What was read of one node is out of date: it is back to work, or Ready.
    void forget_cordon(const std::string& node);
    void forget_unready(const std::string& node);
    /// All that was read is out of date.
    void forget();

private:
    void forget(const std::string& node, const char* reason);

    NodeTools& tools_;
    std::mutex mutex_;
    std::optional<std::map<std::string, std::string>> found_;  ///< as last read
    std::chrono::milliseconds since_{};                        ///< monotonic
};

}  // namespace kmm::drive
