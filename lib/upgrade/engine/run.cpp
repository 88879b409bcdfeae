// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/run.hpp"

#include <algorithm>

#include "upgrade/engine/procedure.hpp"

namespace kmm::upgrade {

std::string_view to_string(Rollback rollback) noexcept {
    switch (rollback) {
        case Rollback::none: return "none";
        case Rollback::current: return "current";
        case Rollback::all: return "all";
    }
    return "none";
}

std::optional<Rollback> parse_rollback(std::string_view text) noexcept {
    for (const auto value : {Rollback::none, Rollback::current, Rollback::all})
        if (text == to_string(value)) return value;
    return std::nullopt;
}

std::string_view to_string(Via via) noexcept {
    switch (via) {
        case Via::self: return "self";
        case Via::operator_: return "operator";
        case Via::ssh: return "ssh";
        case Via::local: return "local";
    }
    return "ssh";
}

std::optional<Via> parse_via(std::string_view text) noexcept {
    for (const auto value : {Via::self, Via::operator_, Via::ssh, Via::local})
        if (text == to_string(value)) return value;
    return std::nullopt;
}

const NodeRecord* Run::find(std::string_view name) const noexcept {
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeRecord& node) { return node.name == name; });
    return found == nodes.end() ? nullptr : &*found;
}

NodeRecord* Run::find(std::string_view name) noexcept {
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeRecord& node) { return node.name == name; });
    return found == nodes.end() ? nullptr : &*found;
}

bool Run::is_partial() const {
    return partial_before || !left_out.empty() ||
           std::any_of(nodes.begin(), nodes.end(), [](const NodeRecord& node) { return node.state == "skipped"; });
}

Run begin_run(const Signature& signature, const Procedure& procedure, const Options& options) {
    Run run;
    run.lineage = signature.lineage;
    run.procedure = procedure.table().name();
    run.rules = &procedure;
    run.created = run.since = signature.created;
    run.created_by = signature.created_by;
    run.tool_version = signature.tool_version;
    run.state = k_run_started;
    run.options = options;
    return run;
}

std::vector<std::string> left_out_names(const Header& run) {
    std::vector<std::string> names;
    for (const auto& node : run.left_out) names.push_back(node.name);
    return names;
}

bool is_final_node_state(std::string_view state) {
    return state == k_node_done || state == k_node_skipped || state == k_node_rolled_back;
}

bool is_failed_node_state(std::string_view state) { return state.ends_with("-failed"); }

bool is_final_run_state(std::string_view state) { return state == k_run_complete || state == k_run_aborted; }

}  // namespace kmm::upgrade
