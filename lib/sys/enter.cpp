// SPDX-License-Identifier: Apache-2.0
#include "sys/enter.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"
#include "sys/trust.hpp"

namespace kmm::sys {
namespace {

constexpr const char* k_service_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin";

[[noreturn]] void refuse_to_enter(const std::string& where, int number) {
    if (number != EPERM && number != EACCES) throw from_errno(number, "cannot enter " + where);
    throw Error(Exit::no_permission, "cannot-enter", fmt::format("cannot enter {}: {}", where, errno_text(number)))
        .hint("run it as root of the node, or in a Pod that has the rights for it");
}

/// Why others may put a program into `directory`, or make it. A sticky directory keeps their files from being replaced,
/// not from being found.
std::optional<std::string> directory_fault(std::string directory) {
    if (auto fault = trust_fault(directory)) return fault;
    struct stat facts {};
    while (::stat(directory.c_str(), &facts) != 0 && directory != "/") directory = parent_of(directory);
    if ((facts.st_mode & S_ISVTX) == 0 || (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return std::nullopt;
    return "others may write " + directory;
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

std::vector<std::string> take_trusted_path(const std::string& root) {
    std::vector<std::string> left_out;
    const char* variable = std::getenv("PATH");
    if (variable == nullptr || ::geteuid() != 0) return left_out;
    std::vector<std::string> kept;
    std::error_code failed;
    const std::string here = std::filesystem::current_path(failed).native();
    for (const std::string_view piece : base::split(variable, ':')) {
        const std::string directory = piece.starts_with('/') ? std::string(piece)
                                      : piece.empty()        ? here
                                                             : here + "/" + std::string(piece);
        auto fault = directory_fault(directory);
        if (!fault && !root.empty()) fault = directory_fault(root + directory);
        if (fault) left_out.push_back(directory + ": " + *fault);
        else kept.push_back(directory);
    }
    ::setenv("PATH", kept.empty() ? k_service_path : base::join(kept, ":").c_str(), 1);
    return left_out;
}

}  // namespace kmm::sys
