// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/worker_steps.hpp"

#include <deque>
#include <utility>

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace kmm::drive {
namespace {

using std::chrono::milliseconds;

class Time final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'790'000'000; }
    [[nodiscard]] milliseconds monotonic() const override { return time_; }
    bool sleep_for(milliseconds duration) override {
        time_ += duration;
        return true;
    }

private:
    milliseconds time_{0};
};

/// Answers in order; the last one again and again.
class Answers final : public cluster::NodeRunner {
public:
    explicit Answers(std::deque<cluster::WorkerReply> replies) : replies_(std::move(replies)) {}
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        calls.push_back(call.args.at(1));
        auto reply = replies_.front();
        if (replies_.size() > 1) replies_.pop_front();
        return reply;
    }
    [[nodiscard]] std::string describe() const override { return "local"; }
    std::vector<std::string> calls;

private:
    std::deque<cluster::WorkerReply> replies_;
};

cluster::WorkerReply answer(const char* kind) {
    cluster::WorkerReply reply;
    reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}});
    return reply;
}

cluster::WorkerReply killed() {
    cluster::WorkerReply reply;
    reply.signal = 9;
    return reply;
}

cluster::WorkerReply lost() {
    cluster::WorkerReply reply;
    reply.end = cluster::CallEnd::unknown;
    return reply;
}

struct Steps {
    Time clock;
    Answers runner;
    std::vector<std::string> told;
    WorkerSteps steps;
    explicit Steps(std::deque<cluster::WorkerReply> replies)
        : runner(std::move(replies)),
          steps(
              runner, clock, [] { return false; },
              [this](const std::string& node, const std::string& text) { told.push_back(node + ": " + text); },
              {"kubernetes", "Facts", "Step"}) {}
    [[nodiscard]] Deadline deadline() const { return {clock, milliseconds{60'000}}; }
};

TEST_CASE("a worker that is killed before it answers a question is asked once more") {
    Steps made({killed(), answer("Facts")});
    CHECK(made.steps.facts("n", made.deadline()).get_string({"kind"}) == "Facts");
    CHECK(made.runner.calls.size() == 2);

    Steps always({killed()});
    CHECK_THROWS_AS(static_cast<void>(always.steps.facts("n", always.deadline())), Error);
    CHECK(always.runner.calls.size() == 2);

    Steps missing({[] {
        cluster::WorkerReply reply;
        reply.exit_code = 127;
        return reply;
    }()});
    CHECK_THROWS_AS(static_cast<void>(missing.steps.facts("n", missing.deadline())), Error);
    CHECK(missing.runner.calls.size() == 1);
}

TEST_CASE("whoever wants to is called before a step is asked for again") {
    Steps made({lost(), killed(), answer("Step")});
    int asked = 0;
    static_cast<void>(made.steps.step("n", {"kubelet"}, made.deadline(), {}, [&] { ++asked; }));
    CHECK(made.runner.calls == std::vector<std::string>{"kubelet", "kubelet", "kubelet"});
    CHECK(asked == 2);
}

TEST_CASE("a step that was begun and cannot be asked for again may go on") {
    cluster::WorkerReply missing;
    missing.exit_code = 127;
    const auto hint_after = [&](std::deque<cluster::WorkerReply> replies) -> std::string {
        Steps made(std::move(replies));
        try {
            static_cast<void>(made.steps.step("n", {"kubelet"}, made.deadline()));
        } catch (const Error& error) {
            CHECK(error.code() == "worker-not-found");
            return error.hint();
        }
        return "none";
    };
    CHECK(hint_after({missing}).find("had begun") == std::string::npos);
    CHECK(hint_after({lost(), missing}).ends_with("; kubernetes kubelet had begun there and may go on"));
}

TEST_CASE("each warning of a step is told once for each node") {
    auto warned = answer("Step");
    warned.document.set("warnings", value::Node::strings({"images-not-proven: a", "etcd-external: b\x1b"}));
    Steps made({warned});
    static_cast<void>(made.steps.step("n", {"images"}, made.deadline()));
    static_cast<void>(made.steps.step_once("n", {"images"}, milliseconds{1000}));
    CHECK(made.told == std::vector<std::string>{"n: warning: images-not-proven: a",
                                                "n: warning: etcd-external: b\x1b"});
    static_cast<void>(made.steps.step("m", {"images"}, made.deadline()));
    CHECK(made.told.size() == 4);
}

}  // namespace
}  // namespace kmm::drive
