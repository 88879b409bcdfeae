// SPDX-License-Identifier: Apache-2.0
// Who keeps a module busy: open device nodes, mounts and network interfaces. Source: proc(5), sysfs of Linux 6.1.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kmod/host/host.hpp"

namespace kmm::kmod {

/// One phrase per user, e.g. "process 812 (cat) has /dev/kmm0 open", "/mnt is mounted (kmmfs)", "network interface
/// eth1". In the order processes, mounts, interfaces; at most 20. Whose a device is, is known by its driver, by the
/// name of its major, and by the record of the load. Where all of that finds nobody, and the reference count says that
/// there is somebody: processes with a device open that no known driver has. What cannot be read (other users'
/// processes) is left out, so an empty answer proves nothing.
[[nodiscard]] std::vector<std::string> module_users(const HostPaths& host, const std::string& module);
/// The devices that there are: "char 240" for a major that a driver has registered, "char 81:0" for a device in sysfs;
/// the same of "block".
[[nodiscard]] std::set<std::string> device_numbers(const HostPaths& host);
/// The network interfaces that the module drives and that are up, or may be: whose flags cannot be read. They hold no
/// reference: the kernel unloads their module all the same.
[[nodiscard]] std::vector<std::string> interfaces_up(const HostPaths& host, const std::string& module);

}  // namespace kmm::kmod
