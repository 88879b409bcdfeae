// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox_parts.hpp"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.hpp"
#include "sandbox/own_calls.hpp"

namespace kmm::sandbox {

namespace {

constexpr std::uint32_t refusal(int number) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(number); }

}  // namespace

CallFilter::CallFilter() {
    constexpr std::uint32_t x32 = 0x40000000U;
    load(offsetof(seccomp_data, arch));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k_own_calls, 1, 0));
    give(refusal(EPERM));
    load(offsetof(seccomp_data, nr));
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32, 0, 1));
    give(refusal(EPERM));
}

void CallFilter::allow(long call) {
    only(call, 1);
    give(SECCOMP_RET_ALLOW);
}

void CallFilter::refuse(long call, int number) {
    only(call, 1);
    give(refusal(number));
}

void CallFilter::allow_bits(long call, unsigned argument, std::uint32_t all, std::uint32_t none) {
    only(call, 5);
    load_argument(argument);
    add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, all | none));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, all, 0, 1));
    give(SECCOMP_RET_ALLOW);
    give(refusal(EPERM));
}

void CallFilter::allow_value(long call, unsigned argument, std::uint32_t value) {
    only(call, 4);
    load_argument(argument);
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    give(SECCOMP_RET_ALLOW);
    give(refusal(EPERM));
}

void CallFilter::refuse_values(long call, unsigned argument, std::span<const std::uint32_t> values) {
    only(call, 2 + 2 * values.size());
    load_argument(argument);
    for (const std::uint32_t value : values) {
        add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
        give(refusal(EPERM));
    }
    load(offsetof(seccomp_data, nr));  // for what follows
}

int CallFilter::install(Others others) {
    if (k_own_calls == 0) return ENOSYS;
    give(others == Others::allowed ? SECCOMP_RET_ALLOW : refusal(EPERM));
    const sock_fprog whole{static_cast<unsigned short>(program_.size()), program_.data()};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &whole) == 0 ? 0 : errno;
}

void CallFilter::load(std::size_t offset) {
    add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}

/// The lower half of it.
void CallFilter::load_argument(unsigned argument) {
    load(offsetof(seccomp_data, args) + sizeof(std::uint64_t) * argument);
}

void CallFilter::give(std::uint32_t answer) { add(BPF_STMT(BPF_RET | BPF_K, answer)); }

/// The next `words` are for this call alone.
void CallFilter::only(long call, std::size_t words) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, static_cast<std::uint8_t>(words)));
}

long landlock_version() {
    return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

std::uint64_t landlock_file_rights(long version) {
    // 13 to begin with; renames between directories, cutting, commands to devices.
    const unsigned rights = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
    return (1ULL << rights) - 1;
}

void note_part(SandboxReport& report, const char* done, const char* what, int fault) {
    if (fault == 0) {
        report.in_force.emplace_back(done);
    } else {
        report.missing.push_back(std::string(what) + ": " + errno_text(fault) + " (" + errno_name(fault) + ")");
    }
}

}  // namespace kmm::sandbox
