// SPDX-License-Identifier: Apache-2.0
// How nodes are reached: which runner, with which options, and what follows a Module's labels beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/live/plugin_store.hpp"
#include "cluster/seam/runner.hpp"
#include "kmm-upgrade/reach/cluster_access.hpp"
#include "kmm-upgrade/reach/own_bundle.hpp"

namespace kmm::tool_upgrade {

/// The namespace that option `name` gives, `fallback` without it. Errors: usage "bad-value" for what is not the name of
/// one.
[[nodiscard]] std::string namespace_option(const cli::Args& args, const char* name, const std::string& fallback = {});

class Reach {
public:
    explicit Reach(ClusterAccess& cluster) : call_(cluster.call()), cluster_(cluster) {}

    /// Puts --via, --worker-image, --operator, --repair, --ssh-config, --worker, and --policy with --signature-key over
    /// what is recorded. Those of the command line that the way does not use are refused. A run that is `fresh` and
    /// names no way uses worker Pods on an API server, and ssh elsewhere; one that is `adopted` does so, too, and may
    /// lack the image of worker Pods, which the next command that reaches a node asks for. Errors: usage
    /// "missing-option", "bad-value".
    enum class Age { fresh, adopted, recorded };
    void choose(upgrade::Options& options, const cluster::Place& place, Age age) const;
    /// The runner that `options` name, for the open cluster, which must outlive it.
    [[nodiscard]] std::unique_ptr<cluster::NodeRunner> runner(const upgrade::Options& options, const Target& target);
    /// Nodes while no API server runs: without the Lease. Errors: usage "bad-value" for worker Pods, which need one.
    [[nodiscard]] std::unique_ptr<cluster::NodeRunner> runner_beside_server(const upgrade::Options& options);
    /// With worker Pods, which no operator accompanies: a store that steps the Module's DaemonSets; what it asks for is
    /// applied. nullptr otherwise, then the cluster's own store is used.
    [[nodiscard]] std::unique_ptr<cluster::PluginStore> plugins(const upgrade::Run& run);
    /// Whether fields of DaemonSets that others have set are taken over: --force-conflicts.
    [[nodiscard]] kube::Force force() const;
    /// Beside an operator: every image that nodes of `run` are to load is one that KMM has found. Waits 15 s for KMM to
    /// look. Errors: checks_failed "image-not-found-by-kmm".
    void require_images(const upgrade::Run& run);

private:
    [[nodiscard]] std::unique_ptr<cluster::NodeRunner> plain_runner(const upgrade::Options& options,
                                                                    const Target& target);

    [[nodiscard]] std::unique_ptr<cluster::NodeRunner> runner_without_pods(const upgrade::Options& options);

    Call& call_;
    ClusterAccess& cluster_;
    std::shared_ptr<OwnBundle> bundle_ = std::make_shared<OwnBundle>();
};

/// --via and what belongs to it.
[[nodiscard]] std::vector<cli::Option> runner_options();

}  // namespace kmm::tool_upgrade
