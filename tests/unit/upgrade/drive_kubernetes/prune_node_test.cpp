// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/prune_node.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/idle_clock.hpp"
#include "upgrade/drive/actor.hpp"

namespace kmm::drive {
namespace {

/// A node that answers to nothing while `hangs`, and how long it was waited for.
class Sleeper final : public cluster::NodeRunner {
public:
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        asked.push_back(call.timeout);
        cluster::WorkerReply reply;
        if (hangs) {
            reply.end = cluster::CallEnd::unknown;
            return reply;
        }
        reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                               {"kind", "KubernetesNodeStep"},
                                               {"outcome", "done"},
                                               {"message", "removed 1 old backup"}});
        return reply;
    }
    [[nodiscard]] std::string describe() const override { return "local"; }
    bool hangs = false;
    std::vector<std::chrono::milliseconds> asked;
};

TEST_CASE("a node that does not answer to prune is waited for once, later ones shortly; nothing fails") {
    using std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;
    Sleeper node;
    test::IdleClock clock;
    bool is_interrupted = false;
    std::vector<std::string> told;
    const auto interrupted = [&] { return is_interrupted; };
    const auto tell = [&](const std::string& name, const std::string& text) { told.push_back(name + " " + text); };
    NodeAgent agent(node, clock, interrupted, tell);
    NodePruner pruner(agent, interrupted, tell);
    const Deadline deadline(clock, minutes(15));
    CHECK(pruner.prune("a", "before-v1", 2, deadline) == "; removed 1 old backup");
    CHECK(told.empty());
    node.hangs = true;
    CHECK(pruner.prune("b", "before-v1", 2, deadline).empty());
    CHECK(pruner.prune("c", "before-v1", 2, deadline).empty());
    REQUIRE(told.size() == 2);
    CHECK(told[1].starts_with("c warning: not-pruned: "));
    node.hangs = false;
    CHECK(pruner.prune("d", "before-v1", 2, deadline) == "; removed 1 old backup");
    CHECK(pruner.prune("e", "before-v1", 2, Deadline(clock, seconds(7))) == "; removed 1 old backup");
    CHECK(node.asked == std::vector<milliseconds>{minutes(2), minutes(2), seconds(30), seconds(30), seconds(7)});
    node.hangs = is_interrupted = true;
    CHECK_THROWS_AS(static_cast<void>(pruner.prune("f", "before-v1", 2, deadline)), Leave);
}

}  // namespace
}  // namespace kmm::drive
