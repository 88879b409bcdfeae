// SPDX-License-Identifier: Apache-2.0
// Device plugins and DRA drivers of one Module, stepped along with its version labels where no operator does it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/live/kube_store.hpp"
#include "kube/access.hpp"

namespace kmm::cluster {

/// A live store that sees what an ordered upgrade does to the labels of a node, and does beside it what KMM's
/// controllers would (facts: KMM 8.1, 9):
///   the worker's version label goes  only when no Pod of the Module's DaemonSets is on the node any more;
///   .ready is set                    together with the label that lets device plugins onto the node;
///   .version.ready is set            only when the Pods of the new version's DaemonSets are ready on the node; their
///   own ready
///                                    labels are set then, and DaemonSets of versions that no node asks for are
///                                    deleted.
/// Of a Module without versions the DaemonSets follow `.ready` alone: when it goes, their Pods are waited for until
/// they are gone, and when it is set, until they are ready. All other calls go through unchanged. Not for a Module with
/// neither device plugin nor DRA driver: there it does nothing more. Thread safe.
class PluginStore final : public ClusterStore {
public:
    /// Nothing is sent. `store` must outlive it; `timeout` is for each wait.
    PluginStore(KubeStore& store, std::string ns, std::string name, std::chrono::milliseconds timeout);

    [[nodiscard]] Snapshot read() override { return store_.read(); }
    [[nodiscard]] Snapshot read_about(const Subject& subject) override { return store_.read_about(subject); }
    /// Errors: also busy "plugin-still-there", unhealthy "plugin-not-ready", after the timeout; "interrupted".
    void patch_node_labels(const std::string& node, const LabelChange& change, const LabelChange& expected) override;
    void put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                         const std::optional<std::optional<api::NodeModule>>& spec,
                         const std::optional<std::optional<api::NodeModule>>& status) override {
        store_.put_node_module(node, ns, name, spec, status);
    }
    void put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                       const std::string& architecture) override {
        store_.put_node_info(node, kernel, boot_id, architecture);
    }
    [[nodiscard]] std::string identity(bool create) override { return store_.identity(create); }
    [[nodiscard]] std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds timeout) override {
        return store_.await_news(seen, timeout);
    }
    [[nodiscard]] std::string describe() const override { return store_.describe(); }

    /// Applies the DaemonSets and DeviceClasses that the Module asks for now, as kmm-plan renders them. A DaemonSet of
    /// the same role and version with another name is taken over. Returns those that are new or were not so before:
    /// "DaemonSet NS/NAME", "DeviceClass NAME". Errors: those of kube::Client; checks_failed "dra-not-served".
    std::vector<std::string> apply(kube::Force force);

private:
    using Pods = std::map<std::string, value::Node>;  ///< Pods of the Module's DaemonSets on one node, by uid
    /// Watches until `done` holds; false after the timeout. `last` is what was there then.
    [[nodiscard]] bool wait_for_pods(const std::string& node, const std::function<bool(const Pods&)>& done, Pods& last);
    void wait_gone(const std::string& node);
    void wait_ready(const std::string& node, const api::Module& module, const std::string& version);
    void collect(const std::string& version);
    [[nodiscard]] std::optional<api::Module> module();

    KubeStore& store_;
    std::string namespace_, name_;
    std::chrono::milliseconds timeout_;
};

/// True if `module` has a device plugin or a DRA driver.
[[nodiscard]] bool has_plugins(const api::Module& module);

/// The rights that stepping the DaemonSets of `module` needs; none if it has none.
[[nodiscard]] std::vector<kube::Rule> plugin_rules(const api::Module& module);

}  // namespace kmm::cluster
