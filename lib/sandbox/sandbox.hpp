// SPDX-License-Identifier: Apache-2.0
// Gives up what the process does not need any more, for good. Nothing here ever fails: a kernel that cannot do a part
// of it, or a container that may not, leaves that part out and says so.
#pragma once

#include <string>
#include <vector>

namespace kmm::sandbox {

/// What came of it, in words for a log: "seccomp: no sockets, no programs", "landlock: Function not implemented
/// (ENOSYS)".
struct SandboxReport {
    std::vector<std::string> in_force;
    std::vector<std::string> missing;
};

/// What the process still has to do that needs more than reading and writing files.
enum class Keeps {
    files,      ///< nothing
    namespaces, ///< leave_network(), and the kernel's log and addresses
    modules,    ///< loading kernel modules, in whose init every capability may be asked for
};

/// No new privileges, no capability that is not needed (of the calling thread and those it starts), and no system call
/// by which a program that was taken over gets further: programs, mounts, devices, kernel modules (unless they are
/// kept), other processes' memory and descriptors, BPF, kexec, ports, clocks, typing into terminals. Calls that are
/// refused fail with EPERM, for all threads; the network stays.
void forbid_programs(SandboxReport& report, Keeps keeps = Keeps::files);

/// An empty network namespace, where root may have one. Not for a process that loads modules: what a module's init sees
/// of the network is that of the process.
void leave_network(SandboxReport& report);

/// Whether owners, modes, times and attributes of files may still be changed, which Landlock does not see.
enum class Modes { changeable, fixed };

/// From now on no sockets. What is open stays open.
void forbid_sockets(SandboxReport& report, Modes modes = Modes::changeable);

/// From now on no file is changed, cut or made outside of `writable` (Landlock, Linux 5.19; paths that do not exist
/// count as their nearest parent that does), no device, socket or pipe is made anywhere, and other processes cannot be
/// looked into. Below `emptied` empty directories may be removed. With every right that the running kernel's Landlock
/// knows of: cutting from Linux 6.2, commands to devices from 6.10. For this thread and those it starts.
void forbid_writes(const std::vector<std::string>& writable, SandboxReport& report, const std::string& emptied = "");

/// From now on no capability but to read any file and the kernel's log; with changeable modes, also to write and own
/// files. Of this thread and those it starts.
void drop_capabilities(SandboxReport& report, Modes modes = Modes::fixed);

/// Whether this is built with a sanitizer, which needs calls of its own: they are allowed as well.
[[nodiscard]] bool is_instrumented() noexcept;

/// For the process that starts those that confine() themselves: they have its network namespace, which is empty where
/// root may have one. It keeps what confine() and ending such a process need, and can never gain more.
void limit_starter(SandboxReport& report);

/// Gives up everything but computing and talking through open descriptors, for a process of one thread that parses
/// foreign bytes and was started after limit_starter(): an empty root directory and a user of its own where root may
/// have them, no supplementary group, no capability, no core file, no file (Landlock with every right that the running
/// kernel's knows of, also TCP ports, signals and abstract sockets), and a list of system calls that are allowed:
/// memory, locks, threads, reading and writing what is open. Every other call fails with EPERM.
void confine(SandboxReport& report);

}  // namespace kmm::sandbox
