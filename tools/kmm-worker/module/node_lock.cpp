// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/module/node_lock.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_worker {

namespace {

/// Something else stands where this tool keeps what it knows of this node. Other errors stay as they are.
Error in_the_way(const Error& error, const std::string& directory) {
    const int number = error.errno_cause().value_or(0);
    if (number != EEXIST && number != ENOTDIR && number != EISDIR && number != ELOOP) return error;
    Error told(Exit::io, error.code(), error.message());
    return std::move(told.cause_errno(number))
        .hint(fmt::format("kmm-worker notes in the directory {} what it has loaded: move away what is in its place",
                          base::escape(directory)));
}

}  // namespace

std::optional<NodeLock>
NodeLock::take(const kmod::HostPaths& host, LockKind kind, std::chrono::milliseconds wait, sys::Clock& clock) {
    const std::string path = host.run + "/lock";
    if (kind == LockKind::exclusive) {
        try {
            sys::make_directories(host.run, 0700);
        } catch (const Error& error) {
            if (error.errno_cause() != EROFS) throw in_the_way(error, host.run);
            return NodeLock(sys::Fd());
        }
    }
    // Who only looks may have the directory read-only, as in a worker Pod. Without a file nobody has changed anything.
    const int access = kind == LockKind::exclusive ? O_RDWR | O_CREAT : O_RDONLY;
    sys::Fd fd(::open(path.c_str(), access | O_CLOEXEC | O_NOFOLLOW, 0600));
    const int open_errno = errno;
    if (!fd) {
        if (kind == LockKind::shared || open_errno == EROFS) return NodeLock(sys::Fd());
        throw in_the_way(from_errno(open_errno, "cannot open " + path), host.run);
    }
    struct flock range {};
    range.l_type = kind == LockKind::exclusive ? F_WRLCK : F_RDLCK;
    range.l_whence = SEEK_SET;
    const std::chrono::milliseconds end = clock.monotonic() + wait;
    for (;;) {
        if (::fcntl(fd.get(), F_OFD_SETLK, &range) == 0) return NodeLock(std::move(fd));
        const int lock_errno = errno;
        if (lock_errno != EAGAIN && lock_errno != EACCES && lock_errno != EINTR)
            throw from_errno(lock_errno, "cannot lock " + path);
        if (clock.monotonic() >= end || !clock.sleep_for(std::chrono::milliseconds(50))) return std::nullopt;
    }
}

NodeLock lock_node(const kmod::HostPaths& host, std::chrono::milliseconds wait, sys::Clock& clock,
                   std::vector<std::string>& warnings) {
    if (auto lock = NodeLock::take(host, LockKind::exclusive, wait, clock)) {
        if (!lock->held())
            warnings.push_back(fmt::format(
                "no-lock: {} is on a read-only file system: another kmm-worker may change modules at the same time",
                base::escape(host.run)));
        return std::move(*lock);
    }
    if (sys::interrupt_requested()) {
        throw Error(Exit::interrupted, "interrupted",
                    "interrupted while another kmm-worker was waited for, which is changing modules of this node; "
                    "nothing was changed");
    }
    throw Error(
        Exit::locked, "node-busy",
        fmt::format("another kmm-worker has been changing modules of this node for {}", base::format_duration(wait)))
        .hint("wait for it to end, then try again; kmm-worker status shows what is loaded")
        .retryable();
}

}  // namespace kmm::tool_worker
