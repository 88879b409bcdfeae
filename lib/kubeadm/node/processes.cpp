// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"

namespace kmm::kubeadm {
namespace {

/// A target as "mnt:[4026531841]". Links of /proc are not followed: they lead to no path.
std::string link_target(const std::string& path) {
    std::array<char, 256> buffer{};
    const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
    const int saved = errno;
    if (length < 0) throw from_errno(saved, "cannot read " + path);
    return {buffer.data(), static_cast<std::size_t>(length)};
}

bool is_of_root(const std::string& status) {
    for (const std::string_view line : base::split(status, '\n')) {
        if (line.starts_with("Uid:")) return line.starts_with("Uid:\t0\t");
    }
    return false;
}

}  // namespace

std::vector<std::int64_t> node_processes(const Place& place, const std::string& name) {
    const std::string proc = place.here("/proc");
    std::vector<std::int64_t> found;
    for (const sys::DirectoryEntry& entry : sys::list_directory(proc)) {
        const auto pid = base::parse_number<std::int64_t>(entry.name);
        if (!pid) continue;
        const std::string own = proc + "/" + entry.name;
        try {
            if (base::trim(sys::read_file(own + "/comm", 4096)) != name ||
                !is_of_root(sys::read_file(own + "/status", 1U << 16U)))
                continue;
            if (link_target(own + "/ns/mnt") != link_target(proc + "/1/ns/mnt")) continue;
        } catch (const Error& error) {
            if (error.errno_cause() == ENOENT || error.errno_cause() == ESRCH) continue;  // it has ended
            throw;
        }
        found.push_back(*pid);
    }
    std::sort(found.begin(), found.end());
    return found;
}

SteadyWatch::Verdict SteadyWatch::look(std::optional<std::int64_t> pid, std::chrono::milliseconds now) {
    // One that was not seen at a single look, and is there again, has not ended.
    if (pid && *pid != pid_) {
        pid_ = *pid;
        since_ = now;
        ++starts_;
    }
    if (pid && now - since_ >= steady_) return Verdict::steady;
    const bool may_become_steady = pid && since_ < end_;
    return now >= end_ && !may_become_steady ? Verdict::failed : Verdict::waiting;
}

void require_no_kubeadm(const Place& place) {
    const auto found = node_processes(place, "kubeadm");
    if (found.empty()) return;
    throw Error(Exit::locked, "kubeadm-running",
                fmt::format("kubeadm is running on this node (pid {}), and not as a job of kmm-worker", found.front()))
        .hint("wait for it to end: two runs of kubeadm overwrite each other's files")
        .retryable();
}

}  // namespace kmm::kubeadm
