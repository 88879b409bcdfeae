// SPDX-License-Identifier: Apache-2.0
// What a process cannot do any more. Each try is a child of its own: there is no way back.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>

#include "sys/file_ops.hpp"
#include "sys/sandbox.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

/// The exit code of `body` in a child.
int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

std::string field(const std::string& name) {
    const std::string text = sys::read_file("/proc/self/status");
    const std::size_t at = text.find("\n" + name + ":");
    return at == std::string::npos ? "" : text.substr(at + name.size() + 3, text.find('\n', at + 1) - at - name.size() - 3);
}

bool has(const sys::SandboxReport& report, const std::string& words) {
    return std::any_of(report.in_force.begin(), report.in_force.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

int opened(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    return fd < 0 ? errno : 0;
}

}  // namespace

TEST_CASE("sandbox: programs and new privileges are gone, the network is not yet") {
    CHECK(in_child([] {
              sys::SandboxReport report;
              sys::forbid_programs(report);
              if (!has(report, "no new privileges") || field("NoNewPrivs") != "1") return 1;
              if (!has(report, "no programs")) return report.missing.empty() ? 2 : 0;
              if (field("Seccomp") != "2") return 3;
              char program[] = "/bin/true";
              char* const words[] = {program, nullptr};
              if (::execv(program, words) != -1 || errno != EPERM) return 4;
              const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
              return fd >= 0 ? 0 : 5;
          }) == 0);
}

TEST_CASE("sandbox: no sockets and no writes outside, what was given stays writable") {
    const sys::TempDir directory("kmm-test-");
    const sys::TempDir other("kmm-test-");
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, directory.path() + "/file", "a");
    sys::write_file_atomically(ops, other.path() + "/file", "a");
    CHECK(in_child([&] {
              sys::SandboxReport report;
              sys::forbid_programs(report);
              sys::leave_network(report);
              sys::forbid_writes({directory.path(), directory.path() + "/not/there/yet", "/dev/null"}, report);
              sys::forbid_sockets(report);
              if (has(report, "no sockets") && (::socket(AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)) return 1;
              if (has(report, "no sockets") && (::socket(AF_UNIX, SOCK_STREAM, 0) != -1 || errno != EPERM)) return 2;
              if (opened(directory.path() + "/new", O_WRONLY | O_CREAT) != 0) return 3;
              if (::rename((directory.path() + "/new").c_str(), (directory.path() + "/file").c_str()) != 0) return 4;
              if (opened("/dev/null", O_WRONLY) != 0) return 5;
              if (opened(other.path() + "/file", O_RDONLY) != 0) return 6;
              if (!has(report, "landlock")) return 0;
              if (opened(other.path() + "/file", O_WRONLY) != EACCES) return 7;
              if (opened(other.path() + "/new", O_WRONLY | O_CREAT) != EACCES) return 8;
              if (::unlink((other.path() + "/file").c_str()) != -1) return 9;
              return 0;
          }) == 0);
}

TEST_CASE("sandbox: where it is said to be in force it is, where it is missing a reason is given") {
    CHECK(in_child([] {
              sys::SandboxReport report;
              sys::forbid_programs(report);
              sys::leave_network(report);
              sys::forbid_writes({}, report);
              sys::forbid_sockets(report);
              for (const std::string& line : report.missing) {
                  if (line.find(" (E") == std::string::npos) return 1;
              }
              return report.in_force.size() + report.missing.size() == 5 ? 0 : 2;
          }) == 0);
}
