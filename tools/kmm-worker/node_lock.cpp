// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/node_lock.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"

namespace kmm::tool_worker {

std::optional<NodeLock>
NodeLock::take(const kmod::HostPaths& host, LockKind kind, std::chrono::milliseconds wait, sys::Clock& clock) {
    const std::string path = host.run + "/lock";
    if (kind == LockKind::exclusive) sys::make_directories(host.run, 0700);
    sys::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    const int open_errno = errno;
    if (!fd) {
        if (kind == LockKind::shared) return NodeLock(sys::Fd());
        throw from_errno(open_errno, "cannot open " + path);
    }
    struct flock range {};
    range.l_type = kind == LockKind::exclusive ? F_WRLCK : F_RDLCK;
    range.l_whence = SEEK_SET;
    const std::chrono::milliseconds end = clock.monotonic() + wait;
    for (;;) {
        if (::fcntl(fd.get(), F_OFD_SETLK, &range) == 0) return NodeLock(std::move(fd));
        const int lock_errno = errno;
        if (lock_errno != EAGAIN && lock_errno != EACCES && lock_errno != EINTR) throw from_errno(lock_errno, "cannot lock " + path);
        if (clock.monotonic() >= end || !clock.sleep_for(std::chrono::milliseconds(50))) return std::nullopt;
    }
}

NodeLock lock_node(const kmod::HostPaths& host, std::chrono::milliseconds wait, sys::Clock& clock) {
    if (auto lock = NodeLock::take(host, LockKind::exclusive, wait, clock)) return std::move(*lock);
    throw Error(Exit::locked, "node-busy", fmt::format("another kmm-worker has been changing modules of this node for {}", base::format_duration(wait)))
        .hint("wait for it to end, then try again; kmm-worker status tells what is live")
        .retryable();
}

}  // namespace kmm::tool_worker
