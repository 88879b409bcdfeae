// SPDX-License-Identifier: Apache-2.0
// Where the tokens of a JSON text begin: simdjson's first stage. Internal to lib/value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::value {

enum class IndexState { ok, open_string, not_utf8, bad };

/// Offsets of brackets, commas, colons, opening quotes and the first bytes of other scalars. Valid UTF-8, closed
/// strings and the absence of control characters in them are checked, nothing else.
class JsonIndex {
public:
    /// Bytes behind the text that may be read: they must exist.
    static constexpr std::size_t k_padding = 64;

    JsonIndex();
    ~JsonIndex();
    JsonIndex(const JsonIndex&) = delete;
    JsonIndex& operator=(const JsonIndex&) = delete;

    /// Finds the tokens of `text`. `open_string`: the text ends within a string. The text must stay where it is.
    [[nodiscard]] IndexState index(std::string_view text);
    /// Offset of token `at`; the text's size for at == size().
    [[nodiscard]] std::uint32_t operator[](std::size_t at) const noexcept { return tokens_[at]; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// The text of the string that opens at `offset`, in a buffer that the next call uses again; nullopt for a bad
    /// escape.
    [[nodiscard]] std::optional<std::string_view> unescape(std::size_t offset);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    const std::uint32_t* tokens_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace kmm::value
