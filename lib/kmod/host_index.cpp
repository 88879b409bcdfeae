// SPDX-License-Identifier: Apache-2.0
#include "kmod/host_index.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

namespace kmm::kmod {

namespace {

constexpr std::uint32_t k_index_magic = 0xB007F457;
constexpr std::uint32_t k_index_version = 0x00020001;
constexpr std::size_t k_index_header = 12;
// In the number that says where a node is: which parts it has.
constexpr std::uint32_t k_has_prefix = 0x80000000;
constexpr std::uint32_t k_has_values = 0x40000000;
constexpr std::uint32_t k_has_children = 0x20000000;
constexpr std::uint32_t k_place = 0x0FFFFFFF;

/// Steps over the parts of a node; `whole` is false once one of them ends behind the end of the file.
struct NodeReader {
    std::string_view rest;
    bool whole = true;

    void skip(std::size_t bytes) {
        whole = whole && bytes <= rest.size();
        rest.remove_prefix(std::min(bytes, rest.size()));
    }
    std::uint8_t byte() {
        const std::uint8_t value = rest.empty() ? 0 : static_cast<std::uint8_t>(rest.front());
        skip(1);
        return value;
    }
    std::uint32_t number() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) value = value << 8U | byte();
        return value;
    }
    void text() {
        const auto end = rest.find('\0');
        skip(end == std::string_view::npos ? rest.size() + 1 : end + 1);
    }
};

}  // namespace

bool is_cut_off(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string header(k_index_header, '\0');
    if (!file.read(header.data(), static_cast<std::streamsize>(header.size()))) return false;
    NodeReader start{header};
    if (start.number() != k_index_magic || start.number() != k_index_version) return false;
    const std::uint32_t root = start.number();
    const bool has_parts = (root & (k_has_prefix | k_has_values | k_has_children)) != 0;
    if ((root & k_place) == 0 || !has_parts) return false;  // of no names: its root is where the file ends
    file.seekg(0, std::ios::end);
    const auto size = static_cast<std::uint64_t>(file.tellg());
    if ((root & k_place) >= size) return true;
    file.seekg(root & k_place);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    NodeReader node{bytes};
    if ((root & k_has_prefix) != 0) node.text();
    if ((root & k_has_children) != 0) {
        const unsigned first = node.byte();
        const unsigned last = node.byte();
        if (last >= first) node.skip((last - first + 1) * std::size_t{4});
    }
    if ((root & k_has_values) != 0) {
        for (std::uint32_t left = node.number(); left > 0 && node.whole; --left) {
            node.skip(4);  // its rank
            node.text();
        }
    }
    return !node.whole;
}

bool has_cut_index(const std::string& directory) {
    static constexpr std::string_view names[] = {"modules.dep.bin", "modules.alias.bin", "modules.symbols.bin",
                                                 "modules.builtin.bin", "modules.builtin.alias.bin"};
    return std::any_of(std::begin(names), std::end(names), [&](std::string_view name) {
        return is_cut_off(directory + "/" + std::string(name));
    });
}

}  // namespace kmm::kmod
