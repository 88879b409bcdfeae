// SPDX-License-Identifier: Apache-2.0
#include "sandbox/channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "base/last_errno.hpp"

namespace kmm::sandbox {

namespace {

constexpr std::size_t k_channel_buffer = 16U << 10U;   ///< longer messages are received where they end up
constexpr std::size_t k_message_step = 1U << 20U;      ///< memory for a message grows as its bytes come
constexpr int k_channel_wait_ms = 200;
constexpr std::size_t k_control_bytes = CMSG_SPACE(sizeof(int) * Channel::k_descriptors_max);

void attach(msghdr& header, std::span<char> control, std::span<const int> descriptors) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
}

void detach(msghdr& header, std::vector<sys::Fd>& descriptors) {
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(each) + i * sizeof descriptor, sizeof descriptor);
            descriptors.emplace_back(descriptor);
        }
    }
}

}  // namespace

std::pair<sys::Fd, sys::Fd> connected_sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw LastErrno().error("making a socket");
    return {sys::Fd(ends[0]), sys::Fd(ends[1])};
}

bool Channel::send(std::string_view head, std::string_view body, std::span<const int> descriptors) {
    std::uint64_t size = head.size() + body.size();
    const auto part = [](std::string_view bytes) { return iovec{const_cast<char*>(bytes.data()), bytes.size()}; };
    std::array<iovec, 3> parts{iovec{&size, sizeof size}, part(head), part(body)};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    alignas(cmsghdr) std::array<char, k_control_bytes> control{};
    if (descriptors.size() > k_descriptors_max) throw bug("too many descriptors for one message");
    if (!descriptors.empty()) attach(header, control, descriptors);
    std::size_t left = sizeof size + size;
    while (left > 0) {
        const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        left -= static_cast<std::size_t>(sent);
        header.msg_control = nullptr;
        header.msg_controllen = 0;
        auto done = static_cast<std::size_t>(sent);
        for (iovec& each : parts) {
            const std::size_t of_this = std::min(done, each.iov_len);
            each.iov_base = static_cast<char*>(each.iov_base) + of_this;
            each.iov_len -= of_this;
            done -= of_this;
        }
    }
    return true;
}

/// Receives what is there, at most `most` bytes; 0 if the other side is gone.
std::size_t Channel::read_some(char* to, std::size_t most, const std::function<void()>& on_wait) {
    iovec part{to, most};
    alignas(cmsghdr) std::array<char, k_control_bytes> control{};
    while (true) {
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | (on_wait ? MSG_DONTWAIT : 0));
        if (got > 0) {
            detach(header, descriptors_);
            return static_cast<std::size_t>(got);
        }
        if (got == 0) return 0;
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return 0;
        pollfd socket{socket_.get(), POLLIN, 0};
        if (::poll(&socket, 1, k_channel_wait_ms) <= 0) on_wait();
    }
}

bool Channel::receive(std::string& message, std::size_t most, const std::function<void()>& on_wait) {
    std::uint64_t size = 0;
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(k_channel_buffer);
    while (end_ - begin_ < sizeof size) {
        std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        const std::size_t got = read_some(buffer_.get() + end_, k_channel_buffer - end_, on_wait);
        if (got == 0) return false;
        end_ += got;
    }
    std::memcpy(&size, buffer_.get() + begin_, sizeof size);
    begin_ += sizeof size;
    if (size > most) return false;
    std::size_t have = std::min<std::uint64_t>(end_ - begin_, size);
    message.resize(std::min<std::uint64_t>(size, k_message_step));
    std::memcpy(message.data(), buffer_.get() + begin_, have);
    begin_ += have;
    while (have < size) {
        if (have == message.size()) message.resize(std::min<std::uint64_t>(size, 2 * have));
        const std::size_t got = read_some(message.data() + have, message.size() - have, on_wait);
        if (got == 0) return false;
        have += got;
    }
    return true;
}

sys::Fd Channel::take_descriptor() {
    if (descriptors_.empty()) return {};
    sys::Fd first = std::move(descriptors_.front());
    descriptors_.erase(descriptors_.begin());
    return first;
}

void Channel::shut() noexcept { static_cast<void>(::shutdown(socket_.get(), SHUT_RDWR)); }

}  // namespace kmm::sandbox
