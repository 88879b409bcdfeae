// SPDX-License-Identifier: Apache-2.0
// The seam through which all randomness goes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kmm::sys {

class Random {
public:
    virtual ~Random() = default;
    /// Fills `bytes` completely. Errors: io.
    virtual void fill(std::span<std::uint8_t> bytes) = 0;
};

/// The kernel's generator (getrandom).
class LinuxRandom final : public Random {
public:
    void fill(std::span<std::uint8_t> bytes) override;
};

/// A version 4 UUID (RFC 9562 5.4) in lower case: "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".
[[nodiscard]] std::string uuid_v4(Random& random);

}  // namespace kmm::sys
