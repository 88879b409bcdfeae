// SPDX-License-Identifier: Apache-2.0
// Traps that KMM admits and runs into later: in one Module, and between Modules and a fleet.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/verdict.hpp"

namespace kmm::plan {

/// Traps of one Module's loader. Warnings: regexp-unanchored, regexp-bare-dot, mapping-unreachable (after a regexp that takes
/// everything), image-port-tag, path-characters, sign-outside. Notes: image-by-tag, name-too-long (by the documents' limit).
void lint_module(const api::Module& module, Diagnostics& diagnostics);

/// lint_module, check_policy and check_needs for all Modules.
[[nodiscard]] Diagnostics lint(const api::Objects& objects);

/// Secrets by namespace and name.
using SecretNames = std::set<std::pair<std::string, std::string>>;

/// secret-unknown: Secrets that Modules name and that are not among those of their namespace, where any of it is there. For
/// objects of documents: of an API server only some Secrets are read.
void check_secrets(const api::Objects& objects, Diagnostics& diagnostics);

/// secret-unknown for objects of an API server: Secrets that it said it does not have, and that no document adds.
void check_secrets(const api::Objects& objects, const SecretNames& absent, Diagnostics& diagnostics);

/// Traps of a fleet: kernel-unmapped, kernel-plus, version-labels-stuck, label-key-leftover, label-collision, cordon-unloads,
/// cordon-loses-version, in-tree-needed. Verdicts come node by node, the nodes sorted by name, each followed by end_node.
class FleetLint {
public:
    /// The nodes of a finding: how many, and the first one by name.
    struct Nodes {
        std::size_t count = 0;
        std::string first;
        const api::Node* last = nullptr;
    };
    /// What a verdict says about each node that shares it. Valid as long as the FleetLint.
    struct Share {
        std::string module;                       ///< NAMESPACE/NAME
        std::optional<api::ModuleConfig> wanted;  ///< as in the verdict
        Nodes* unmapped = nullptr;
    };

    /// `objects` must outlive the object.
    explicit FleetLint(const api::Objects& objects) : objects_(objects) {}

    /// Notes what is found for this node only. The rest is counted by `add`, which is to be called for this node, too.
    Share see(const api::Node& node, const Verdict& verdict);
    /// Counts the node. `share` must live until end_node.
    void add(const api::Node& node, const Share& share);
    void end_node(const api::Node& node);

    /// Appends everything that was found.
    void report(Diagnostics& diagnostics) const;

private:
    void see_labels(const api::Node& node, const Verdict& verdict);
    void see_cordon(const api::Node& node, const Verdict& verdict);
    [[nodiscard]] bool serves(const api::Node& node, const Entry& entry) const;

    const api::Objects& objects_;
    std::map<std::pair<std::string, std::string>, Nodes> unmapped_;                ///< by Module and kernel
    std::map<std::string, Nodes> leftover_;                                        ///< by label
    std::map<std::string, Nodes> busy_;                                            ///< by Module
    std::map<std::tuple<std::string, std::string, std::string>, Nodes> removed_;   ///< by Module, kernel module, other Module
    Diagnostics stuck_, loses_version_;
    std::vector<const Share*> wanted_;  ///< on the current node
    bool removes_ = false;              ///< one of them removes in-tree modules
};

/// True if the regular expression is found in every text, like ".+" or "^.*$" (by its text, not by proof).
[[nodiscard]] bool takes_everything(std::string_view regexp);

}  // namespace kmm::plan
