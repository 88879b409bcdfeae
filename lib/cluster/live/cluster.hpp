// SPDX-License-Identifier: Apache-2.0
// A cluster: where it is, its objects, and what runs on its nodes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/folder/directory_store.hpp"
#include "cluster/live/cluster_workloads.hpp"
#include "cluster/live/kube_store.hpp"
#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/random.hpp"

namespace kmm::cluster {

/// Where a cluster is: a directory, or a context of a kubeconfig.
struct Place {
    std::string directory;                  ///< absolute path, "" for an API server
    std::string context;                    ///< name of the context; "in-cluster" for the service account of the Pod
    std::optional<std::string> kubeconfig;  ///< absolute path; nullopt: the files that kubectl would read

    [[nodiscard]] bool is_live() const noexcept { return directory.empty(); }
    /// For people and for the record: the directory, "context NAME" or "context NAME of FILE".
    [[nodiscard]] std::string text() const;
    /// Inverse of text(). `context` is the name of the context where it is known: a name may contain " of /". Where it
    /// is "", the text after the last " of /" is the file.
    [[nodiscard]] static Place read(std::string_view text, const std::string& context);
    friend bool operator==(const Place&, const Place&) = default;
};

/// An open cluster. Exactly one of `server` and `directory` is set, and is the store.
struct Cluster {
    Place place;
    std::unique_ptr<ClusterStore> store;
    std::unique_ptr<Workloads> workloads;
    KubeStore* server = nullptr;
    DirectoryStore* directory = nullptr;
};

/// What clusters are opened with. The references must outlive the cluster.
struct Opening {
    sys::FileOps& files;
    sys::Clock& clock;
    sys::Random& random;
    kube::ClientOptions client{};  ///< of an API server
};

/// Sends nothing and reads no object. Errors: those of kube::load_connection.
[[nodiscard]] Cluster open_cluster(Place place, Opening opening);

}  // namespace kmm::cluster
