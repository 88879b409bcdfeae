// SPDX-License-Identifier: Apache-2.0
// The bytes of a document: read in pieces, and once more as a whole if that turns out to be needed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sys/fd.hpp"

namespace kmm::cluster {

/// A file, or standard input as "-"; what is packed by gzip is unpacked. Of what cannot be read twice, such as a pipe,
/// the bytes are kept as long as they are within `k_whole_max`.
class TextSource {
public:
    static constexpr std::size_t k_whole_max = std::size_t{256} << 20U;

    /// Opens it. Errors: from_errno.
    explicit TextSource(const std::string& name);

    /// The first bytes, without moving on. Errors: from_errno; data "unreadable-file" for a gzip stream that is not
    /// whole or too large.
    [[nodiscard]] std::string_view front();
    /// As value::ReadMore. Errors: from_errno.
    std::size_t read(char* into, std::size_t size);
    /// How long a text is that can be read again from its beginning; nullopt for others.
    [[nodiscard]] std::optional<std::size_t> size() const;
    /// Goes back to the first byte of such a text. Errors: from_errno.
    void rewind();
    /// All bytes from the first one; nullopt if they are more than `k_whole_max`. Errors: from_errno.
    [[nodiscard]] std::optional<std::string> whole();

private:
    std::size_t read_fd(char* into, std::size_t size);
    /// Goes on with what is packed in the source, of which `front_` is the beginning.
    void unpack();

    std::string name_;
    sys::Fd opened_;
    int fd_;
    bool seekable_ = false;
    std::string front_;      ///< read ahead by front()
    std::size_t front_at_ = 0;
    std::string kept_;
    bool keeps_all_ = true;
};

}  // namespace kmm::cluster
