// SPDX-License-Identifier: Apache-2.0
#include "record/crc32c.hpp"

#include <fmt/format.h>

#include <array>

namespace kmm::record {
namespace {

constexpr std::uint32_t k_polynomial = 0x82F63B78U;

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value & 1U) != 0 ? (value >> 1U) ^ k_polynomial : value >> 1U;
        }
        table[byte] = value;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> k_table = make_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
    std::uint32_t value = ~0U;
    for (const char byte : bytes) {
        value = (value >> 8U) ^ k_table[(value ^ static_cast<unsigned char>(byte)) & 0xffU];
    }
    return ~value;
}

std::string crc32c_hex(std::string_view bytes) {
    return fmt::format("{:08x}", crc32c(bytes));
}

}  // namespace kmm::record
