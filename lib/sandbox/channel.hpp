// SPDX-License-Identifier: Apache-2.0
// Messages between two processes of one program, through a pair of sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/fd.hpp"

namespace kmm::sandbox {

/// Makes two connected sockets. Errors: from_errno.
[[nodiscard]] std::pair<sys::Fd, sys::Fd> connected_sockets();

/// One end of what two processes exchange: messages in order, and descriptors beside them.
class Channel {
public:
    static constexpr std::size_t k_descriptors_max = 32;  ///< with one message

    explicit Channel(sys::Fd socket) : socket_(std::move(socket)) {}

    /// Sends `head` and `body` as one message, with at most k_descriptors_max descriptors. False if the other side is
    /// gone. One thread at a time.
    [[nodiscard]] bool send(std::string_view head, std::string_view body = {}, std::span<const int> descriptors = {});
    /// The next message of at most `most` bytes; false if the other side is gone, or sends more. What `message` holds
    /// before is reused. `on_wait`, which may be empty, is called several times a second while there is none, and may
    /// throw. One thread at a time, also beside one that sends.
    [[nodiscard]] bool receive(std::string& message, std::size_t most, const std::function<void()>& on_wait = {});
    /// The first descriptor that came with the messages so far and was not taken; empty if there is none.
    [[nodiscard]] sys::Fd take_descriptor();
    /// From now on both sides find the other gone. From any thread.
    void shut() noexcept;

private:
    [[nodiscard]] std::size_t read_some(char* to, std::size_t most, const std::function<void()>& on_wait);

    sys::Fd socket_;
    std::unique_ptr<char[]> buffer_;
    std::size_t begin_ = 0, end_ = 0;  ///< of the bytes in `buffer_` that were received and not given
    std::vector<sys::Fd> descriptors_;
};

}  // namespace kmm::sandbox
