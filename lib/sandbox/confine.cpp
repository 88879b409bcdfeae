// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <initializer_list>

#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_parts.hpp"
#include "sys/fd.hpp"

namespace kmm::sandbox {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool k_instrumented = true;  // needs more memory, and some calls of its own
#else
constexpr bool k_instrumented = false;
#endif

/// Memory, locks, signals of its own, and what is open. No call here takes a path or makes a descriptor but one that
/// was sent.
constexpr long k_allowed[] = {
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_ppoll,
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_membarrier,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_gettid,
    SYS_getpid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_gettimeofday,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#if defined(__x86_64__)
    SYS_poll,
    SYS_time,
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SYS_prctl,
    SYS_readlinkat,
    SYS_newfstatat,
    SYS_nanosleep,
#if defined(__x86_64__)
    SYS_readlink,
#endif
#endif
};

/// What new threads are made with, and nothing that makes a process or a namespace.
constexpr std::uint32_t k_thread_flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
constexpr std::uint32_t k_other_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                        CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_VFORK;

int allow_computing() {
    CallFilter filter;
    for (const long call : k_allowed) filter.allow(call);
    filter.allow_bits(SYS_mmap, 2, 0, PROT_EXEC);
    filter.allow_bits(SYS_mprotect, 2, 0, PROT_EXEC);
    filter.allow_bits(SYS_clone, 0, k_thread_flags, k_other_flags);
    filter.refuse(SYS_clone3, ENOSYS);  // its flags cannot be seen: the C library takes clone(2) then
    filter.allow_value(SYS_tgkill, 0, static_cast<std::uint32_t>(::getpid()));
    return filter.install(CallFilter::Others::refused);
}

/// As the kernel has it; headers may be older. Only as much is handed over as the kernel's Landlock knows.
struct RulesetAttributes {
    std::uint64_t files, ports, scopes;
};

/// Errno, or 0: every right that the running kernel's Landlock knows is refused everywhere.
int refuse_files() {
    const long version = landlock_version();
    if (version < 0) return errno;
    // And all of ports: bind and connect; of scopes: abstract sockets and signals.
    const RulesetAttributes attributes{landlock_file_rights(version), 3, 3};
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    const sys::Fd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0)));
    if (!rules) return errno;
    return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 ? 0 : errno;
}

/// Gives up every capability but those of `kept`, a set of bits. Errno, or 0.
int keep_only_capabilities(std::uint32_t kept) {
    static_cast<void>(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    if (::syscall(SYS_capget, &header, sets.data()) != 0) return errno;
    const std::uint32_t left = sets[0].permitted & kept;
    sets = {};
    sets[0].permitted = sets[0].effective = left;
    return ::syscall(SYS_capset, &header, sets.data()) == 0 ? 0 : errno;
}

/// Starting a process that confines itself, and ending it although it is another user's, needs these.
constexpr std::uint32_t k_starter_capabilities =
    (1U << CAP_SETUID) | (1U << CAP_SETGID) | (1U << CAP_SYS_CHROOT) | (1U << CAP_KILL);

/// The number of a user that nobody else has: of the range that no distribution hands out, by the number of the
/// process.
constexpr std::uint32_t k_first_user = 0x70000000U;
constexpr std::uint32_t k_nobody = 65534;

int become_own_user() {
    if (::setgroups(0, nullptr) != 0) return errno;
    const std::uint32_t own = k_first_user + (static_cast<std::uint32_t>(::getpid()) & 0x3fffffU);
    for (const std::uint32_t id : {own, k_nobody}) {  // a user namespace may have few numbers
        if (::setresgid(id, id, id) == 0 && ::setresuid(id, id, id) == 0) return 0;
    }
    return errno;
}

int leave_files() { return ::chroot("/proc/self/fdinfo") == 0 && ::chdir("/") == 0 ? 0 : errno; }

void set_limit(__rlimit_resource_t resource, rlim_t most) {
    const rlimit limit{most, most};
    static_cast<void>(::setrlimit(resource, &limit));
}

void limit_resources() {
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, 0);
    set_limit(RLIMIT_NOFILE, 128);
    if (!k_instrumented) set_limit(RLIMIT_AS, std::uint64_t{4} << 30U);
}

}  // namespace

bool is_instrumented() noexcept { return k_instrumented; }

void limit_starter(SandboxReport& report) {
    note_part(report, "a network namespace without a network", "unshare",
        ::unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0 ? 0 : errno);
    static_cast<void>(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    static_cast<void>(keep_only_capabilities(k_starter_capabilities));  // what is left, confine() gives up
}

void confine(SandboxReport& report) {
    limit_resources();
    note_part(report, "an empty root directory", "chroot", leave_files());
    note_part(report, "a user of its own", "setresuid", become_own_user());
    note_part(report, "not dumpable", "dumpable", ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno);
    note_part(report, "no new privileges", "no_new_privs", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno);
    note_part(report, "landlock: no files", "landlock", refuse_files());
    note_part(report, "no capabilities", "capset", keep_only_capabilities(0));
    static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));  // another user's is forgotten
    note_part(report, "seccomp: computing only", "seccomp", allow_computing());
}

}  // namespace kmm::sandbox
