// SPDX-License-Identifier: Apache-2.0
// One change of a node at a time: a worker whose connection was lost may still be at work when the next one comes.
#pragma once

#include <chrono>
#include <optional>

#include "kmod/host.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace kmm::tool_worker {

enum class LockKind { shared, exclusive };

/// Held until destroyed or until the process dies.
class NodeLock {
public:
    /// Takes RUN/lock, waiting up to `wait`; nullopt when another worker held it all that time. Where RUN cannot be made or
    /// opened (no root) a shared lock is given without a file: whoever cannot write there cannot load either.
    /// Errors: io, no_permission for an exclusive lock whose file cannot be opened.
    [[nodiscard]] static std::optional<NodeLock>
    take(const kmod::HostPaths& host, LockKind kind, std::chrono::milliseconds wait, sys::Clock& clock);

private:
    explicit NodeLock(sys::Fd fd) noexcept : fd_(std::move(fd)) {}
    sys::Fd fd_;
};

/// An exclusive lock, or the Error locked (75) "node-busy".
[[nodiscard]] NodeLock lock_node(const kmod::HostPaths& host, std::chrono::milliseconds wait, sys::Clock& clock);

}  // namespace kmm::tool_worker
