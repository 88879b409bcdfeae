// SPDX-License-Identifier: Apache-2.0
// In which order the objects of one state are applied, as far as some of them are waited for.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace kmm::drive {

/// Objects are applied in order. Behind one that is not ready, nothing is applied that may need it: nothing at all
/// behind an object of no kernel, and behind the copy for a kernel only copies for others. So one kernel whose driver
/// does not come up does not keep the others waiting.
class ApplyOrder {
public:
    /// `kernels`: of each object, in order; "" for an object of no kernel.
    explicit ApplyOrder(std::vector<std::string> kernels);
    /// Returns "" for what was done, or what is missing.
    using Attempt = std::function<std::string(std::size_t place)>;
    /// Goes as far as it can: `apply` once for each object until it has succeeded, `gate` only for objects that
    /// unapplied ones wait for. Returns what is missing, nothing once every object is applied.
    [[nodiscard]] std::vector<std::string> advance(const Attempt& apply, const Attempt& gate);

private:
    [[nodiscard]] bool is_awaited(std::size_t place) const;

    std::vector<std::string> kernels_;
    std::vector<bool> applied_, ready_;
};

}  // namespace kmm::drive
