// SPDX-License-Identifier: Apache-2.0
#include "sys/enter.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace kmm::sys {
namespace {

constexpr const char* k_service_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin";

[[noreturn]] void refuse_to_enter(const std::string& where, int number) {
    if (number != EPERM && number != EACCES) throw from_errno(number, "cannot enter " + where);
    throw Error(Exit::no_permission, "cannot-enter", fmt::format("cannot enter {}: {}", where, errno_text(number)))
        .hint("run it as root of the node, or in a Pod that has the rights for it");
}

}  // namespace

void enter_root(const std::string& directory) {
    const int failed = ::chroot(directory.c_str()) != 0 || ::chdir("/") != 0 ? errno : 0;
    if (failed != 0) refuse_to_enter(directory, failed);
}

void enter_namespaces(const std::string& directory) {
    // The mounts come last: before them, everything is still to be found where it was.
    constexpr std::pair<const char*, int> k_namespaces[] = {{"cgroup", CLONE_NEWCGROUP},
                                                            {"ipc", CLONE_NEWIPC},
                                                            {"uts", CLONE_NEWUTS},
                                                            {"net", CLONE_NEWNET},
                                                            {"mnt", CLONE_NEWNS}};
    std::vector<std::pair<Fd, int>> opened;
    for (const auto& [name, kind] : k_namespaces) {
        const std::string file = directory + "/" + name;
        Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
        const int saved = errno;
        if (!fd) refuse_to_enter(file, saved);
        opened.emplace_back(std::move(fd), kind);
    }
    for (const auto& [fd, kind] : opened) {
        const int failed = ::setns(fd.get(), kind) != 0 ? errno : 0;
        if (failed != 0) refuse_to_enter(directory, failed);
    }
    const int failed = ::chdir("/") != 0 ? errno : 0;
    if (failed != 0) refuse_to_enter(directory, failed);
}

void take_service_environment(const char* kept) {
    const char* found = std::getenv(kept);
    const std::string value = found == nullptr ? "" : found;
    ::clearenv();
    ::setenv("PATH", k_service_path, 1);
    ::setenv("HOME", "/root", 1);
    if (found != nullptr) ::setenv(kept, value.c_str(), 1);
}

}  // namespace kmm::sys
