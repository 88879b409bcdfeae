// SPDX-License-Identifier: Apache-2.0
// A small run and a walker that plays the driver's part without any cluster.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::upgrade::test {

inline Run make_run(int nodes, const Options& options = {}) {
    Run run;
    run.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
    run.procedure = module::k_procedure_module;
    run.rules = &module::procedure_module();
    module::set_subject(run, {"drivers", "kmm-hello", "", "", {}});
    run.from_version = "v1";
    run.to_version = "v2";
    run.state = "upgrade-started";
    run.options = options;
    for (int index = 0; index < nodes; ++index) {
        NodeRecord node;
        node.name = std::string("node-") + static_cast<char>('a' + index);
        node.from_version = node.current_version = "v1";
        run.nodes.push_back(node);
    }
    return run;
}

/// A run of a procedure that is not about modules.
inline Run make_fake_run(const Procedure& procedure, int nodes, const Options& options = {}) {
    auto run = make_run(nodes, options);
    run.procedure = "fake";
    run.rules = &procedure;
    run.subject = value::Node::mapping({{"parcel", "box"}});
    return run;
}

/// Takes one event over, as a Ledger does, whose index is then that of the run.
inline void apply(Run& run, const Event& event, const std::string& time) {
    Ledger ledger(run);
    ledger.commit(ledger.judge(event, time));
    CHECK(ledger.index() == NodeIndex(ledger.run()));
    run = std::move(ledger).release();
}

/// Records events and applies them, as the driver does.
struct Journal {
    Run run;
    std::vector<TimedPayload> entries;
    value::Node node_fact;  ///< facts of every step of a node that ends

    explicit Journal(Run start) : run(std::move(start)) { entries.push_back({"t0", encode(run)}); }

    void add(const Event& event) {
        apply(run, event, "t" + std::to_string(entries.size()));
        entries.push_back({"t" + std::to_string(entries.size()), encode(event)});
    }
    void node(EventKind kind, const std::string& name, const std::string& step, const std::string& to,
              value::Node facts = {}) {
        Event event;
        event.kind = kind;
        event.node = name;
        event.step = step;
        event.from = run.find(name)->state;
        event.to = to;
        event.facts = std::move(facts);
        add(event);
    }
    void decision(EventKind kind, const std::string& step = "", const std::string& to = "") {
        Event event;
        event.kind = kind;
        event.step = step;
        event.from = to.empty() ? "" : run.state;
        event.to = to;
        add(event);
    }
    [[nodiscard]] const Table& table() const { return procedure_of(run).table(); }
    /// Of a stage that is a step of the run, the move into it was its begin.
    void begin(const NodeStep& step) {
        if (!step.node.empty()) node(EventKind::intent, step.node, step.step, table().find_step(step.step)->during);
    }
    void end(const NodeStep& step, bool good) {
        const auto& states = *table().find_step(step.step);
        auto facts = node_fact.is_null() ? value::Node::mapping() : node_fact;
        if (step.step == "check") facts.set("next", "unload");
        const auto kind = good ? EventKind::done : EventKind::failed;
        const auto& to = good ? states.done : states.failed;
        if (step.node.empty()) return decision(kind, step.step, to);
        node(kind, step.node, step.step, to, std::move(facts));
    }
    /// Walks until the run pauses or ends. `fails` says which steps fail. Returns the steps in order.
    std::vector<NodeStep> walk(const std::function<bool(const NodeStep&)>& fails = [](const NodeStep&) {
        return false;
    }) {
        std::vector<NodeStep> steps;
        for (;;) {
            const auto next = next_steps(run, {});
            if (next.next == Next::finished) return steps;
            if (next.next == Next::pause) {
                if (!run.paused) add(next.event);
                return steps;
            }
            if (next.next == Next::move) {
                add(next.event);
                continue;
            }
            for (const auto& step : next.steps) begin(step);
            for (const auto& step : next.steps) {
                end(step, !fails(step));
                steps.push_back(step);
            }
        }
    }
};

}  // namespace kmm::upgrade::test
