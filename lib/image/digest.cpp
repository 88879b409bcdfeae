// SPDX-License-Identifier: Apache-2.0
#include "image/digest.hpp"

#include <algorithm>
#include <cstddef>

namespace kmm::image {

std::string_view to_string(DigestAlgorithm algorithm) noexcept {
    return algorithm == DigestAlgorithm::sha512 ? "sha512" : "sha256";
}

std::string Digest::to_string() const { return std::string(image::to_string(algorithm)) + ":" + hex; }

std::string Digest::short_text() const { return std::string(image::to_string(algorithm)) + ":" + hex.substr(0, 12); }

std::optional<Digest> parse_digest(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view name = text.substr(0, colon);
    const std::string_view hex = text.substr(colon + 1);
    Digest digest;
    std::size_t digits = 64;
    if (name == "sha512") {
        digest.algorithm = DigestAlgorithm::sha512;
        digits = 128;
    } else if (name != "sha256") {
        return std::nullopt;
    }
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (hex.size() != digits || !std::all_of(hex.begin(), hex.end(), is_digit)) {
        return std::nullopt;
    }
    digest.hex = std::string(hex);
    return digest;
}

}  // namespace kmm::image
