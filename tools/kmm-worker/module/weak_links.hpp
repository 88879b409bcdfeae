// SPDX-License-Identifier: Apache-2.0
// The files of weak-updates on a host: modules of other releases, what kernels export, and the links. Everything is
// reached beneath descriptors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernel/weak_updates.hpp"
#include "kubeadm/node/node.hpp"

namespace kmm::tool_worker {

/// Releases that have a directory in /lib/modules, sorted.
[[nodiscard]] std::vector<std::string> kernel_releases(const kubeadm::Place& place);

/// The path of a link below weak-updates, of a module /lib/modules/RELEASE/extra/x.ko.
enum class LinkForm {
    plain,      ///< x.ko, of weak-modules
    with_part,  ///< extra/x.ko, of SUSE's weak-modules2, which finds no link of another form
};
/// Which form the links on this host have: that of the script that is there, else that of the links that are there,
/// else plain.
[[nodiscard]] LinkForm link_form(const kubeadm::Place& place, const std::vector<std::string>& releases);

/// The modules below extra and updates of a release; files that are no modules, and links, are told in `warnings` and
/// left out.
[[nodiscard]] std::vector<kernel::WeakCandidate> read_addons(const kubeadm::Place& place, const std::string& release,
                                                             LinkForm form, std::vector<std::string>& warnings);

/// What a kernel exports, from its symvers, with vermagic from its configuration, else from one of its modules. nullopt
/// if there is no symvers or no vermagic; `why` says which. Errors: data "bad-symvers".
[[nodiscard]] std::optional<kernel::Interface> read_kernel(const kubeadm::Place& place, const std::string& release,
                                                           std::string& why);

/// The links below weak-updates of a release: path below it to where it leads; "" for anything that is no link.
[[nodiscard]] std::map<std::string, std::string> read_links(const kubeadm::Place& place, const std::string& release);

/// Where a link as weak-modules makes them leads: a file below /lib/modules/RELEASE/{extra,updates}, also when it is
/// written with /usr/lib. "" for any other target.
[[nodiscard]] std::string addon_path(const std::string& target);

/// The initramfs of a release in /boot, which may have modules of its own; "" if there is none.
[[nodiscard]] std::string initramfs_of(const kubeadm::Place& place, const std::string& release);

/// One change below weak-updates.
struct LinkChange {
    std::string subpath;
    std::string before;  ///< where the link leads now, "" if there is none
    std::string after;   ///< where it is to lead, "" to remove it
};
/// Carries the changes out, one rename or unlink each, and removes directories that become empty. What is not as
/// `before` says is an error: conflict "weak-link-changed". Errors: from_errno.
void change_links(const kubeadm::Place& place, const std::string& release, const std::vector<LinkChange>& changes);

}  // namespace kmm::tool_worker
