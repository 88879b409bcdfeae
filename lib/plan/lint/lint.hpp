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

#include "plan/decide/verdict.hpp"
#include "plan/kmm/release.hpp"

namespace kmm::plan {

/// Traps of one Module's loader. Warnings: regexp-unanchored, regexp-bare-dot, regexp-plus, regexp-impossible,
/// mapping-unreachable (after a regexp that takes everything), image-port-tag, path-characters, sign-outside, those of
/// check_making. Notes: image-by-tag (where a digest can stand), name-too-long (by the documents' limit).
void lint_module(const api::Module& module, Diagnostics& diagnostics);

/// lint_module for all Modules and ManagedClusterModules, check_policy and check_needs for all Modules,
/// check_own_keys, check_pod_security, check_loaded_known, check_selectors, check_shared_images, check_builds,
/// check_hub_images.
[[nodiscard]] Diagnostics lint(const api::Objects& objects);

/// annotation-idle: annotations and labels kmmtools.dev/... of Modules, ManagedClusterModules and Nodes that nothing
/// reads, such as misspelt ones. O(labels and annotations of all).
void check_own_keys(const api::Objects& objects, Diagnostics& diagnostics);

/// pod-security: a Namespace that was read refuses the Pods that KMM makes for its Modules.
void check_pod_security(const api::Objects& objects, Diagnostics& diagnostics);

/// pull-pod-taints: every Node has a taint that stays, and the release gives the Pods that look for images no
/// tolerations. Modules whose image was found, which a ModuleImagesConfig, a NodeModulesConfig or a label says, are
/// left out. Without a release as for those up to the last known one. Source: KMM imagepuller.go of v2.4.0 to v2.6.0.
/// O(Modules * Nodes).
void check_pull_pods(const api::Objects& objects, const std::optional<Release>& release, Diagnostics& diagnostics);
/// Whether the release, or that of a cluster whose release nobody says, makes such Pods.
[[nodiscard]] bool pulls_without_tolerations(const std::optional<Release>& release);

/// configs-missing: Nodes whose labels say that a Module is loaded, without a NodeModulesConfig that says of which
/// build. `objects` as finish leaves them. O(Nodes * log + labels).
void check_loaded_known(const api::Objects& objects, Diagnostics& diagnostics);

/// selects-no-node: Modules that select none of the Nodes, if there are Nodes. A warning where a label of the selector
/// looks misspelt, else a note. O(Modules * Nodes).
void check_selectors(const api::Objects& objects, Diagnostics& diagnostics);

/// image-kernels and image-architectures: one image that KMM builds or signs once, and that nodes with several kernels
/// or architectures are to use. A note where the image is made elsewhere and may hold several kernels. O(Modules *
/// (nodes + kernels * mappings)).
void check_shared_images(const api::Objects& objects, Diagnostics& diagnostics);

/// Traps of builds and signatures of one Module: sign-same-image (containerImage is unsignedImage, for any kernel, for
/// that of a literal, or for that of one of `nodes`, as the mapping expands), image-architectures (build.selector names
/// another architecture than the Module's selector). `subject` begins each message. O(mappings + nodes).
void check_making(const api::Module& module, const std::string& subject, const std::vector<api::Node>& nodes,
                  Diagnostics& diagnostics);

/// image-shared: one image that two Modules build or sign, each in its own way. Without Nodes, Modules whose mappings
/// have the same matcher. O(Modules * (nodes + kernels * mappings)).
void check_builds(const api::Objects& objects, Diagnostics& diagnostics);

/// hub-image-differs: images of ManagedClusterModules for which the hub and the clusters read different names. The hub
/// expands them in the namespace of its operator. Source: KMM cluster.go and manifestwork.go.
void check_hub_images(const api::Objects& objects, Diagnostics& diagnostics);

/// label-unknown: labels of Nodes that look like KMM's and are none, or that name no Module that was read. O(labels of
/// all Nodes).
void check_node_labels(const api::Objects& objects, Diagnostics& diagnostics);

/// label-unknown: labels of Namespaces that look like one of KMM, or of Kubernetes about the security of Pods, and are
/// none. O(labels of all Namespaces).
void check_namespace_labels(const api::Objects& objects, Diagnostics& diagnostics);

/// Secrets by namespace and name.
using SecretNames = std::set<std::pair<std::string, std::string>>;

/// secret-unknown and config-map-unknown: what Modules name and is not among those of their namespace, where any of
/// that kind is there, or where the whole cluster was read: a note if it has none of that kind at all. secret-key and
/// config-map-key: what is there and lacks the key that KMM mounts. For objects of documents: of an API server only
/// some are read.
enum class Reading { part, whole };
void check_secrets(const api::Objects& objects, Reading reading, Diagnostics& diagnostics);

/// secret-unknown for objects of an API server: Secrets that it said it does not have, and that no document adds.
void check_secrets(const api::Objects& objects, const SecretNames& absent, Diagnostics& diagnostics);

/// Traps of a fleet: kernel-unmapped, kernel-plus, version-labels-stuck, label-key-leftover, label-collision,
/// cordon-unloads, cordon-loses-version, in-tree-needed, node-not-linux, and module-conflict where a loading order has
/// the kernel module. Verdicts come node by node, the nodes sorted by name, each
/// followed by end_node.
class FleetLint {
public:
    /// The nodes of a finding: how many, and the first one by name.
    struct Nodes {
        std::size_t count = 0;
        std::string first;
        Position place;  ///< of the first one
        const api::Node* last = nullptr;
    };
    /// What a verdict says about each node that shares it. Valid as long as the FleetLint.
    struct Share {
        Nodes* unmapped = nullptr;
        Nodes* plus = nullptr;                   ///< of its kernel with a '+', where the module is to be loaded
        Nodes* leftover = nullptr;               ///< of the label of an earlier KMM, where the node has it
        bool is_wanted = false;
        bool removes = false;                    ///< in-tree modules, and is wanted
        bool orders = false;                     ///< has a loading order, and is wanted
        std::string module;                      ///< NAMESPACE/NAME
        std::vector<std::string> kernel_modules; ///< if wanted: what it loads, as the kernel names it
        std::vector<std::string> removed;        ///< if wanted: in-tree modules, as the Module names them
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
    void see_removed(const api::Node& node);
    void see_ordered(const api::Node& node);
    [[nodiscard]] bool serves(const api::Node& node, const Entry& entry) const;

    const api::Objects& objects_;
    std::map<std::pair<std::string, std::string>, Nodes> unmapped_;                ///< by Module and kernel
    std::map<std::string, Nodes> leftover_;                                        ///< by label
    std::map<std::string, Nodes> plus_;                                            ///< by kernel
    std::map<std::string, Nodes> busy_;                                            ///< by Module
    std::map<std::tuple<std::string, std::string, std::string>, Nodes>
        removed_,  ///< by Module, kernel module, other Module
        ordered_;  ///< by kernel module, Module, other Module
    std::map<std::pair<std::string, std::string>, Nodes> other_system_;            ///< by Module and operating system
    Diagnostics stuck_, loses_version_;
    std::vector<const Share*> wanted_;  ///< on the current node
    bool removes_ = false;              ///< one of them removes in-tree modules
    bool orders_ = false;               ///< one of them has a loading order
};

/// True if the regular expression is found in every text, like ".+" or "^.*$" (by its text, not by proof).
[[nodiscard]] bool takes_everything(std::string_view regexp);

}  // namespace kmm::plan
