// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <span>

#include "sandbox/sandbox_parts.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"

namespace kmm::sandbox {

namespace {

constexpr long k_mount_setattr = 442;  ///< Linux 5.12, the same number everywhere
constexpr long k_fchmodat2 = 452;      ///< Linux 6.6

/// What puts code into the kernel, or takes it out.
constexpr long k_modules[] = {SYS_init_module, SYS_finit_module, SYS_delete_module};

/// What changes a file otherwise than by writing; truncate(2), which Landlock sees from Linux 6.2 only.
constexpr long k_modes[] = {
    SYS_truncate, SYS_fchmod,    SYS_fchmodat,  k_fchmodat2,     SYS_fchown,       SYS_fchownat,     SYS_utimensat,
    SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
#if defined(__x86_64__)
    SYS_chmod,    SYS_chown,     SYS_lchown,    SYS_utime,       SYS_utimes,       SYS_futimesat,
#endif
};

/// Never needed after the start of the worker. LeakSanitizer looks at its own process with ptrace.
constexpr long k_programs[] = {
    SYS_execve,
    SYS_execveat,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_open_by_handle_at,
    SYS_add_key,
    SYS_keyctl,
    SYS_request_key,
    SYS_acct,
    SYS_personality,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    k_mount_setattr,
    SYS_kexec_file_load,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_quotactl,
    SYS_lookup_dcookie,
    SYS_name_to_handle_at,
    SYS_vhangup,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_mknodat,
    SYS_fanotify_init,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
    SYS_mknod,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_query_module,
    SYS_nfsservctl,
    SYS__sysctl,
#endif
#if !defined(__SANITIZE_ADDRESS__)
    SYS_ptrace,
#endif
};
/// io_uring can do what the calls do that are refused.
constexpr long k_sockets[] = {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
                              SYS_unshare, SYS_io_uring_setup, SYS_io_uring_enter};

/// Commands of ioctl that type into the terminal of whoever has started us.
constexpr std::uint32_t k_terminal_commands[] = {TIOCSTI, TIOCLINUX};

/// Refuses `calls` and such commands. Errno, or 0.
int refuse_calls(std::span<const long> calls) {
    CallFilter filter;
    for (const long call : calls) filter.refuse(call, EPERM);
    filter.refuse_values(SYS_ioctl, 1, k_terminal_commands);
    return filter.install(CallFilter::Others::allowed);
}

constexpr std::uint64_t k_truncate = 1ULL << 14U;   ///< ABI 3
constexpr std::uint64_t k_ioctl_dev = 1ULL << 15U;  ///< ABI 5
constexpr std::uint64_t k_reads =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t k_devices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO;

/// What but reading the running kernel's Landlock can refuse; 0 with errno if it cannot do what is needed.
std::uint64_t known_rights() {
    const long version = landlock_version();
    if (version < 0) {
        return 0;
    }
    if (version < 2) {  // without the second, no file may be renamed from one directory to another at all
        errno = ENOSYS;
        return 0;
    }
    return landlock_file_rights(version) & ~k_reads;
}

sys::Fd open_nearest(std::string path) {
    for (;;) {
        sys::Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
        if (fd || path == "/" || path == ".") {
            return fd;
        }
        path = sys::parent_of(path);
    }
}

int add_rule(const sys::Fd& rules, const std::string& path, std::uint64_t of_directories, std::uint64_t of_files) {
    const sys::Fd place = open_nearest(path);
    struct stat status {};
    if (!place || ::fstat(place.get(), &status) != 0) {
        return errno;
    }
    landlock_path_beneath_attr beneath{};
    beneath.allowed_access = S_ISDIR(status.st_mode) ? of_directories : of_files;
    beneath.parent_fd = place.get();
    return ::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0 ? 0 : errno;
}

/// Errno of the first thing that did not work, 0 if all did.
int restrict_writes(const std::vector<std::string>& writable, const std::string& emptied) {
    const std::uint64_t known = known_rights();
    if (known == 0) {
        return errno;
    }
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = known;
    const sys::Fd rules(
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
    if (!rules) {
        return errno;
    }
    const std::uint64_t of_directories = known & ~(k_devices | k_ioctl_dev);
    const std::uint64_t of_files = known & (LANDLOCK_ACCESS_FS_WRITE_FILE | k_truncate);
    for (const std::string& path : writable) {
        if (const int fault = add_rule(rules, path, of_directories, of_files); fault != 0) {
            return fault;
        }
    }
    if (const int fault = emptied.empty()
                              ? 0
                              : add_rule(rules, emptied, LANDLOCK_ACCESS_FS_REMOVE_DIR, LANDLOCK_ACCESS_FS_WRITE_FILE);
        fault != 0) {
        return fault;
    }
    return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 ? 0 : errno;
}

/// Gives up every capability but `kept`. Errno, or 0.
int keep_capabilities(std::uint64_t kept) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    if (::syscall(SYS_capget, &header, data.data()) != 0) {
        return errno;
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
        const auto mask = static_cast<std::uint32_t>(kept >> (32U * i));
        data[i].effective &= mask;
        data[i].permitted &= mask;
        data[i].inheritable = 0;
    }
    return ::syscall(SYS_capset, &header, data.data()) == 0 ? 0 : errno;
}

constexpr std::uint64_t bit(int capability) { return 1ULL << static_cast<unsigned>(capability); }
constexpr std::uint64_t k_file_capabilities = bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_FOWNER);

}  // namespace

void forbid_programs(SandboxReport& report, Keeps keeps) {
    note_part(report, "no new privileges", "no_new_privs", ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno);
    std::vector<long> calls(std::begin(k_programs), std::end(k_programs));
    if (keeps == Keeps::modules) {
        note_part(report, "seccomp: no programs, mounts or other processes", "seccomp", refuse_calls(calls));
        return;
    }
    const std::uint64_t more = keeps == Keeps::namespaces ? bit(CAP_SYS_ADMIN) | bit(CAP_SYSLOG) : 0;
    note_part(report, "no capabilities but for files", "capset", keep_capabilities(k_file_capabilities | more));
    calls.insert(calls.end(), std::begin(k_modules), std::end(k_modules));
    note_part(report, "seccomp: no programs, modules, mounts or other processes", "seccomp", refuse_calls(calls));
}

void leave_network(SandboxReport& report) {
    note_part(report, "a network namespace without a network", "unshare", ::unshare(CLONE_NEWNET) == 0 ? 0 : errno);
}

void forbid_sockets(SandboxReport& report, Modes modes) {
    std::vector<long> calls(std::begin(k_sockets), std::end(k_sockets));
    if (modes == Modes::fixed) {
        calls.insert(calls.end(), std::begin(k_modes), std::end(k_modes));
    }
    note_part(report,
              modes == Modes::fixed ? "seccomp: no sockets, no other modes or owners of files" : "seccomp: no sockets",
              "seccomp", refuse_calls(calls));
}

void forbid_writes(const std::vector<std::string>& writable, SandboxReport& report, const std::string& emptied) {
    static_cast<void>(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));  // without it Landlock is root's alone
    note_part(report, "landlock: writes only where they are needed", "landlock", restrict_writes(writable, emptied));
}

void drop_capabilities(SandboxReport& report, Modes modes) {
    const bool writes = modes == Modes::changeable;
    note_part(report, writes ? "no capabilities but for files and the kernel's log" : "no capabilities but to read",
              "capset",
              keep_capabilities((writes ? k_file_capabilities : bit(CAP_DAC_READ_SEARCH)) | bit(CAP_SYSLOG)));
}

}  // namespace kmm::sandbox
