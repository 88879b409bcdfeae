// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/plan_runs.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::drive {

using kubernetes::Step;
using kubernetes::Version;

std::vector<Hop> hops_of(const kubernetes::Path& path) {
    std::vector<Hop> hops;
    for (const auto& step : path.steps) {
        const bool is_kubelets = step.part == Step::Part::kubelets;
        if (!is_kubelets) hops.push_back({step.version.text(), ""});
        else if (!hops.empty() && hops.back().kubelet.empty()) hops.back().kubelet = step.version.text();
        else hops.push_back({"", step.version.text()});
    }
    return hops;
}

std::string to_string(const Hop& hop) {
    std::vector<std::string> parts;
    if (!hop.control_plane.empty()) parts.push_back("control planes " + hop.control_plane);
    if (!hop.kubelet.empty()) parts.push_back("kubelets " + hop.kubelet);
    return base::join(parts, ", ");
}

kubernetes::Path path_to(const kubernetes::Catalogue& catalogue, const kubernetes::Observation& seen,
                         const Version& target) {
    if (!seen.faults.empty()) throw Error::from_diagnostics(seen.faults);
    if (catalogue.find(target) == nullptr)
        throw Error(Exit::checks_failed, "version-unknown",
                    fmt::format("{} is not in the metadata of versions", target.text()))
            .hint("kmm-upgrade versions lists those that are; add it with --versions FILE");
    auto path = kubernetes::find_path(catalogue, seen, target);
    if (!path.problem.empty()) throw Error(Exit::checks_failed, "no-path", path.problem).hint(path.hint);
    return path;
}

void take_patches(KubernetesRequest& request, const kubernetes::Catalogue& catalogue) {
    for (const auto& entry : catalogue.versions)
        if (!entry.applied_patches.empty() || !entry.available_patches.empty())
            request.patches.emplace(entry.version.text(), std::pair(entry.applied_patches, entry.available_patches));
}

upgrade::Run plan_run(const KubernetesRequest& request, const kubernetes::Observation& seen,
                      const std::vector<Hop>& hops) {
    const auto& hop = hops.front();
    const auto& procedure = request.is_networking_first ? upgrade::kubernetes::procedure_networking_first()
                                                        : upgrade::kubernetes::procedure_kubernetes();
    auto run = begin_run(request, procedure, request.options);
    run.until = request.until;
    for (const auto& name : request.left_out) run.left_out.push_back({name, "--leave-out"});
    run.to_version = hop.control_plane.empty() ? hop.kubelet : hop.control_plane;
    auto subject = request.subject;
    subject.control_plane = hop.control_plane;
    subject.kubelet = hop.kubelet;
    subject.rest.clear();
    subject.applied_patches.clear();
    subject.available_patches.clear();
    if (const auto found = request.patches.find(run.to_version); found != request.patches.end())
        std::tie(subject.applied_patches, subject.available_patches) = found->second;
    for (std::size_t i = 1; i < hops.size(); ++i) subject.rest.push_back(to_string(hops[i]));
    set_subject(run, subject);

    std::vector<std::string> names = seen.control_plane_nodes, versions;
    std::sort(names.begin(), names.end());
    const auto control_planes = names.size();
    if (!hop.kubelet.empty())
        for (const auto& running : seen.kubelets)
            if (!std::binary_search(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(control_planes),
                                    running.node))
                names.push_back(running.node);
    std::sort(names.begin() + static_cast<std::ptrdiff_t>(control_planes), names.end());
    const auto workers = names.begin() + static_cast<std::ptrdiff_t>(control_planes);
    if (const auto leader = std::find(names.begin(), workers, request.etcd_leader); leader != workers)
        std::rotate(leader, leader + 1, workers);
    const auto kubelet_of = [&](const std::string& name) {
        const auto found = std::find_if(seen.kubelets.begin(), seen.kubelets.end(),
                                        [&](const auto& running) { return running.node == name; });
        return found == seen.kubelets.end() || !found->version ? std::string() : found->version->text();
    };
    std::set<Version> before;
    for (std::size_t i = 0; i < names.size(); ++i) {
        upgrade::kubernetes::Node node;
        node.name = names[i];
        node.is_control_plane = i < control_planes;
        if (const auto version = seen.control_plane_of(names[i]); node.is_control_plane && version)
            node.control_plane = node.from_control_plane = version->text();
        if (hop.kubelet.empty()) node.kept_kubelet = kubelet_of(names[i]);
        node.from_version = node.current_version = hop.kubelet.empty() ? node.control_plane : kubelet_of(names[i]);
        const auto& told =
            hop.control_plane.empty() || !node.is_control_plane ? node.from_version : node.from_control_plane;
        if (const auto version = Version::parse(told)) before.insert(*version);
        run.nodes.push_back(record_of(std::move(node)));
    }
    for (const auto& version : before) versions.push_back(version.text());
    run.from_version = base::join(versions, ",");
    return run;
}

}  // namespace kmm::drive
