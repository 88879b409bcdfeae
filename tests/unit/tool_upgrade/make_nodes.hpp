// SPDX-License-Identifier: Apache-2.0
// Runs of many nodes, in every state.
#pragma once

#include <string>

#include <fmt/format.h>

#include "upgrade/module/subject.hpp"

namespace kmm::tool_upgrade::test {

inline upgrade::Run make_nodes(std::size_t count, const std::string& format = "node-{:04}") {
    upgrade::Run run;
    run.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
    run.procedure = upgrade::module::k_procedure_module;
    run.rules = &upgrade::module::procedure_module();
    upgrade::module::set_subject(run, {"drivers", "kmm-hello", "", "", {}});
    run.from_version = "v1";
    run.to_version = "v2";
    run.state = "upgrading-nodes";
    run.created = "2026-09-21T14:13:00Z";
    for (std::size_t index = 1; index <= count; ++index) {
        upgrade::NodeRecord node;
        node.name = fmt::format(fmt::runtime(format), index);
        node.kernel = "6.1.0-56-amd64";
        node.current_version = "v1";
        run.nodes.push_back(node);
    }
    return run;
}

inline void put(upgrade::NodeRecord& node, const std::string& state, const std::string& message = "") {
    node.state = state;
    node.touched = state == "pending" ? 0 : 1;
    node.message = message;
    node.since = "2026-09-21T14:14:15Z";
}

inline void fail(upgrade::NodeRecord& node, const std::string& code, const std::string& message,
                 const std::string& hint = "") {
    put(node, "checking-failed", message);
    node.reason = code;
    node.hint = hint;
}

}  // namespace kmm::tool_upgrade::test
