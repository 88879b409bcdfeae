// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/differences.hpp"

#include <algorithm>
#include <chrono>

#include "kmm-upgrade/reach/cluster_access.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "upgrade/drive/driver.hpp"
#include "upgrade/drive_cluster/cluster_view.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::tool_upgrade {

using kubernetes::Version;

std::vector<Difference> differences(const upgrade::Run& run, const kubernetes::Observation& seen) {
    const bool has_kubelets = !upgrade::kubernetes::subject_of(run).kubelet.empty();
    std::vector<Difference> found;
    for (const auto& record : run.nodes) {
        if (record.open || !record.current_known) continue;
        const auto kubelet = std::find_if(seen.kubelets.begin(), seen.kubelets.end(),
                                          [&](const auto& each) { return each.node == record.name; });
        if (kubelet == seen.kubelets.end()) continue;
        const auto compare = [&](const char* part, const std::optional<Version>& runs, const std::string& recorded) {
            if (recorded.empty() || (runs && runs->text() == recorded)) return;
            found.push_back({record.name, part, runs ? runs->text() : "", recorded});
        };
        if (has_kubelets) compare("kubelet", kubelet->version, record.current_version);
        compare("control plane", seen.control_plane_of(record.name), upgrade::kubernetes::read(record).control_plane);
    }
    return found;
}

std::vector<Difference> look_for_differences(RecordAccess& record, const upgrade::Run& run) {
    constexpr std::chrono::milliseconds k_patience{5'000};
    if (const auto fault = seal_fault(record); !fault.empty())
        throw Error(Exit::no_permission, "record-untrusted",
                    "the record that names it is not known to be this user's: " + fault);
    ClusterAccess access(record);
    auto& cluster = access.open(cluster::Place::read(run.cluster_place, run.cluster_context), k_patience);
    drive::require_cluster_of(run, *cluster.store);
    return differences(run, kubernetes::observe(drive::view_of(cluster)->read(drive::ReadExtent::control_plane)));
}

}  // namespace kmm::tool_upgrade
