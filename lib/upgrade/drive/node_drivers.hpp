// SPDX-License-Identifier: Apache-2.0
// The seam to drivers that a procedure does not bring to nodes itself, and needs back after it has changed a node.
#pragma once

#include <string>
#include <vector>

namespace kmm::drive {

/// Drivers by name. Names hold across kernels and are kept in records. Thread safe. Errors: those of the API server.
class NodeDrivers {
public:
    virtual ~NodeDrivers() = default;
    /// Those that serve the node now, sorted.
    [[nodiscard]] virtual std::vector<std::string> serving(const std::string& node) = 0;
    /// What the driver lacks to serve the node, which runs `kernel`, for people; "" if it serves, or is wanted there no
    /// more.
    [[nodiscard]] virtual std::string problem(const std::string& node, const std::string& kernel,
                                              const std::string& driver) = 0;
};

}  // namespace kmm::drive
