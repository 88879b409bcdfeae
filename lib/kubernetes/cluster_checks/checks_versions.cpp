// SPDX-License-Identifier: Apache-2.0
// Checks of versions: the target, the way there, skew.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/versions/path.hpp"

namespace kmm::kubernetes {
namespace {

Finding version_known(const CheckInput& input) {
    if (input.catalogue.find(*input.target) != nullptr) {
        return {Outcome::ok,
                fmt::format("{} is in the metadata ({})", input.target->text(), base::escape(input.catalogue.source))};
    }
    std::vector<std::string> known;
    for (const auto& entry : input.catalogue.versions) { known.push_back(entry.version.text()); }
    std::reverse(known.begin(), known.end());
    return {Outcome::fail,
            fmt::format("{} is not in the metadata ({}), which has {}", input.target->text(),
                        base::escape(input.catalogue.source), known.empty() ? "no version" : name_some(known))};
}

/// The way to the target; nullopt, with a finding, if none can be computed.
std::optional<Path> path_of(const CheckInput& input, Finding& finding) {
    if (auto unknown = versions_unknown(input)) {
        finding = std::move(*unknown);
        return std::nullopt;
    }
    if (input.catalogue.find(*input.target) == nullptr) {
        finding = {Outcome::fail, fmt::format("{} is not in the metadata", input.target->text()), "see version-known"};
        return std::nullopt;
    }
    if (!input.seen.lowest_control_plane() || !input.seen.lowest_kubelet()) {
        finding = {Outcome::fail, "the versions that run are not known"};
        return std::nullopt;
    }
    auto path = find_path(input.catalogue, input.seen, *input.target);
    if (!path.problem.empty()) {
        finding = {Outcome::fail, std::move(path.problem), std::move(path.hint)};
        return std::nullopt;
    }
    return path;
}

Finding version_path(const CheckInput& input) {
    Finding finding;
    const auto path = path_of(input, finding);
    if (!path) { return finding; }
    if (path->steps.empty()) {
        return {Outcome::fail, fmt::format("every control plane and kubelet runs {} already", input.target->text()),
                "name a higher version: kmm-upgrade versions lists them"};
    }
    std::vector<std::string> steps;
    for (const auto& step : path->steps) { steps.push_back(to_string(step)); }
    return {Outcome::ok, base::join(steps, ", then ")};
}

/// Nodes whose name is not that of their host, as kubeadm takes it.
std::vector<std::string> other_host_names(const NodeAnswers& answers) {
    std::vector<std::string> names;
    for (const auto& [name, answer] : answers) {
        const auto host = answer.facts.is_null() ? std::string() : answer.facts.get_string({"hostName"});
        if (!host.empty() && base::to_lower(host) != name) {
            names.push_back(fmt::format("{} (host {})", base::escape(name), base::escape(host)));
        }
    }
    return names;
}

Finding known_issues(const CheckInput& input) {
    Finding finding;
    std::vector<std::string> problems, unasked, unread;
    // A member may lose data in a crash, and removed members may come back.
    const Version etcd_first{3, 5, 0, ""}, etcd_fixed{3, 5, 3, ""};
    for (const auto& member : input.seen.etcd) {
        if (!member.version) { unread.push_back(member.problem); }
        if (member.version && *member.version >= etcd_first && *member.version < etcd_fixed) {
            problems.push_back(fmt::format("etcd {} on {}: data become inconsistent after a crash, removed members "
                                           "return (etcd#13766, etcd#13196)",
                                           member.version->text().substr(1), base::escape(member.node)));
            finding.fix = "set etcd.local.imageTag to 3.5.26-0 or later and apply the running version again";
        }
    }
    const auto path = path_of(input, finding);
    if (!path && problems.empty()) { return {Outcome::skip, "there is no way to the target, see version-path"}; }
    std::set<Version> versions;
    if (path) {
        for (const auto& step : path->steps) { versions.insert(step.version); }
    }
    for (const auto& version : versions) {
        for (const auto* known : input.catalogue.issues_of(version)) {
            auto text = fmt::format("{}: {}", version.text(), base::escape(known->issue));
            if (!known->needs_other_host_name) {
                problems.push_back(std::move(text));
            } else if (input.nodes == nullptr) {
                unasked.push_back(std::move(text));
            } else if (const auto names = other_host_names(*input.nodes); !names.empty()) {
                problems.push_back(fmt::format("{}: {}", text, name_some(names)));
            }
        }
    }
    if (problems.empty() && !unasked.empty()) {
        return {Outcome::skip, fmt::format("{}; no node was asked for its host name", base::join(unasked, "; "))};
    }
    if (problems.empty() && !unread.empty()) { return {Outcome::skip, name_some(unread)}; }
    finding.detail = problems.empty() ? "none is known" : base::join(problems, "; ");
    finding.outcome = problems.empty() ? Outcome::ok : Outcome::fail;
    return finding;
}

Finding versions_uniform(const CheckInput& input) {
    if (!input.seen.faults.empty()) {
        std::vector<std::string> problems;
        for (const auto& fault : input.seen.faults) { problems.push_back(fault.message); }
        return {Outcome::fail, name_some(problems), fixes_of(input.seen.faults)};
    }
    std::map<Version, std::vector<std::string>> users;
    for (const auto& running : input.seen.control_plane) {
        users[*running.version].push_back(fmt::format("{} on {}", running.component, base::escape(running.node)));
    }
    for (const auto& running : input.seen.kubelets) {
        users[*running.version].push_back(fmt::format("kubelet on {}", base::escape(running.node)));
    }
    if (users.size() == 1) {
        return {Outcome::ok, fmt::format("every control plane and kubelet runs {}", users.begin()->first.text())};
    }
    std::vector<std::string> parts;
    for (const auto& [version, names] : users) {
        parts.push_back(fmt::format("{}: {}", version.text(), name_some(names)));
    }
    return {Outcome::fail, base::join(parts, "; "), distribution_hint(input.inventory)};
}

/// The lowest and highest versions of a part of the cluster.
struct Range {
    Version low, high;
};

std::optional<Range> range_of(const std::vector<Running>& all, std::string_view component, bool equal) {
    std::optional<Range> range;
    for (const auto& running : all) {
        if ((running.component == component) != equal || !running.version) { continue; }
        if (!range) { range = Range{*running.version, *running.version}; }
        range->low = std::min(range->low, *running.version);
        range->high = std::max(range->high, *running.version);
    }
    return range;
}

constexpr const char* k_older_control_planes = "upgrade the older control planes first";

/// What breaks the skew policy of Kubernetes, with what to do; "" if nothing does.
Finding skew_problem(const Range& servers, const Range& kubelets, std::string_view part = "kubelet") {
    if (minors_behind(servers.low, servers.high) > 1) {
        return {Outcome::fail,
                fmt::format("API servers of {} and {} are more than one minor apart", servers.low.text(),
                            servers.high.text()),
                k_older_control_planes};
    }
    if (minors_behind(servers.low, kubelets.high) > 0) {
        return {Outcome::fail,
                fmt::format("{} {} is newer than API server {}", part, kubelets.high.text(), servers.low.text()),
                fmt::format("bring the {} back to the version of the control plane", part)};
    }
    if (const auto max = kubelet_skew_max(kubelets.low); minors_behind(kubelets.low, servers.high) > max) {
        return {Outcome::fail,
                fmt::format("{} {} is more than {} minors older than API server {}", part, kubelets.low.text(), max,
                            servers.high.text()),
                fmt::format("upgrade the older {} first", part)};
    }
    return {Outcome::ok, ""};
}

/// The same of kubelets that stay as they are.
Finding skew_of_left_out(const CheckInput& input, const Range& servers) {
    for (const auto& node : input.inventory.left_out) {
        const auto version = Version::parse(node.kubelet);
        if (!version) { continue; }
        auto problem = skew_problem(servers, {*version, *version});
        if (problem.outcome == Outcome::ok) { continue; }
        problem.detail = fmt::format("{}, which is left out: {}", base::escape(node.meta.name), problem.detail);
        problem.fix = "upgrade its kubelet by hand first, or remove it from the cluster";
        return problem;
    }
    return {Outcome::ok, ""};
}

Finding skew_now(const CheckInput& input, Range& servers, Range& kubelets) {
    const auto api = range_of(input.seen.control_plane, "kube-apiserver", true);
    const auto others = range_of(input.seen.control_plane, "kube-apiserver", false);
    const auto nodes = range_of(input.seen.kubelets, "kubelet", true);
    if (!api || !others || !nodes) { return {Outcome::fail, "the versions that run are not known"}; }
    servers = *api;
    kubelets = *nodes;
    if (auto problem = skew_problem(servers, kubelets); problem.outcome == Outcome::fail) { return problem; }
    for (const auto& running : input.seen.control_plane) {
        // kubeadm's talk to the API server of their own node.
        const auto own = std::find_if(
            input.seen.control_plane.begin(), input.seen.control_plane.end(), [&](const auto& each) {
                return each.component == "kube-apiserver" && each.node == running.node && each.version;
            });
        const auto& server = own == input.seen.control_plane.end() ? api->low : *own->version;
        if (running.version && minors_behind(server, *running.version) > 0) {
            return {Outcome::fail,
                    fmt::format("{} {} on {} is newer than API server {}", running.component, running.version->text(),
                                base::escape(running.node), server.text()),
                    "upgrade the older API servers first"};
        }
    }
    if (minors_behind(others->low, api->high) > 1) {
        return {Outcome::fail,
                fmt::format("controller manager or scheduler {} is more than one minor older than API server {}",
                            others->low.text(), api->high.text()),
                k_older_control_planes};
    }
    for (const auto& proxy : input.seen.proxies) {
        if (!proxy.version) { return {Outcome::skip, proxy.problem}; }
        auto problem = skew_problem(servers, {*proxy.version, *proxy.version}, "kube-proxy");
        if (problem.outcome == Outcome::fail) {
            problem.detail = fmt::format("{}: {}", base::escape(proxy.node), problem.detail);
            return problem;
        }
    }
    if (auto problem = skew_of_left_out(input, servers); problem.outcome == Outcome::fail) { return problem; }
    return {Outcome::ok, fmt::format("API servers {} to {}, kubelets {} to {}", servers.low.text(), servers.high.text(),
                                     kubelets.low.text(), kubelets.high.text())};
}

/// What kube-proxy would be too old for after the step: kubeadm writes it once every control plane has the version, or
/// never. `proxies` becomes what it then is; nullopt if there is none.
Finding skew_of_proxies(const Step& step, const Range& during, bool is_kept, std::optional<Range>& proxies) {
    if (!proxies || step.part == Step::Part::kubelets) { return {Outcome::ok, ""}; }
    auto problem = skew_problem(during, *proxies, "kube-proxy");
    if (is_kept && problem.outcome == Outcome::fail) {
        problem.fix = "upgrade kube-proxy first: kubeadm is run without its phase that writes it";
    }
    if (!is_kept) { proxies = Range{step.version, step.version}; }
    return problem;
}

Finding skew_after_step(const CheckInput& input) {
    if (auto unknown = versions_unknown(input)) { return *unknown; }
    Range servers, kubelets;
    auto now = skew_now(input, servers, kubelets);
    if (!input.target || now.outcome != Outcome::ok) { return now; }
    Finding finding;
    const auto path = path_of(input, finding);
    if (!path) { return {Outcome::skip, "there is no way to the target, see version-path"}; }
    auto proxies = range_of(input.seen.proxies, "kube-proxy", true);
    const bool keeps_proxies = !skipped_phase(input.intent.skipped_phases, "kube-proxy").empty();
    for (const auto& step : path->steps) {
        const bool is_kubelets = step.part == Step::Part::kubelets;
        auto& changed = is_kubelets ? kubelets : servers;
        // While one node after the other is upgraded, and once all are.
        changed = {std::min(changed.low, step.version), std::max(changed.high, step.version)};
        auto problem = skew_problem(servers, kubelets);
        if (problem.outcome == Outcome::ok) { problem = skew_of_proxies(step, servers, keeps_proxies, proxies); }
        changed = {step.version, step.version};
        if (problem.outcome == Outcome::ok) { problem = skew_problem(servers, kubelets); }
        if (problem.outcome == Outcome::ok) { problem = skew_of_left_out(input, servers); }
        if (problem.outcome == Outcome::fail) {
            problem.detail = fmt::format("after {}: {}", to_string(step), problem.detail);
            return problem;
        }
    }
    return {Outcome::ok, fmt::format("within the supported skew now and after each step ({})", path->steps.size())};
}

Finding kubelet_not_newer(const CheckInput& input) {
    if (auto unknown = versions_unknown(input)) { return *unknown; }
    const auto servers = range_of(input.seen.control_plane, "kube-apiserver", true);
    if (!servers) { return {Outcome::fail, "the version of the API servers is not known"}; }
    std::vector<std::string> newer;
    for (const auto& kubelet : input.seen.kubelets) {
        if (minors_behind(servers->low, *kubelet.version) > 0) {
            newer.push_back(fmt::format("{} ({})", base::escape(kubelet.node), kubelet.version->text()));
        }
    }
    if (newer.empty()) {
        return {Outcome::ok, fmt::format("no kubelet is of a newer minor than {}", servers->low.text())};
    }
    return {Outcome::fail, fmt::format("newer than API server {}: {}", servers->low.text(), name_some(newer))};
}

constexpr CheckRow k_version_rows[] = {
    {"version-known", version_known},
    {"version-path", version_path},
    {"known-issues", known_issues},
    {"versions-uniform", versions_uniform},
    {"skew-after-step", skew_after_step},
    {"kubelet-not-newer", kubelet_not_newer},
};

}  // namespace

std::span<const CheckRow> version_checks() noexcept { return k_version_rows; }

}  // namespace kmm::kubernetes
