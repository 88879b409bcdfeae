// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace kmm::record {

/// SHA-256 as 64 lower-case hexadecimal digits. O(n).
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// The same of bytes that come in pieces.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    void add(std::string_view bytes);
    /// As 64 hexadecimal digits. Called once, last.
    [[nodiscard]] std::string hex();

private:
    struct State;
    std::unique_ptr<State> state_;
};
/// HMAC-SHA256 of `bytes` with `key`, likewise.
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

}  // namespace kmm::record
