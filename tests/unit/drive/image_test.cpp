// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "unit/drive/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

/// A store whose labels take as long to write as a test wants.
class SlowStore final : public cluster::ClusterStore {
public:
    explicit SlowStore(bool thread_safe) : thread_safe_(thread_safe) {}
    [[nodiscard]] cluster::Snapshot read() override {
        ++reads;
        return {};
    }
    void patch_node_labels(const std::string&, const cluster::LabelChange&, const cluster::LabelChange&) override {
        is_writing = true;
        for (int i = 0; i < 2000 && reads == 0 && !gives_up; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        read_meanwhile = reads > 0;
    }
    void put_node_module(const std::string&, const std::string&, const std::string&, const std::optional<std::optional<api::NodeModule>>&,
                         const std::optional<std::optional<api::NodeModule>>&) override {}
    void put_node_info(const std::string&, const std::string&, const std::string&, const std::string&) override {}
    [[nodiscard]] std::string identity(bool) override { return ""; }
    [[nodiscard]] std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds) override { return seen; }
    [[nodiscard]] std::string describe() const override { return "slow"; }
    [[nodiscard]] bool is_thread_safe() const override { return thread_safe_; }

    std::atomic<int> reads{0};
    std::atomic<bool> is_writing{false}, read_meanwhile{false}, gives_up{false};

private:
    bool thread_safe_;
};

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("an image that is another one after the first node stops the next node before it is touched") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    REQUIRE(drive.state("node-a") == "done");
    world.nodes.images["reg/hello:v2"] = "CCCC3333";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-b");
    CHECK(node.state == "checking-failed");
    CHECK(node.reason == "image-changed");
    CHECK(node.message == "reg/hello:v2 is sha256:CCCC3333 now, but node node-a has sha256:BBBB2222 as v2");
    CHECK(node.hint.starts_with("let it be the former image again, then kmm-upgrade retry node-b; or kmm-upgrade abort"));
    CHECK(world.nodes.nodes["node-b"].live == "AAAA1111");
    SUBCASE("once it is the former one again, the upgrade goes on") {
        world.nodes.images["reg/hello:v2"] = "BBBB2222";
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.nodes.nodes["node-b"].live == "BBBB2222");
    }
}

TEST_CASE("an image that was mended because no node could load it is taken") {
    World world(2);
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.args.front() != "load" || world.nodes.images["reg/hello:v2"] != "BBBB2222") return std::nullopt;
        return FakeNodes::error(13, "module-refused", "the kernel refused kmm_hello");
    };
    Drive drive(world, world.prepare());
    REQUIRE(drive.driver.walk() == Ended::paused);
    world.nodes.images["reg/hello:v2"] = "CCCC3333";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.nodes.nodes["node-a"].live == "CCCC3333");
    CHECK(world.nodes.nodes["node-b"].live == "CCCC3333");
}

TEST_CASE("a store that threads may share is not locked while one of them waits in it") {
    for (const bool thread_safe : {true, false}) {
        SlowStore slow(thread_safe);
        SharedStore shared(slow);
        std::jthread writer([&] { shared.patch_node_labels("node-a", {}, {}); });
        while (!slow.is_writing) std::this_thread::yield();
        if (!thread_safe) slow.gives_up = true;
        static_cast<void>(shared.read());
        writer.join();
        CHECK(slow.reads == 1);
        if (thread_safe) CHECK(slow.read_meanwhile);
    }
}

}  // TEST_SUITE
