// SPDX-License-Identifier: Apache-2.0
#include "sys/sandbox.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"

namespace kmm::sys {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t k_own_calls = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t k_own_calls = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t k_own_calls = 0;  // the numbers of this machine's calls are not known here: no filter
#endif

/// Never needed after the start of the worker. LeakSanitizer looks at its own process with ptrace.
constexpr long k_programs[] = {
    SYS_execve, SYS_execveat, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_kexec_load, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_reboot, SYS_swapon, SYS_swapoff,
    SYS_open_by_handle_at, SYS_add_key, SYS_keyctl, SYS_request_key, SYS_acct, SYS_personality, SYS_move_mount, SYS_open_tree, SYS_fsopen,
#if !defined(__SANITIZE_ADDRESS__)
    SYS_ptrace,
#endif
};
/// io_uring can do what the calls do that are refused.
constexpr long k_sockets[] = {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
                              SYS_unshare, SYS_io_uring_setup, SYS_io_uring_enter};

std::string fault_of(const char* what, int number) { return std::string(what) + ": " + errno_text(number) + " (" + errno_name(number) + ")"; }

sock_filter load_word(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }

/// A filter that answers EPERM to `calls`, and to the calls of other machines (32-bit ones, x32).
bool refuse_calls(std::span<const long> calls) {
    if (k_own_calls == 0) {
        errno = ENOSYS;
        return false;
    }
    constexpr std::uint32_t refusal = SECCOMP_RET_ERRNO | EPERM;
    constexpr std::uint32_t x32 = 0x40000000U;
    std::vector<sock_filter> program{
        load_word(offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k_own_calls, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, refusal),
        load_word(offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refusal),
    };
    for (const long call : calls) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
        program.push_back(BPF_STMT(BPF_RET | BPF_K, refusal));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &whole) == 0;
}

constexpr std::uint64_t k_writes = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                   LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                   LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t k_of_files = LANDLOCK_ACCESS_FS_WRITE_FILE;

Fd open_nearest(std::string path) {
    for (;;) {
        Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
        if (fd || path == "/" || path == ".") {
            return fd;
        }
        path = parent_of(path);
    }
}

/// Errno of the first thing that did not work, 0 if all did.
int restrict_writes(const std::vector<std::string>& writable) {
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = k_writes;
    const Fd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
    if (!rules) {
        return errno;
    }
    for (const std::string& path : writable) {
        const Fd place = open_nearest(path);
        struct stat status {};
        if (!place || ::fstat(place.get(), &status) != 0) {
            return errno;
        }
        landlock_path_beneath_attr beneath{};
        beneath.allowed_access = S_ISDIR(status.st_mode) ? k_writes : k_of_files;
        beneath.parent_fd = place.get();
        if (::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
            return errno;
        }
    }
    return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 ? 0 : errno;
}

void note(SandboxReport& report, const char* done, const char* what, int fault) {
    if (fault == 0) {
        report.in_force.emplace_back(done);
    } else {
        report.missing.push_back(fault_of(what, fault));
    }
}

}  // namespace

void forbid_programs(SandboxReport& report) {
    note(report, "no new privileges", "no_new_privs", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno);
    note(report, "seccomp: no programs, mounts or other processes", "seccomp", refuse_calls(k_programs) ? 0 : errno);
}

void leave_network(SandboxReport& report) {
    note(report, "a network namespace without a network", "unshare", ::unshare(CLONE_NEWNET) == 0 ? 0 : errno);
}

void forbid_sockets(SandboxReport& report) { note(report, "seccomp: no sockets", "seccomp", refuse_calls(k_sockets) ? 0 : errno); }

void forbid_writes(const std::vector<std::string>& writable, SandboxReport& report) {
    note(report, "landlock: writes only where they are needed", "landlock", restrict_writes(writable));
}

}  // namespace kmm::sys
