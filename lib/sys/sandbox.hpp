// SPDX-License-Identifier: Apache-2.0
// Gives up what the process does not need any more, for good. Nothing here ever fails: a kernel that cannot do a part of it, or a
// container that may not, leaves that part out and says so.
#pragma once

#include <string>
#include <vector>

namespace kmm::sys {

/// What came of it, in words for a log: "seccomp: no sockets, no programs", "landlock: Function not implemented (ENOSYS)".
struct SandboxReport {
    std::vector<std::string> in_force;
    std::vector<std::string> missing;
};

/// No new privileges, and no system call by which a program that was taken over gets further: programs, mounts, other processes'
/// memory, BPF, kexec. Calls that are refused fail with EPERM. For all threads; the network stays.
void forbid_programs(SandboxReport& report);

/// An empty network namespace, where root may have one. Not for a process that loads modules: what a module's init sees of the network
/// is that of the process.
void leave_network(SandboxReport& report);

/// From now on no sockets. What is open stays open.
void forbid_sockets(SandboxReport& report);

/// From now on no file is changed outside of `writable` (Landlock, Linux 5.13; paths that do not exist count as their nearest parent
/// that does), and other processes cannot be looked into. For this thread and those it starts.
void forbid_writes(const std::vector<std::string>& writable, SandboxReport& report);

}  // namespace kmm::sys
