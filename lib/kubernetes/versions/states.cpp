// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/states.hpp"

#include <algorithm>
#include <map>

#include "kubernetes/versions/path.hpp"

namespace kmm::kubernetes {

std::string_view to_string(State state) noexcept {
    switch (state) {
        case State::active: return "active";
        case State::partial: return "partial";
        case State::available: return "available";
        case State::unavailable: break;
    }
    return "unavailable";
}

std::vector<VersionRow> version_rows(const Catalogue& catalogue, const Observation& seen,
                                     const std::optional<Version>& upgraded_to) {
    std::map<Version, VersionRow> by_version;
    for (const auto& entry : catalogue.versions) { by_version[entry.version].entry = &entry; }
    for (const auto& node : seen.control_plane_nodes) {
        if (const auto version = seen.control_plane_of(node)) { ++by_version[*version].control_planes; }
    }
    for (const auto& kubelet : seen.kubelets) {
        if (kubelet.version) { ++by_version[*kubelet.version].kubelets; }
    }
    std::vector<VersionRow> rows;
    std::size_t running = 0;
    for (auto& [version, row] : by_version) {
        row.version = version;
        if (row.control_planes + row.kubelets > 0) {
            row.state = State::partial;
            ++running;
        }
        rows.push_back(std::move(row));
    }
    for (auto& row : rows) { row.is_target = row.version == upgraded_to; }
    if (running != 1) { return rows; }
    const auto active =
        std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.state == State::partial; });
    active->state = State::active;
    if (!upgraded_to) { active->is_target = true; }
    for (auto& row : rows) {
        if (row.version <= active->version) { continue; }
        const VersionRange now{active->version, active->version};
        if (find_path(catalogue, now, now, row.version).problem.empty()) { row.state = State::available; }
    }
    return rows;
}

const VersionRow* find_row(const std::vector<VersionRow>& rows, const Version& version) noexcept {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.version == version; });
    return found == rows.end() ? nullptr : &*found;
}

const VersionRow* active_row(const std::vector<VersionRow>& rows) noexcept {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.state == State::active; });
    return found == rows.end() ? nullptr : &*found;
}

}  // namespace kmm::kubernetes
