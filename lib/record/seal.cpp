// SPDX-License-Identifier: Apache-2.0
#include "record/seal.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "base/error.hpp"
#include "digest/digest.hpp"
#include "record/safe_file.hpp"
#include "record/state_dir.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"

namespace kmm::record {
namespace {

constexpr std::size_t k_key_bytes = 32;

std::string seal_path(const std::string& directory) { return directory + "/seal"; }

/// The key; nullopt if there is none that only this user has.
std::optional<std::string> read_key() {
    try {
        const std::string path = key_path();
        const sys::Fd fd = open_own_file(path, O_RDONLY);
        struct stat facts {};
        if (!fd || sys::trust_fault(path) || ::fstat(fd.get(), &facts) != 0 || (facts.st_mode & 077U) != 0) {
            return std::nullopt;
        }
        std::string key = sys::read_fd(fd.get(), path, k_key_bytes + 1);
        return key.size() == k_key_bytes ? std::optional(std::move(key)) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<std::string> make_key() {
    try {
        std::string key(k_key_bytes, '\0');
        if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
            return std::nullopt;
        }
        const std::string path = key_path();
        sys::make_directories(sys::parent_of(path), 0700);
        sys::LinuxFileOps ops;
        const std::string fresh = sys::temp_name(path);
        sys::write_file_atomically(ops, fresh, key, 0600);
        // Whoever comes first makes the key; what stands there is never replaced.
        const bool is_first = ::link(fresh.c_str(), path.c_str()) == 0;
        static_cast<void>(is_first);  // read_key() tells
        static_cast<void>(::unlink(fresh.c_str()));
        return read_key();
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::string mac_of(const std::string& key, const std::string& text) {
    return digest::hmac_sha256_hex(key, text) + "\n";
}

/// In the same time wherever they differ.
bool is_equal(const std::string& one, const std::string& other) {
    unsigned different = one.size() == other.size() ? 0U : 1U;
    for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
        different |= static_cast<unsigned>(static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]));
    }
    return different == 0;
}

}  // namespace

std::string key_path() { return sys::parent_of(default_state_dir()) + "/kmm-tools/record.key"; }

bool seal(const std::string& directory, const std::string& text) {
    auto key = read_key();
    if (!key) {
        key = make_key();
    }
    if (!key) {
        return false;
    }
    try {
        sys::LinuxFileOps ops;
        sys::write_file_atomically(ops, seal_path(directory), mac_of(*key, text), 0600);
        return true;
    } catch (const Error&) {
        return false;
    }
}

bool is_sealed(const std::string& directory, const std::string& text) {
    const auto key = read_key();
    if (!key) {
        return false;
    }
    try {
        const auto there = read_own_file(seal_path(directory));
        return there && is_equal(*there, mac_of(*key, text));
    } catch (const Error&) {
        return false;
    }
}

}  // namespace kmm::record
