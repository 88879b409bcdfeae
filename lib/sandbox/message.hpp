// SPDX-License-Identifier: Apache-2.0
// The form in which two processes of one program exchange values. Whoever reads it takes the other side for hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kmm::sandbox {

/// Appends values to a message.
class MessageWriter {
public:
    void number(std::uint64_t value);
    void flag(bool value) { number(value ? 1 : 0); }
    void text(std::string_view value);
    /// Everything that a caller shows of an error.
    void error(const Error& error);
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
    void clear() { bytes_.clear(); }
    /// Takes back what was appended after the first `size` bytes.
    void cut(std::size_t size) { bytes_.resize(size); }

private:
    std::string bytes_;
};

/// Takes values out of a message in the same order. Errors of all its functions: unsafe (16) "parser-crashed" where the
/// message holds something else than what is read.
class MessageReader {
public:
    /// `bytes` must outlive the reader.
    explicit MessageReader(std::string_view bytes) : rest_(bytes) {}
    /// At most `most`.
    [[nodiscard]] std::uint64_t number(std::uint64_t most = ~std::uint64_t{0});
    [[nodiscard]] bool flag() { return number(1) == 1; }
    [[nodiscard]] std::string text(std::size_t most = ~std::size_t{0}) { return std::string(view(most)); }
    /// As text(); valid as long as the message is.
    [[nodiscard]] std::string_view view(std::size_t most = ~std::size_t{0});
    /// The length of a list whose items take at least `item_bytes` each, so that no length makes the reader reserve
    /// memory for nothing.
    [[nodiscard]] std::size_t count(std::size_t item_bytes);
    /// An error as MessageWriter::error wrote it. Control characters in its texts become question marks; a code that
    /// has not the form of one, and an exit code that is not in the table, are those of a crash.
    [[nodiscard]] Error error();
    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

private:
    std::string_view rest_;
};

/// A process that parses foreign bytes says something that it cannot say: unsafe (16) "parser-crashed".
[[nodiscard]] Error bad_message();

}  // namespace kmm::sandbox
