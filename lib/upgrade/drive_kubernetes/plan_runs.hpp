// SPDX-License-Identifier: Apache-2.0
// From a cluster and a version to the runs that lead there: one for each minor on the way.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/versions/catalogue.hpp"
#include "kubernetes/versions/observe.hpp"
#include "kubernetes/versions/path.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {

/// What one run of the way does; "" for what it leaves alone.
struct Hop {
    std::string control_plane, kubelet;
    friend bool operator==(const Hop&, const Hop&) = default;
};
/// The steps of a path as runs: kubelets that follow the control planes at once are brought there in the same run.
[[nodiscard]] std::vector<Hop> hops_of(const kubernetes::Path& path);
/// "control planes v1.35.4, kubelets v1.35.4".
[[nodiscard]] std::string to_string(const Hop& hop);

/// The path to `target` from what runs. Errors: from_diagnostics for versions that are not known; checks_failed
/// "version-unknown", "no-path".
[[nodiscard]] kubernetes::Path path_to(const kubernetes::Catalogue& catalogue, const kubernetes::Observation& seen,
                                       const kubernetes::Version& target);

/// What a person asked for.
struct KubernetesRequest : upgrade::Signature {
    upgrade::Options options;
    upgrade::kubernetes::Subject subject;  ///< `control_plane`, `kubelet` and `rest` are set by plan_run
    bool is_networking_first = false;
    std::vector<std::string> left_out;  ///< names of Nodes that are no part of any run
    std::string until;  ///< state in which the first run that rests there is to stop, "" for none
    std::string etcd_leader;  ///< the control plane whose etcd leads, "" if it is not known
    std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>>
        patches;  ///< version: applied and available ones that it needs
};
/// Sets `patches` of what the metadata says.
void take_patches(KubernetesRequest& request, const kubernetes::Catalogue& catalogue);
/// The run of the first of `hops`, which are not empty: control planes by name, the one whose etcd leads after all
/// others, so that etcd elects once; then the other nodes by name if kubelets are part of it.
[[nodiscard]] upgrade::Run plan_run(const KubernetesRequest& request, const kubernetes::Observation& seen,
                                    const std::vector<Hop>& hops);

}  // namespace kmm::drive
