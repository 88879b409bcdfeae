// SPDX-License-Identifier: Apache-2.0
// The ordered upgrade of one module as data, and apply, which is the same but for nodes that end without the module. Source: facts KMM 8.1 and 8.2 for the flow of a node, the command line page
// section 3 for the names. Cordon, drain and uncordon are walked by runs that drain nodes, and only by those.
#include "upgrade/procedure.hpp"

namespace kmm::upgrade {
namespace {

std::vector<std::string> failed_node_states() {
    return {"checking-failed", "cordoning-failed",  "draining-failed",  "unloading-failed",
            "loading-failed",  "validating-failed", "uncordoning-failed"};
}

/// Every state between pending and a final one: the node has been touched or is about to be.
std::vector<std::string> middle_node_states() {
    return {"checking", "cordoning", "cordoned", "draining",   "drained",    "unloading",
            "unloaded", "loading",   "loaded",   "validating", "uncordoning"};
}

std::vector<std::string> operator+(std::vector<std::string> left, const std::vector<std::string>& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

Step run_step(std::string name, StateChange states, std::vector<std::string> guards, std::string action) {
    Step step;
    step.name = std::move(name);
    step.scope = Scope::run;
    step.run = std::move(states);
    step.guards = std::move(guards);
    step.action = std::move(action);
    return step;
}

Step node_step(std::string name, StateChange states, std::vector<std::string> guards, std::string action,
               std::string verification, Walk walk = Walk::released) {
    Step step;
    step.name = std::move(name);
    step.scope = Scope::node;
    step.node = std::move(states);
    step.guards = std::move(guards);
    step.action = std::move(action);
    step.verification = std::move(verification);
    step.walk = walk;
    return step;
}

Procedure make_module(std::string name, std::vector<std::string> validated_from) {
    Procedure::Parts parts;
    parts.name = std::move(name);
    parts.run_initial = "upgrade-started";
    parts.node_initial = "pending";
    parts.run_finals = {"upgrade-complete", "upgrade-aborted"};
    parts.node_finals = {"done", "skipped", "rolled-back"};
    parts.steps = {
        run_step("canary", {{"upgrade-started"}, "upgrading-canary", "upgraded-canary", "upgrading-canary-failed"},
                 {"cluster-identity", "module-version"}, "walk-canary-nodes"),
        run_step("nodes",
                 {{"upgrade-started", "upgraded-canary"}, "upgrading-nodes", "upgraded-nodes", "upgrading-nodes-failed"},
                 {"cluster-identity", "module-version"}, "walk-nodes"),
        node_step("check", {{"pending"}, "checking", "checking", "checking-failed"},
                  {"max-unavailable", "no-failed-node", "not-paused"}, "facts-status-check", "check-passed"),
        node_step("cordon", {{"checking"}, "cordoning", "cordoned", "cordoning-failed"}, {"boot-unchanged"}, "cordon",
                  "unschedulable"),
        node_step("drain", {{"cordoned"}, "draining", "drained", "draining-failed"}, {"boot-unchanged"}, "evict", "no-pods"),
        node_step("unload", {{"checking", "drained"}, "unloading", "unloaded", "unloading-failed"}, {"boot-unchanged"},
                  "labels-and-unload", "module-absent"),
        node_step("load", {{"checking", "drained", "unloaded"}, "loading", "loaded", "loading-failed"}, {"boot-unchanged"},
                  "labels-and-load", "identity-is-target"),
        node_step("validate", {std::move(validated_from), "validating", "done", "validating-failed"}, {"boot-unchanged"},
                  "status", "identity-is-target"),
        node_step("uncordon", {{"validating"}, "uncordoning", "done", "uncordoning-failed"}, {}, "uncordon", "schedulable"),
        node_step("rollback",
                  {middle_node_states() + failed_node_states() + std::vector<std::string>{"pending", "done", "skipped"},
                   "rolling-back", "rolled-back", "rolling-back-failed"},
                  {}, "labels-and-load-previous", "identity-is-previous"),
        run_step("complete", {{"upgraded-nodes"}, "", "upgrade-complete", ""}, {"every-node-final"}, "none"),
        run_step("abort",
                 {{"upgrade-started", "upgrading-canary", "upgrading-canary-failed", "upgraded-canary", "upgrading-nodes",
                   "upgrading-nodes-failed", "upgraded-nodes"},
                  "upgrade-aborting",
                  "upgrade-aborted",
                  "upgrade-aborting-failed"},
                 {"cluster-identity"}, "roll-back-nodes"),
    };
    const auto side = [&](const std::string& from, const std::string& to, Cause cause) {
        parts.side_moves.push_back(Move{Scope::node, from, to, cause, ""});
    };
    for (const auto& state : failed_node_states()) {
        side(state, "pending", Cause::retry);
        side(state, "skipped", Cause::skip);
    }
    side("rolling-back-failed", "pending", Cause::retry);
    // Where a cordon is to be lifted yet, a validated node is not done.
    parts.side_moves.push_back(Move{Scope::node, "validating", "validating", Cause::finish, "validate"});
    // At the end of a run a node that was done turns out to have been changed by somebody else.
    side("done", "validating-failed", Cause::observe);
    // A node that rebooted or changed its kernel is planned anew; a look that changes nothing is recorded as well.
    for (const auto& state : middle_node_states()) {
        side(state, "pending", Cause::observe);
        side(state, state, Cause::observe);
    }
    for (const std::string state : {"pending", "done", "skipped", "rolling-back", "rolled-back"})
        side(state, state, Cause::observe);
    for (const auto& state : failed_node_states()) side(state, state, Cause::observe);
    side("rolling-back-failed", "rolling-back-failed", Cause::observe);
    return Procedure(std::move(parts));
}

}  // namespace

const Procedure& procedure_module() {
    static const Procedure procedure = make_module("module", {"checking", "loaded"});
    return procedure;
}

const Procedure& procedure_apply() {
    static const Procedure procedure = make_module("apply", {"checking", "unloaded", "loaded"});
    return procedure;
}

}  // namespace kmm::upgrade
