// SPDX-License-Identifier: Apache-2.0
// How much memory what is computed may take.
#pragma once

#include <cstdint>

namespace kmm::recipe::tmpl {

/// Bytes that may be made, whether they are kept or not. What can make more than it is given asks before it does.
class Budget {
public:
    explicit Budget(std::uint64_t most) noexcept : most_(most) {}
    /// Counts bytes that are made or are to be made. Throws Fault "recipe-too-large".
    void take(std::uint64_t bytes);
    /// Bytes that were counted.
    [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

private:
    std::uint64_t most_, taken_ = 0;
};

}  // namespace kmm::recipe::tmpl
