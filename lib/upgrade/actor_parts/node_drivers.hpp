// SPDX-License-Identifier: Apache-2.0
// The seam to drivers that a procedure does not bring to nodes itself, and needs back after it has changed a node.
#pragma once

#include <map>
#include <string>

namespace kmm::drive {

/// Drivers by name. Names hold across kernels and are kept in records. Thread safe. Errors: those of the API server.
class NodeDrivers {
public:
    virtual ~NodeDrivers() = default;
    /// Those that serve the node now, with the identities of their containers there, "" where nothing says them.
    [[nodiscard]] virtual std::map<std::string, std::string> serving(const std::string& node) = 0;
    /// What the driver lacks to serve the node, which runs `kernel`, for people; "" if it serves, or is wanted there no
    /// more. `before`: its containers before the node was rebooted, "" if unknown: what is said of them is out of date.
    [[nodiscard]] virtual std::string problem(const std::string& node, const std::string& kernel,
                                              const std::string& driver, const std::string& before) = 0;
};

}  // namespace kmm::drive
