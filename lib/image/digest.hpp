// SPDX-License-Identifier: Apache-2.0
// Content digests as the OCI image specification writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kmm::image {

enum class DigestAlgorithm { sha256, sha512 };

/// "sha256" or "sha512".
[[nodiscard]] std::string_view to_string(DigestAlgorithm algorithm) noexcept;

/// A digest that passed the strict grammar: known algorithm, lower-case hexadecimal of the right length. Only such
/// values ever become part of a URL or a file name.
struct Digest {
    DigestAlgorithm algorithm = DigestAlgorithm::sha256;
    std::string hex;

    /// "sha256:…".
    [[nodiscard]] std::string to_string() const;
    /// "sha256:" and the first twelve digits, for tables and messages.
    [[nodiscard]] std::string short_text() const;
    friend bool operator==(const Digest&, const Digest&) = default;
    friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// nullopt for anything but `sha256:` and 64 or `sha512:` and 128 lower-case hexadecimal digits (image-spec descriptor,
/// "Registered algorithms").
[[nodiscard]] std::optional<Digest> parse_digest(std::string_view text);

}  // namespace kmm::image
