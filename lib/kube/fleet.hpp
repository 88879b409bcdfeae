// SPDX-License-Identifier: Apache-2.0
// The objects that decisions need, read from a live cluster.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "kube/access.hpp"
#include "kube/client.hpp"

namespace kmm::kube {

/// What is read besides Nodes, Modules, NodeModulesConfigs and KMM's Pods.
struct FleetQuery {
    enum class Referenced {
        none,
        secrets,
        all
    } referenced = Referenced::none;                    ///< what Modules name: Secrets, ConfigMaps
    enum class Hub { no, modules, all } hub = Hub::no;  ///< ManagedClusterModules; ManagedClusters too
    /// DaemonSets and DeviceClasses that KMM's labels mark as a Module's own.
    enum class Plugins { no, yes } plugins = Plugins::no;
    enum class ImagePods { no, yes } image_pods = ImagePods::no;     ///< the Pods by which KMM pulls, builds, signs
    enum class Preflights { no, yes } preflights = Preflights::no;   ///< PreflightValidations
    enum class Surroundings { no, yes } surroundings = Surroundings::no;  ///< Modules' Namespaces, KMM's configuration
    std::string program = "kmm-plan";          ///< name of the role in RBAC manifests
};

struct Fleet {
    api::Objects objects;     ///< finished; their places are "nodes/NAME", without lines
    Diagnostics diagnostics;  ///< fields that this program does not know are notes: the server took them
    /// Namespace and name of Secrets that Modules name, that were asked for, and that the server does not have.
    std::set<std::pair<std::string, std::string>> absent_secrets;
    bool has_kmm = true;      ///< the server has the kind Module
};

/// Lists what KMM has written down about images: ModuleImagesConfigs and ModuleBuildSignConfigs. Nothing of a kind that
/// the server does not have, or that the account may not list. `objects` are to be finished afterwards.
void add_image_states(Client& client, api::Objects& objects, Diagnostics& diagnostics);

/// Lists page by page, object by object; of large objects only what is needed is kept. A kind that the server does not
/// have is taken as having no objects; so is one that adds causes and findings and may not be read: what KMM says of
/// images, its image Pods, PreflightValidations, surroundings. Errors: those of Client; no_permission "forbidden" names
/// all missing rights at once, with the RBAC manifests as hint.
[[nodiscard]] Fleet read_fleet(Client& client, const FleetQuery& query = {});

/// The rights that read_fleet needs or, for what adds causes and findings, can use.
[[nodiscard]] std::vector<Rule> fleet_rules(const FleetQuery& query = {});

/// Decodes one object of the server, as read_fleet does. `resource` is for places.
void decode_object(const Resource& resource, const value::Node& object, api::Objects& objects,
                   Diagnostics& diagnostics);

}  // namespace kmm::kube
