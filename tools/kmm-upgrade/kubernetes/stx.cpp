// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/stx.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "cli/text.hpp"
#include "kubernetes/versions/version.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::string_view k_failed = "-failed";

bool begins_with(const std::string& state, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](auto word) { return state.starts_with(word); });
}

/// Of a run that is aborted, or being so.
bool is_aborted(const upgrade::Run& run) { return run.state.starts_with("upgrade-abort"); }

/// Whether a node has the version of before the run as its target again.
bool goes_back(const upgrade::Run& run, const upgrade::NodeRecord& node) {
    const bool stays = run.rollback == upgrade::Rollback::current && node.state == upgrade::k_node_done;
    if (node.state == upgrade::k_node_rolled_back) return true;
    return is_aborted(run) && run.rollback.value_or(upgrade::Rollback::none) != upgrade::Rollback::none && !stays;
}

/// A host's status is what is done to it, and that its kubelet is through until the upgrade is complete; during an
/// abort it is the state of the run.
std::string status_of(const upgrade::Run& run, const upgrade::NodeRecord& node) {
    if (is_aborted(run)) return run.state == upgrade::k_run_aborted ? "None" : "upgrade-aborting";
    if (begins_with(node.state, {"upgrading-"})) return node.state;
    const bool is_through = begins_with(node.state, {"kubelet-upgraded", "validating", "uncordoning", "done"});
    const bool has_kubelets = !upgrade::kubernetes::subject_of(run).kubelet.empty();
    const bool is_over = run.state == upgrade::k_run_complete && !upgrade::is_followed(run);
    return is_through && has_kubelets && !is_over ? "upgraded-kubelet" : "None";
}

std::vector<std::string> host_of(const upgrade::Run& run, const upgrade::NodeRecord& record, std::size_t id) {
    const auto node = upgrade::kubernetes::read(record);
    const bool has_begun = !begins_with(record.state, {"pending", "prepar"});
    const auto known = [](const std::string& version) { return version.empty() ? std::string("unknown") : version; };
    // Where only control planes are upgraded, the version that is followed is theirs.
    const bool is_kubelet = !upgrade::kubernetes::subject_of(run).kubelet.empty();
    const auto kubelet = is_kubelet ? record.current_version : node.kept_kubelet;
    return {std::to_string(id),
            base::escape(record.name),
            node.is_control_plane ? "controller" : "worker",
            has_begun && !goes_back(run, record) ? run.to_version : known(record.from_version),
            node.is_control_plane ? known(node.control_plane) : "N/A",
            is_kubelet && !record.current_known ? "unknown" : known(kubelet),
            status_of(run, record)};
}

/// The seed has no state of a kubelet stage that is through, and its upgrade is complete at its target only.
std::string state_of(const upgrade::Run& run) {
    if (run.state == "upgraded-kubelets") return "upgrading-kubelets";
    if (!upgrade::is_followed(run)) return run.state;
    if (!upgrade::kubernetes::subject_of(run).kubelet.empty()) return "upgrading-kubelets";
    const auto control_planes =
        std::count_if(run.nodes.begin(), run.nodes.end(), upgrade::kubernetes::is_control_plane);
    return control_planes > 1 ? "upgraded-second-master" : "upgraded-first-master";
}

/// The seed has one version from which the whole way began: of those that are known, the farthest from the target.
std::string from_of(const upgrade::Run& run) {
    using kubernetes::Version;
    std::vector<Version> known;
    const auto add = [&](std::string_view text) {
        if (const auto version = Version::parse(text)) known.push_back(*version);
    };
    for (const auto text : base::split(run.from_version, ',')) add(text);
    for (const auto& node : run.nodes) add(upgrade::kubernetes::read(node).kept_kubelet);
    const auto target = Version::parse(upgrade::kubernetes::subject_of(run).target);
    if (known.empty() || !target) return run.from_version;
    const auto [lowest, highest] = std::minmax_element(known.begin(), known.end());
    return (*highest > *target ? *highest : *lowest).text();
}

}  // namespace

std::string framed(const std::vector<std::string>& headers, const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& header : headers) widths.push_back(cli::display_width(header));
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cli::display_width(row[i]));
    std::string rule = "+";
    for (const auto width : widths) rule += std::string(width + 2, '-') + "+";
    rule += "\n";
    const auto line = [&](const std::vector<std::string>& cells) {
        std::string text = "|";
        for (std::size_t i = 0; i < cells.size(); ++i) text += " " + cli::pad(cells[i], widths[i]) + " |";
        return text + "\n";
    };
    std::string text = rule + line(headers) + rule;
    for (const auto& row : rows) text += line(row);
    return text + rule;
}

std::string framed_upgrade(const upgrade::Run& run) {
    const bool is_failed = run.state.ends_with(k_failed);
    const auto step = is_failed ? run.state.substr(0, run.state.size() - k_failed.size()) : std::string();
    std::vector<std::vector<std::string>> rows{
        {"uuid", run.lineage},
        {"from_version", from_of(run)},
        {"to_version", upgrade::kubernetes::subject_of(run).target},
        {"state", is_failed ? "upgrade-failed" : state_of(run)},
        {"created_at", run.created},
        {"updated_at", run.since}};
    if (is_failed) rows.insert(rows.begin() + 4, {"failed_step", step});
    return framed({"Property", "Value"}, rows);
}

namespace {

std::string host_frame(const std::vector<std::vector<std::string>>& rows) {
    return framed(
        {"id", "hostname", "personality", "target_version", "control_plane_version", "kubelet_version", "status"},
        rows);
}

}  // namespace

std::string framed_hosts(const upgrade::Run& run) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& node : run.nodes) rows.push_back(host_of(run, node, rows.size() + 1));
    return host_frame(rows);
}

std::string framed_hosts(const kubernetes::Observation& seen) {
    std::vector<std::vector<std::string>> rows;
    const auto known = [](const std::optional<kubernetes::Version>& version) {
        return version ? version->text() : std::string("unknown");
    };
    const auto& controllers = seen.control_plane_nodes;
    for (const bool is_controller : {true, false}) {
        for (const auto& kubelet : seen.kubelets) {
            if (std::count(controllers.begin(), controllers.end(), kubelet.node) != (is_controller ? 1 : 0)) continue;
            rows.push_back({std::to_string(rows.size() + 1), base::escape(kubelet.node),
                            is_controller ? "controller" : "worker", "None",
                            is_controller ? known(seen.control_plane_of(kubelet.node)) : "N/A",
                            known(kubelet.version), "None"});
        }
    }
    return host_frame(rows);
}

}  // namespace kmm::tool_upgrade
