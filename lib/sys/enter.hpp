// SPDX-License-Identifier: Apache-2.0
// From a container to the machine that it runs on.
#pragma once

#include <string>
#include <vector>

namespace kmm::sys {

/// Makes the machine's / that is mounted at `directory` the root of this process. Needs CAP_SYS_CHROOT. Errors:
/// from_errno; no_permission "cannot-enter".
void enter_root(const std::string& directory);

/// Goes over to the mounts, cgroups, network, IPC and host name of the process whose namespaces are the files in
/// `directory`, as /proc/1/ns. Pids stay those of the caller's own namespace. Needs CAP_SYS_ADMIN and CAP_SYS_CHROOT,
/// and that no other thread runs. Errors: as enter_root.
void enter_namespaces(const std::string& directory);

/// Replaces the variables of a container by those of a service of the machine: PATH and HOME; `kept` names one that
/// stays.
void take_service_environment(const char* kept);

/// As root, takes directories out of PATH that others may put programs into, and names the others from the root: a
/// program that is run finds its own by PATH, too. With the machine's / mounted at `root` (else ""), they are judged
/// there, too. Returns those that were taken out, each with the reason: "/srv/bin: /srv/bin belongs to user 1000". For
/// the start of a verb: not while other threads run.
std::vector<std::string> take_trusted_path(const std::string& root);

}  // namespace kmm::sys
