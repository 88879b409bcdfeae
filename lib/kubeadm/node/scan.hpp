// SPDX-License-Identifier: Apache-2.0
// Versions of Kubernetes that could be put in place on a node: versioned directories, and its package source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kubeadm/node/placing.hpp"
#include "value/node.hpp"

namespace kmm::kubeadm {

/// A version, and what of it is there.
struct OfferedVersion {
    kubernetes::Version version;
    std::vector<std::string> programs;  ///< of kubeadm, kubelet and kubectl
    std::string problem;                ///< why kubeadm or kubelet could not be put in place, "" if they could
};
/// What one source offers; sorted by version.
struct VersionOffer {
    std::string source;  ///< the directory, "apt" or "dnf"; "" where there is no package manager
    std::vector<OfferedVersion> versions;
    std::vector<std::pair<std::string, std::string>> ignored;  ///< names that are not versions, and why
};
/// nullopt where it could not be read.
struct VersionScan {
    std::optional<VersionOffer> directories, packages;
};

/// The directories below `how.directory`. Programs are proven as for placing_commands. Nothing without that directory.
/// Errors: those of Place::list; io "io" if it has more than 200 names.
[[nodiscard]] VersionOffer scan_directories(const Node& node, const Switch& how);
/// What apt or dnf knows without the network: the lists of the last update. Errors: io "command-failed".
[[nodiscard]] VersionOffer scan_packages(const Place& place);
/// Takes the output of `apt-cache madison` apart.
[[nodiscard]] VersionOffer read_madison(std::string_view text);
/// Takes the output of `dnf repoquery` apart: a line is NAME-EPOCH:VERSION-RELEASE.ARCHITECTURE.
[[nodiscard]] VersionOffer read_repoquery(std::string_view text);
/// The member `scan` of the facts.
[[nodiscard]] value::Node scan_document(const VersionScan& scan);

}  // namespace kmm::kubeadm
