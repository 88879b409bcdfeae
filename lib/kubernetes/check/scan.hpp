// SPDX-License-Identifier: Apache-2.0
// Metadata that is proposed from what the nodes hold.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// How a version gets onto nodes: "binaries" or "packages".
struct ScannedWay {
    std::string way;
    std::vector<std::string> nodes;  ///< that have kubeadm and kubelet of it
    std::vector<std::pair<std::string, std::string>> lacking;  ///< every other node that has answered, and why
};
struct ScannedVersion {
    Version version;
    bool runs = false;
    bool is_proposed = false;      ///< every node has it by one way, and every node has answered; or it runs
    std::vector<ScannedWay> ways;  ///< those by which a node has some of it
};
/// Something on a node that was not used.
struct ScanNote {
    std::string node, subject, reason;
};
struct ScanResult {
    std::vector<ScannedVersion> versions;  ///< sorted
    std::vector<ScanNote> silent;          ///< nodes that have not answered; without subject
    std::vector<ScanNote> ignored, unread;
    std::vector<VersionEntry> entries;     ///< proposed metadata, sorted
};

/// What nodes have answered to `kubernetes facts --scan`. Nothing in an answer is trusted: what is not a version is
/// ignored. Entries that `catalogue` has are kept; upgrade_from is otherwise what the minor rule allows of the versions
/// that are proposed or run.
[[nodiscard]] ScanResult read_scan(const NodeAnswers& answers, const Observation& seen, const Catalogue& catalogue);

/// An entry as a node of a metadata file: members that say nothing are left out.
[[nodiscard]] value::Node entry_node(const VersionEntry& entry);

}  // namespace kmm::kubernetes
