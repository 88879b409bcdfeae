// SPDX-License-Identifier: Apache-2.0
// What a process cannot do any more. Each try is a child of its own: there is no way back.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>

#include "sandbox/sandbox.hpp"
#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

#if defined(__x86_64__)
constexpr long k_ports = SYS_iopl;
#else
constexpr long k_ports = -1;  // no I/O ports
#endif

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
    return at == std::string::npos ? ""
                                   : text.substr(at + name.size() + 3, text.find('\n', at + 1) - at - name.size() - 3);
}

bool has(const sandbox::SandboxReport& report, const std::string& words) {
    return std::any_of(report.in_force.begin(), report.in_force.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

int opened(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    return fd < 0 ? errno : 0;
}

}  // namespace

TEST_CASE("sandbox: programs and new privileges are gone, the network is not yet") {
    CHECK(in_child([] {
              sandbox::SandboxReport report;
              sandbox::forbid_programs(report);
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
              sandbox::SandboxReport report;
              sandbox::forbid_programs(report);
              sandbox::leave_network(report);
              sandbox::forbid_writes({directory.path(), directory.path() + "/not/there/yet", "/dev/null"}, report);
              sandbox::forbid_sockets(report);
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

TEST_CASE("sandbox: each call that is said to be refused is refused, harmless arguments or not") {
    const sys::TempDir scratch("kmm-test-");
    const sys::TempDir other("kmm-test-");
    const std::string victim = other.path() + "/file";
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, victim, "a");
    CHECK(in_child([&] {
              sandbox::SandboxReport report;
              sandbox::forbid_programs(report, sandbox::Keeps::namespaces);
              sandbox::forbid_writes({scratch.path()}, report);
              sandbox::drop_capabilities(report);
              sandbox::forbid_sockets(report, sandbox::Modes::fixed);
              if (!has(report, "modules")) return 0;  // no seccomp here
              const auto refused = [](long result) { return result == -1 && errno == EPERM; };
              if (!refused(::syscall(SYS_init_module, nullptr, 0, ""))) return 1;
              if (!refused(::syscall(SYS_finit_module, -1, "", 0))) return 2;
              if (!refused(::syscall(SYS_delete_module, "", 0))) return 3;
              if (!refused(::syscall(SYS_kexec_file_load, -1, -1, 0, nullptr, 0))) return 4;
              if (!refused(::syscall(SYS_pidfd_getfd, -1, 0, 0))) return 5;
              if (!refused(::syscall(442, -1, "", 0, nullptr, 0))) return 6;
              if (!refused(::mknod((scratch.path() + "/device").c_str(), S_IFCHR | 0600, 0x103))) return 7;
              if (!refused(::chmod(victim.c_str(), 04755))) return 8;
              if (!refused(::fchmodat(AT_FDCWD, victim.c_str(), 0777, 0))) return 9;
              if (!refused(::chown(victim.c_str(), 0, 0))) return 10;
              if (!refused(::ioctl(0, TIOCSTI, "x"))) return 11;
              if (k_ports >= 0 && !refused(::syscall(k_ports, 0))) return 12;
              if (field("CapEff").find_first_not_of("0123456789abcdef") != std::string::npos) return 13;
              constexpr unsigned long long dangerous =
                  1ULL << 16U | 1ULL << 17U | 1ULL << 21U | 1ULL << 27U;  // module, rawio, admin, mknod
              if ((std::stoull(field("CapPrm"), nullptr, 16) & dangerous) != 0) return 14;
              if (has(report, "landlock") && ::truncate(victim.c_str(), 0) == 0) return 15;
              return 0;
          }) == 0);
}

TEST_CASE("sandbox: what loads modules keeps the calls for it") {
    CHECK(in_child([] {
              const auto answer = [] { return ::syscall(SYS_finit_module, -1, "", 0) == -1 ? errno : 0; };
              const int before = answer();
              sandbox::SandboxReport report;
              sandbox::forbid_programs(report, sandbox::Keeps::modules);
              return answer() == before ? 0 : 1;
          }) == 0);
}

TEST_CASE("sandbox: where it is said to be in force it is, where it is missing a reason is given") {
    CHECK(in_child([] {
              sandbox::SandboxReport report;
              sandbox::forbid_programs(report);
              sandbox::leave_network(report);
              sandbox::forbid_writes({}, report);
              sandbox::forbid_sockets(report);
              for (const std::string& line : report.missing) {
                  if (line.find(" (E") == std::string::npos) return 1;
              }
              return report.in_force.size() + report.missing.size() == 6 ? 0 : 2;
          }) == 0);
}
