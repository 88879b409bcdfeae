// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/path.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kubernetes {
namespace {

/// The versions of the control planes after each step from `from` to `target`; nullopt if no way is known.
std::optional<std::vector<Version>> hops(const Catalogue& catalogue, const Version& from, const Version& target) {
    std::vector<const VersionEntry*> between;
    for (const auto& entry : catalogue.versions) {
        if (entry.version > from && entry.version <= target) { between.push_back(&entry); }
    }
    constexpr auto k_none = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> steps(between.size(), k_none), before(between.size(), k_none);
    for (std::size_t i = 0; i < between.size(); ++i) {
        if (between[i]->follows(from)) {
            steps[i] = 1;
            continue;
        }
        // Of equal ways the one through the highest version: the last one wins.
        for (std::size_t k = 0; k < i; ++k) {
            if (steps[k] == k_none || !between[i]->follows(between[k]->version) || steps[k] + 1 > steps[i]) {
                continue;
            }
            steps[i] = steps[k] + 1;
            before[i] = k;
        }
    }
    if (between.empty() || between.back()->version != target || steps.back() == k_none) { return std::nullopt; }
    std::vector<Version> way;
    for (std::size_t at = between.size() - 1; at != k_none; at = before[at]) { way.push_back(between[at]->version); }
    std::reverse(way.begin(), way.end());
    return way;
}

/// The highest version below `target` that can be reached, for the hint.
std::string reachable_hint(const Catalogue& catalogue, const Version& from, const Version& target) {
    for (auto entry = catalogue.versions.rbegin(); entry != catalogue.versions.rend(); ++entry) {
        if (entry->version < target && entry->version > from && hops(catalogue, from, entry->version)) {
            return fmt::format(
                "the highest version that can be reached is {}; add the version that is missing with --versions",
                entry->version.text());
        }
    }
    return "correct the metadata with --versions: the versions between them, and what upgrade_from of each names";
}

/// Why there is no way to the last version, with what leads there.
void explain_no_way(const Catalogue& catalogue, const Version& from, const Version& target, Path& path) {
    path.hint = reachable_hint(catalogue, from, target);
    const auto* entry = catalogue.find(target);
    const bool is_limited = entry != nullptr && entry->upgrade_from;
    if (!is_limited) {
        path.problem = fmt::format("no way from {} to {} is known: kubeadm upgrades one minor at a time", from.text(),
                                   target.text());
        return;
    }
    std::vector<std::string> names;
    for (const auto& each : *entry->upgrade_from) { names.push_back(each.text()); }
    path.problem = fmt::format("no way from {} to {} is known: its upgrade_from names {}", from.text(), target.text(),
                               names.empty() ? "no version" : base::join(names, ", "));
}

/// The way to a lower version: what has gone back already stays.
Path path_back(const Catalogue& catalogue, const VersionRange& control_planes, const VersionRange& kubelets,
               const Version& target) {
    Path path;
    if (control_planes.lowest < target) {
        path.problem = fmt::format("control planes run {} and {}, and {} is between them", control_planes.lowest.text(),
                                   control_planes.highest.text(), target.text());
        path.hint = "bring them all to the higher version first";
        return path;
    }
    for (const auto& current : {control_planes.lowest, control_planes.highest}) {
        if (current == target) { continue; }
        const auto* entry = catalogue.find(current);
        if (entry != nullptr &&
            std::find(entry->downgrade_to.begin(), entry->downgrade_to.end(), target) != entry->downgrade_to.end()) {
            continue;
        }
        path.problem = fmt::format("{} is below {}, which runs and does not list it in downgrade_to", target.text(),
                                   current.text());
        path.hint = "a cluster goes back within its minor only, to versions that the metadata lists";
        return path;
    }
    if (kubelets.lowest != target || kubelets.highest != target) {
        path.steps.push_back({Step::Part::kubelets, target});
    }
    if (control_planes.highest != target) { path.steps.push_back({Step::Part::control_planes, target}); }
    return path;
}

}  // namespace

std::int64_t kubelet_skew_max(const Version& kubelet) noexcept {
    return kubelet.major <= 1 && kubelet.minor < 25 ? 2 : 3;
}

Path find_path(const Catalogue& catalogue, const VersionRange& control_planes, const VersionRange& kubelets,
               const Version& target) {
    Path path;
    const Version& control_plane = control_planes.lowest;
    const Version& kubelet = kubelets.lowest;
    if (target < control_planes.highest) { return path_back(catalogue, control_planes, kubelets, target); }
    if (kubelets.highest.line() > control_plane.line()) {
        path.problem = fmt::format("a kubelet runs {}, newer than the control plane's {}", kubelets.highest.text(),
                                   control_plane.text());
        path.hint = "bring the control plane to the version of the kubelets first";
        return path;
    }
    if (target > control_plane) {
        const auto way = hops(catalogue, control_plane, target);
        if (!way) {
            explain_no_way(catalogue, control_plane, target, path);
            return path;
        }
        Version oldest = kubelet, current = control_plane;
        for (const auto& next : *way) {
            if (minors_behind(oldest, next) > kubelet_skew_max(oldest)) {
                if (oldest == current) {
                    path.problem =
                        fmt::format("control planes of {} cannot have kubelets of {}", next.text(), oldest.text());
                    path.steps.clear();
                    return path;
                }
                path.steps.push_back({Step::Part::kubelets, current});
                oldest = current;
            }
            path.steps.push_back({Step::Part::control_planes, next});
            current = next;
        }
    }
    if (kubelet != target || kubelets.highest != target) { path.steps.push_back({Step::Part::kubelets, target}); }
    return path;
}

Path find_path(const Catalogue& catalogue, const Observation& seen, const Version& target) {
    return find_path(catalogue, {*seen.lowest_control_plane(), *seen.highest_control_plane()},
                     {*seen.lowest_kubelet(), *seen.highest_kubelet()}, target);
}

std::string to_string(const Step& step) {
    return fmt::format("{} {}", step.part == Step::Part::kubelets ? "kubelets" : "control planes", step.version.text());
}

}  // namespace kmm::kubernetes
