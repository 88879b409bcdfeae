// SPDX-License-Identifier: Apache-2.0
// The objects of a live API server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/seam/store.hpp"
#include "kube/access.hpp"
#include "kube/client.hpp"

namespace kmm::cluster {

/// Reads come from lists that watches keep fresh, writes go to the server one by one: a label is a JSON patch with
/// `test` on what the decision was based on, a NodeModulesConfig a patch that names the version that was read. What was
/// written is in the next read. The watches begin with the first read. Thread safe.
class KubeStore final : public ClusterStore {
public:
    /// Nothing is sent yet. The seams of `client` must outlive the store.
    explicit KubeStore(std::unique_ptr<kube::Client> client);
    ~KubeStore() override;
    KubeStore(const KubeStore&) = delete;
    KubeStore& operator=(const KubeStore&) = delete;

    /// Nodes, Modules, NodeModulesConfigs and worker Pods, and the pull Secrets that Modules name.
    /// Errors: those of kube::Client, also when they befell a watch since the last read; "forbidden" tells all rights
    /// that are missing.
    [[nodiscard]] Snapshot read() override;
    [[nodiscard]] Snapshot read_about(const Subject& subject) override;
    /// As ClusterStore. A label of `expected` that already has the value of `change` is no conflict.
    void patch_node_labels(const std::string& node, const LabelChange& change, const LabelChange& expected) override;
    void put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                         const std::optional<std::optional<api::NodeModule>>& spec,
                         const std::optional<std::optional<api::NodeModule>>& status) override;
    /// Does nothing: the kubelet writes these fields.
    void put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                       const std::string& architecture) override;
    /// The uid of the Namespace kube-system, which is as old as the cluster; never "". `create` stands before the first
    /// change: rights that are missing are an error then, no_permission "forbidden", with the RBAC manifests as hint.
    [[nodiscard]] std::string identity(bool create) override;
    /// Also returns when a watch has failed, which the next read tells.
    [[nodiscard]] std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds timeout) override;
    /// "cluster CONTEXT (SERVER)".
    [[nodiscard]] std::string describe() const override;

    /// What the store may change: everything, labels alone, or Nodes alone, where it also reads nothing of KMM. No
    /// other rights are asked for then, and any other write is a bug. To be called before the first request.
    enum class Writes { all, labels, nodes };
    void limit_writes(Writes writes) noexcept;
    /// Errors: not_found "kmm-not-installed" when the server has not the kinds that an upgrade reads and writes.
    void require_kinds();
    /// Rights that will be needed besides the store's own. Whenever rights turn out to be missing, these are asked for
    /// as well, so that all are told at once. Sends nothing.
    void expect_rights(const std::vector<kube::Rule>& more);
    /// The rights of the store, and those that are expected.
    [[nodiscard]] std::vector<kube::Rule> rights() const;
    /// Asks for rights() and `more`. Errors: no_permission "forbidden" with all that are missing.
    void require_rights(const std::vector<kube::Rule>& more);

    /// Changes one Node as kube::Client::change does; the next read knows it. Errors: as patch_node_labels.
    value::Node change_node(const std::string& node,
                            const std::function<std::optional<value::Node>(const value::Node& current)>& decide);

    [[nodiscard]] kube::Client& client() noexcept;

private:
    struct Cache;
    std::unique_ptr<Cache> cache_;
};

/// The rights that the store needs to read and write, for kube::missing_rules.
[[nodiscard]] std::vector<kube::Rule> kube_store_rules(KubeStore::Writes writes = KubeStore::Writes::all);

}  // namespace kmm::cluster
