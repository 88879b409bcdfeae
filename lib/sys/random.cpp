// SPDX-License-Identifier: Apache-2.0
#include "sys/random.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::sys {

void LinuxRandom::fill(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0) {
            const int saved = errno;
            if (saved == EINTR) {
                continue;
            }
            throw from_errno(saved, "cannot get random bytes from the kernel");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

std::string uuid_v4(Random& random) {
    std::array<std::uint8_t, 16> bytes{};
    random.fill(bytes);
    bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0fU) | 0x40U);
    bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3fU) | 0x80U);
    std::string text = base::to_hex(bytes);
    for (const std::size_t at : {8U, 13U, 18U, 23U}) {
        text.insert(at, 1, '-');
    }
    return text;
}

}  // namespace kmm::sys
