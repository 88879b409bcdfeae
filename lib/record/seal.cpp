// SPDX-License-Identifier: Apache-2.0
#include "record/seal.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// Writes a key to `path`, unless something stands there: whoever comes first makes it, and it is never replaced.
void make_key(const std::string& path) {
    std::string key(k_key_bytes, '\0');
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
        return;
    }
    sys::LinuxFileOps ops;
    const std::string directory = sys::parent_of(path);
    sys::make_directories(directory, 0700);
    const std::string fresh = sys::temp_name(path);
    sys::write_file_atomically(ops, fresh, key, 0600);
    const bool is_first = ::link(fresh.c_str(), path.c_str()) == 0;
    static_cast<void>(is_first);  // either way there is one
    static_cast<void>(::unlink(fresh.c_str()));
    // A line with a MAC must not outlive the key in a loss of power.
    ops.sync_dir(directory);
    ops.sync_dir(sys::parent_of(directory));
}

}  // namespace

std::string_view to_string(Seal seal) noexcept {
    switch (seal) {
        case Seal::own: return "own";
        case Seal::none: return "none";
        case Seal::foreign: return "foreign";
        case Seal::unknown: break;
    }
    return "unknown";
}

std::optional<SealKey> SealKey::of_user() {
    try {
        return SealKey(sys::parent_of(default_state_dir()) + "/kmm-tools/record.key");
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<std::string> SealKey::read() const {
    try {
        const sys::Fd fd = open_own_file(path_, O_RDONLY);
        struct stat facts {};
        if (!fd || sys::trust_fault(path_) || ::fstat(fd.get(), &facts) != 0 || (facts.st_mode & 077U) != 0) {
            return std::nullopt;
        }
        std::string key = sys::read_fd(fd.get(), path_, k_key_bytes + 1);
        return key.size() == k_key_bytes ? std::optional(std::move(key)) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<std::string> SealKey::read_or_make() const {
    if (auto key = read()) {
        return key;
    }
    try {
        make_key(path_);
    } catch (const Error&) {
        return std::nullopt;
    }
    return read();
}

std::string line_mac(const std::string& key, std::string_view text) {
    return digest::hmac_sha256_hex(key, "kmm-upgrade journal line\n" + std::string(text));
}

bool is_same_mac(std::string_view one, std::string_view other) {
    unsigned different = one.size() == other.size() ? 0U : 1U;
    for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
        different |= static_cast<unsigned>(static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]));
    }
    return different == 0;
}

}  // namespace kmm::record
