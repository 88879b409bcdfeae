// SPDX-License-Identifier: Apache-2.0
// What workers warn of is told once for each node, however often they are asked.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kmm::drive {

/// Thread safe.
class WorkerWarnings {
public:
    /// What is recorded of a node's warning, as the node wrote it; nullopt if they were told.
    [[nodiscard]] std::optional<std::string> tell(const std::string& node, const std::string& warning) {
        auto text = "warning: " + warning;
        const std::lock_guard guard(mutex_);
        if (!told_.emplace(node, text).second) return std::nullopt;
        return text;
    }

private:
    std::mutex mutex_;
    std::set<std::pair<std::string, std::string>> told_;  ///< node and text
};

}  // namespace kmm::drive
