// SPDX-License-Identifier: Apache-2.0
// What a process that parses foreign bytes can still do, tried from inside, and what becomes of one that dies.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/confined.hpp"
#include "sandbox/message.hpp"
#include "sys/file_ops.hpp"
#include "sys/shared_ring.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

constexpr std::uint64_t k_number = 7;

/// The calls that were not refused with EPERM, by name. Arguments are harmless.
std::string possible_calls() {
    if (::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0) return {};  // no seccomp here
    std::map<std::string, std::function<long()>> calls{
        {"open", [] { return ::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); }},
        {"open /proc/self/mem", [] { return ::syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR); }},
        {"stat", [] { return ::syscall(SYS_newfstatat, AT_FDCWD, "/", nullptr, 0); }},
        {"execve", [] { return ::syscall(SYS_execve, "/bin/true", nullptr, nullptr); }},
        {"fork", [] { return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr); }},
        {"new namespace",
         [] {
             return ::syscall(SYS_clone,
                              CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUSER, nullptr,
                              nullptr, nullptr, nullptr);
         }},
        {"unshare", [] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }},
        {"socket", [] { return ::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0); }},
        {"socketpair", [] { return ::syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, nullptr); }},
        {"connect", [] { return ::syscall(SYS_connect, 3, nullptr, 0); }},
        {"bind", [] { return ::syscall(SYS_bind, 3, nullptr, 0); }},
        {"io_uring_setup", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
        {"bpf", [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }},
        {"ptrace", [] { return ::syscall(SYS_ptrace, 0, 0, nullptr, nullptr); }},
        {"process_vm_readv", [] { return ::syscall(SYS_process_vm_readv, ::getppid(), nullptr, 0, nullptr, 0, 0); }},
        {"kill parent", [] { return ::syscall(SYS_kill, ::getppid(), 0); }},
        {"kill self", [] { return ::syscall(SYS_kill, ::getpid(), 0); }},
        {"tgkill another", [] { return ::syscall(SYS_tgkill, 1, 1, 0); }},
        {"setuid", [] { return ::syscall(SYS_setuid, 0); }},
        {"capset", [] { return ::syscall(SYS_capset, nullptr, nullptr); }},
        {"chroot", [] { return ::syscall(SYS_chroot, "/"); }},
        {"mount", [] { return ::syscall(SYS_mount, nullptr, "/", nullptr, 0, nullptr); }},
        {"init_module", [] { return ::syscall(SYS_init_module, nullptr, 0, ""); }},
        {"finit_module", [] { return ::syscall(SYS_finit_module, -1, "", 0); }},
        {"delete_module", [] { return ::syscall(SYS_delete_module, "", 0); }},
        {"mknod", [] { return ::syscall(SYS_mknodat, AT_FDCWD, "/device", S_IFCHR | 0600, 0x103); }},
        {"mkdir", [] { return ::syscall(SYS_mkdirat, AT_FDCWD, "/tmp/x", 0700); }},
        {"unlink", [] { return ::syscall(SYS_unlinkat, AT_FDCWD, "/none", 0); }},
        {"chmod", [] { return ::syscall(SYS_fchmodat, AT_FDCWD, "/", 0777); }},
        {"truncate", [] { return ::syscall(SYS_truncate, "/none", 0); }},
        {"ioctl", [] { return ::syscall(SYS_ioctl, 0, TIOCSTI, "x"); }},
        {"dup", [] { return ::syscall(SYS_dup, 3); }},
        {"memfd_create", [] { return ::syscall(SYS_memfd_create, "x", 0); }},
        {"setrlimit", [] { return ::syscall(SYS_setrlimit, RLIMIT_CORE, nullptr); }},
        {"executable memory",
         [] {
             return ::syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
         }},
        {"make memory executable", [] { return ::syscall(SYS_mprotect, nullptr, 4096, PROT_READ | PROT_EXEC); }},
        {"landlock", [] { return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1); }},
        {"seccomp", [] { return ::syscall(SYS_seccomp, 0, 0, nullptr); }},
        {"settimeofday", [] { return ::syscall(SYS_settimeofday, nullptr, nullptr); }},
    };
    if (sandbox::is_instrumented()) calls.erase("stat");
    std::string possible;
    for (const auto& [name, call] : calls) {
        if (call() != -1 || errno != EPERM) possible += name + " ";
    }
    return possible;
}

std::string reply_to(const std::string& word, sandbox::Channel& channel) {
    if (word == "calls") return possible_calls();
    if (word == "ids") return std::to_string(::getuid()) + " " + std::to_string(::getegid());
    if (word == "crash") static_cast<void>(::raise(SIGSEGV));
    if (word == "abort") std::abort();
    if (word == "kill") static_cast<void>(::syscall(SYS_tgkill, ::getpid(), ::getpid(), SIGKILL));
    if (word == "sleep") std::this_thread::sleep_for(std::chrono::hours(1));
    if (word == "leave") ::_exit(0);
    if (word == "long") return std::string(3U << 20U, 'x');
    if (word == "thread") {
        std::string said;
        std::thread([&] { said = std::string(1U << 20U, 't').substr(0, 3); }).join();
        return said;
    }
    if (word == "file") {
        const sys::Fd file = channel.take_descriptor();
        std::string text(100, '\0');
        const ssize_t got = ::read(file.get(), text.data(), text.size());
        return text.substr(0, got < 0 ? 0 : static_cast<std::size_t>(got));
    }
    if (word == "file names")
        return std::to_string(::open("/etc/passwd", O_RDONLY)) + std::to_string(::access("/", F_OK));
    return "?";
}

sandbox::Service service() {
    return {k_number, [] {}, [] {}, [](const std::string& message, sandbox::Channel& channel, sandbox::Channel&) {
                sandbox::MessageReader request(message);
                static_cast<void>(request.number());
                static_cast<void>(channel.send(reply_to(request.text(), channel)));
            }};
}

/// What the process replies.
std::string ask(sandbox::Confined& process, std::string_view word, int descriptor = -1) {
    sandbox::MessageWriter request;
    request.number(k_number);
    request.text(word);
    process.send(request.bytes(), descriptor < 0 ? std::span<const int>() : std::span<const int>(&descriptor, 1));
    return process.receive(4U << 20U);
}

/// "CODE: MESSAGE" of the error.
std::string fault_of(sandbox::Confined& process, std::string_view word) {
    try {
        return ask(process, word);
    } catch (const Error& error) {
        return error.code() + ": " + error.message();
    }
}

bool is_filtered(const sandbox::Confined& process) {
    const auto& lines = process.report().in_force;
    return std::find(lines.begin(), lines.end(), "seccomp: computing only") != lines.end();
}

}  // namespace

TEST_CASE("confined: no call but those for computing, each tried from inside") {
    sandbox::Confined process({service()});
    const std::string possible = ask(process, "calls");
    if (is_filtered(process)) CHECK(possible.empty());
    CHECK(ask(process, "file names") == "-1-1");
}

TEST_CASE("confined: threads, long answers and descriptors work") {
    sandbox::Confined process({service()});
    CHECK(ask(process, "thread") == "ttt");
    CHECK(ask(process, "long").size() == 3U << 20U);
    const sys::TempDir directory("kmm-test-");
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, directory.path() + "/file", "content");
    const sys::Fd file(::open((directory.path() + "/file").c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(ask(process, "file", file.get()) == "content");
}

TEST_CASE("confined: root's process is another user's, and what is missing is said with its reason") {
    sandbox::Confined process({service()});
    const std::string ids = ask(process, "ids");
    const auto& report = process.report();
    CHECK(report.in_force.size() + report.missing.size() == 8);
    const auto& lines = report.in_force;
    if (std::find(lines.begin(), lines.end(), "a user of its own") != lines.end()) {
        CHECK(ids.substr(0, ids.find(' ')) == ids.substr(ids.find(' ') + 1));
        CHECK(ids != "0 0");
    } else {
        CHECK(::geteuid() != 0);
    }
    for (const std::string& line : report.missing) CHECK(line.find(" (E") != std::string::npos);
}

TEST_CASE("confined: how the process ended is the error, again and again") {
    std::map<std::string, std::string> faults{
        {"kill", "parser-killed: the process that parses foreign bytes was killed"},
        {"abort", "parser-crashed: the process that parses foreign bytes was ended by SIGABRT"},
        {"leave", "parser-crashed: the process that parses foreign bytes gave an answer that is not one"},
        {"crash", "parser-crashed: the process that parses foreign bytes was ended by SIGSEGV"},
    };
    if (sandbox::is_instrumented()) faults.erase("crash");  // it ends such a process in its own way
    for (const auto& [word, fault] : faults) {
        sandbox::Confined process({service()});
        CHECK(ask(process, "ids") != "");
        CHECK(fault_of(process, word) == fault);
        CHECK(fault_of(process, "ids") == fault);
        process.renew();
        CHECK(ask(process, "thread") == "ttt");
    }
}

TEST_CASE("confined: a new process is another, and comes also while one does not answer") {
    sandbox::Confined process({service()});
    const std::string ids = ask(process, "ids");
    sandbox::MessageWriter request;
    request.number(k_number);
    request.text("sleep");
    process.send(request.bytes());
    process.renew();
    const std::string others = ask(process, "ids");
    if (::geteuid() == 0 && process.report().missing.empty()) CHECK(others != ids);
    CHECK(ask(process, "thread") == "ttt");
}

TEST_CASE("confined: a twin is another process, which starts others in its turn") {
    sandbox::Confined process({service()});
    const auto twin = process.twin();
    CHECK(fault_of(*twin, "abort").starts_with("parser-crashed: "));
    CHECK(ask(process, "thread") == "ttt");
    twin->renew();
    CHECK(ask(*twin, "thread") == "ttt");
}

TEST_CASE("confined: a process is prepared for its first request, and another one serves what it is not prepared for") {
    static std::string prepared;  // of the process that starts the others
    const auto named = [](std::uint64_t number, const char* name) {
        return sandbox::Service{number, [] {}, [name] { prepared += name; },
                            [](const std::string&, sandbox::Channel& channel, sandbox::Channel&) {
                                static_cast<void>(channel.send(prepared + " " + std::to_string(::getpid())));
                            }};
    };
    sandbox::Confined process({named(1, "a"), named(2, "b")});
    const auto ask_for = [&](std::uint64_t number) {
        sandbox::MessageWriter request;
        request.number(number);
        process.send(request.bytes());
        return process.receive(100);
    };
    process.begin(2);
    const std::string first = ask_for(2);
    CHECK(first.starts_with("b "));
    process.begin(1);  // there is one
    CHECK(ask_for(2) == first);
    const std::string second = ask_for(1);
    CHECK(second.starts_with("ba "));
    CHECK(ask_for(2) == second);
    CHECK(prepared.empty());
    process.renew();
    CHECK(ask_for(2).starts_with("ba "));
}

TEST_CASE("confined: what starts the processes keeps no capability but to start and end them") {
    sandbox::Confined process({service()});
    CHECK(ask(process, "thread") == "ttt");
    const std::string self = std::to_string(::getpid());
    const std::string children = sys::read_file("/proc/self/task/" + self + "/children", 1U << 16U);
    const std::string status = sys::read_file("/proc/" + children.substr(0, children.find(' ')) + "/status", 1U << 16U);
    const auto at = status.find("CapPrm:\t");
    REQUIRE(at != std::string::npos);
    const auto kept = std::stoull(status.substr(at + 8, 16), nullptr, 16);
    CHECK((kept & ~((1ULL << CAP_SETUID) | (1ULL << CAP_SETGID) | (1ULL << CAP_SYS_CHROOT) | (1ULL << CAP_KILL))) == 0);
    CHECK(status.find("NoNewPrivs:\t1") != std::string::npos);
}

TEST_CASE("confined: bytes come through shared memory as they were, however the two sides are ahead of each other") {
    const sys::Fd file = sys::RingReader::make_file();
    std::string sent(5 * sys::k_ring_bytes / 2 + 77, '\0');
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 4096);
    auto [ours, theirs] = sandbox::connected_sockets();
    std::thread writer([&, socket = std::move(theirs)]() mutable {
        sandbox::Channel channel(std::move(socket));
        sys::RingWriter ring(file);
        std::string_view rest = sent;
        while (!rest.empty()) {
            const std::size_t size = ring.write(rest.substr(0, 300'001));
            rest.remove_prefix(size);
            if (size == 0) {
                ring.wait_for_room();
            } else {
                sandbox::MessageWriter message;
                message.number(size);
                static_cast<void>(channel.send(message.bytes()));
            }
        }
    });
    sandbox::Channel channel(std::move(ours));
    sys::RingReader ring(file);
    std::string message;
    std::string came;
    while (came.size() < sent.size() && channel.receive(message, 8)) {
        for (std::size_t size = sandbox::MessageReader(message).number(); size > 0;) {
            const std::string_view piece = ring.view(size);
            came += piece;
            size -= piece.size();
            ring.release(piece.size());
        }
    }
    writer.join();
    CHECK(came == sent);
}

TEST_CASE("confined: a wait is ended by whoever waits, and the process with it") {
    bool asked = false;
    {
        sandbox::Confined process({service()}, [&] {
            asked = true;
            throw Error(Exit::interrupted, "interrupted", "interrupted");
        });
        CHECK(fault_of(process, "sleep") == "interrupted: interrupted");
    }
    CHECK(asked);
}

TEST_CASE("confined: what is not a message is the error of a crash") {
    const auto fault = [](const std::string& bytes, const std::function<void(sandbox::MessageReader&)>& read) {
        sandbox::MessageReader reader(bytes);
        try {
            read(reader);
            return std::string("read");
        } catch (const Error& error) {
            return error.code();
        }
    };
    sandbox::MessageWriter out;
    out.number(5);
    CHECK(fault(out.bytes(), [](auto& in) { static_cast<void>(in.number()); }) == "read");
    CHECK(fault(out.bytes(), [](auto& in) { static_cast<void>(in.number(4)); }) == "parser-crashed");
    CHECK(fault(out.bytes(), [](auto& in) { static_cast<void>(in.text()); }) == "parser-crashed");
    CHECK(fault(out.bytes(), [](auto& in) { static_cast<void>(in.count(8)); }) == "parser-crashed");
    CHECK(fault(out.bytes(), [](auto& in) { static_cast<void>(in.flag()); }) == "parser-crashed");
    CHECK(fault("", [](auto& in) { static_cast<void>(in.number()); }) == "parser-crashed");
    sandbox::MessageWriter forged;
    forged.error(Error(Exit::ok, "fine", ""));
    CHECK(fault(forged.bytes(), [](auto& in) { throw in.error(); }) == "parser-crashed");
    sandbox::MessageWriter coloured;
    coloured.error(Error(Exit::data, "bad-layer", "a\x1b[31m").hint("b\x07").detail("k", "v"));
    sandbox::MessageReader reader(coloured.bytes());
    const Error error = reader.error();
    CHECK(error.message() == "a?[31m");
    CHECK(error.hint() == "b?");
    CHECK(error.details().front().second == "v");
    CHECK(reader.at_end());
}

TEST_CASE("confined: where no more files can be opened, that is said, and not that something was killed") {
    const pid_t child = ::fork();
    if (child == 0) {
        int code = 1;
        try {
            sandbox::Confined process({service()});
            std::vector<sys::Fd> others;
            for (sys::Fd next(::dup(2)); next; next = sys::Fd(::dup(2))) others.push_back(std::move(next));
            code = fault_of(process, "ids").starts_with("io: starting the process that parses foreign bytes: Too many")
                       ? 0
                       : 2;
        } catch (const Error&) {
            code = 3;
        }
        ::_exit(code);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
