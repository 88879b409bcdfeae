// SPDX-License-Identifier: Apache-2.0
// Whether a record is ours. CRC and chain of a journal have no key: anybody can write one. A line that this user's
// program wrote has a MAC as well, over itself and so, by its `prev`, over every line before it. The key never lies in
// a state directory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kmm::record {

/// What the MAC of a journal's last line says of the whole journal. An older state of one's own record is one's own.
enum class Seal {
    own,      ///< it is of this user's key: nobody without the key has changed anything
    none,     ///< it has none
    foreign,  ///< it is of another key, or a line was changed
    unknown,  ///< there is no key of this user to try it with
};
/// As JSON spells it: "own", "none", "foreign", "unknown".
[[nodiscard]] std::string_view to_string(Seal seal) noexcept;

/// The key of one user, 32 random bytes in a file of mode 0600.
class SealKey {
public:
    /// The key in `path`. Touches no disk.
    explicit SealKey(std::string path) : path_(std::move(path)) {}
    /// /var/lib/kmm-tools/record.key for root, else $XDG_STATE_HOME/kmm-tools/record.key; nullopt where neither that
    /// nor HOME is set. Touches no disk.
    [[nodiscard]] static std::optional<SealKey> of_user();

    /// nullopt if there is none, or others may read or write it. Never writes, never throws.
    [[nodiscard]] std::optional<std::string> read() const;
    /// Makes the key, durably, if there is no file. nullopt if there can be none. Never throws.
    [[nodiscard]] std::optional<std::string> read_or_make() const;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

/// HMAC-SHA256 of `text`, the members of a line before its MAC, as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string line_mac(const std::string& key, std::string_view text);
/// In the same time wherever they differ.
[[nodiscard]] bool is_same_mac(std::string_view one, std::string_view other);

}  // namespace kmm::record
