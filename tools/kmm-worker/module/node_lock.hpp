// SPDX-License-Identifier: Apache-2.0
// One change of a node at a time: a worker whose connection was lost may still be at work when the next one comes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kmod/host/host.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace kmm::tool_worker {

enum class LockKind { shared, exclusive };

/// Held until destroyed or until the process dies.
class NodeLock {
public:
    /// Takes RUN/lock, waiting up to `wait`; nullopt when another worker held it all that time. A shared lock makes and
    /// writes nothing. Where the file is not there, or may not be read, it is given without one: no worker has changed
    /// anything yet, or whoever asks (no root) cannot load either.
    /// On a read-only file system nobody can lock, and an exclusive lock is given without a file, too: that must not
    /// keep a module in the kernel. Errors: io, no_permission for an exclusive lock whose file cannot be opened for
    /// another reason.
    [[nodiscard]] static std::optional<NodeLock>
    take(const kmod::HostPaths& host, LockKind kind, std::chrono::milliseconds wait, sys::Clock& clock);

    /// False for a lock that keeps nobody away.
    [[nodiscard]] bool held() const noexcept { return static_cast<bool>(fd_); }

private:
    explicit NodeLock(sys::Fd fd) noexcept : fd_(std::move(fd)) {}
    sys::Fd fd_;
};

/// How long load and unload wait for another worker on this node, unless --timeout says otherwise.
constexpr std::chrono::milliseconds k_lock_wait{120'000};

/// An exclusive lock, or the Error locked (75) "node-busy". `warnings` hears of one that keeps nobody away.
[[nodiscard]] NodeLock lock_node(const kmod::HostPaths& host, std::chrono::milliseconds wait, sys::Clock& clock,
                                 std::vector<std::string>& warnings);

}  // namespace kmm::tool_worker
