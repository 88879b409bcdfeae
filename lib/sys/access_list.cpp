// SPDX-License-Identifier: Apache-2.0
#include "sys/access_list.hpp"

#include <sys/types.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdint>
#include <vector>

namespace kmm::sys {
namespace {

// Source: Linux include/uapi/linux/posix_acl.h and posix_acl_xattr.h; all numbers are little-endian.
constexpr const char* k_list = "system.posix_acl_access";
constexpr const char* k_nfs_list = "system.nfs4_acl";
constexpr std::size_t k_head = 4;
constexpr std::size_t k_entry = 8;
constexpr std::uint32_t k_version = 2;
constexpr std::uint32_t k_user = 0x02;
constexpr std::uint32_t k_group = 0x08;
constexpr std::uint32_t k_mask = 0x10;
constexpr std::uint32_t k_write = 0x02;
constexpr std::size_t k_list_max = 65536;  ///< XATTR_SIZE_MAX

constexpr const char* k_unknown = "others";

std::uint32_t number(const std::vector<unsigned char>& bytes, std::size_t at, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = count; i > 0; --i) {
        value = value << 8U | bytes[at + i - 1];
    }
    return value;
}

struct Entry {
    std::uint32_t tag = 0;
    std::uint32_t may = 0;
    std::uint32_t id = 0;
};

Entry entry_at(const std::vector<unsigned char>& bytes, std::size_t at) {
    return {number(bytes, at, 2), number(bytes, at + 2, 2), number(bytes, at + 4, 4)};
}

}  // namespace

std::optional<std::string> writer_by_list(int fd) {
    // A descriptor that only names its file has no attributes of its own.
    const std::string file = "/proc/self/fd/" + std::to_string(fd);
    std::vector<unsigned char> bytes(k_list_max);
    const ssize_t size = ::getxattr(file.c_str(), k_list, bytes.data(), bytes.size());
    if (size < 0) {
        const bool is_none = errno == ENODATA || errno == EOPNOTSUPP;
        if (is_none && ::getxattr(file.c_str(), k_nfs_list, nullptr, 0) < 0) {
            return std::nullopt;
        }
        return k_unknown;
    }
    bytes.resize(static_cast<std::size_t>(size));
    if (bytes.size() < k_head || (bytes.size() - k_head) % k_entry != 0 || number(bytes, 0, k_head) != k_version) {
        return k_unknown;
    }
    std::uint32_t mask = k_write;
    for (std::size_t at = k_head; at < bytes.size(); at += k_entry) {
        if (const Entry entry = entry_at(bytes, at); entry.tag == k_mask) {
            mask = entry.may;
        }
    }
    for (std::size_t at = k_head; at < bytes.size(); at += k_entry) {
        const Entry entry = entry_at(bytes, at);
        const bool is_named = entry.tag == k_user || entry.tag == k_group;
        if (is_named && entry.id != 0 && (entry.may & mask & k_write) != 0) {
            return (entry.tag == k_user ? "user " : "group ") + std::to_string(entry.id);
        }
    }
    return std::nullopt;
}

}  // namespace kmm::sys
