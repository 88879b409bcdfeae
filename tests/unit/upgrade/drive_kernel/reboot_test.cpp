// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/drive_kernel/drivers.hpp"
#include "upgrade/drive_kernel/reboot.hpp"
#include "upgrade/module_nodes/fleet.hpp"

using namespace kmm;
using namespace kmm::drive;

namespace {

constexpr const char* k_old = "6.1.0-56-amd64";
constexpr const char* k_new = "6.1.0-60-amd64";

/// One node whose reboot takes a while.
class Machine final : public cluster::NodeRunner {
public:
    std::string kernel = k_old, boot = "boot-1", next = k_new;
    int away = 2;               ///< calls that do not get there after a reboot, -1: all
    int deaf = 0;               ///< requests to reboot that have no effect
    bool is_answer_lost = false;
    bool is_worker_stopped = false;  ///< by the shutdown, before it has answered
    bool is_worker_gone = false;     ///< in the new boot
    std::optional<std::string> refusal;
    int refused_request = 0;         ///< the number of the request to reboot that is refused, 0: none
    int asked = 0, reboots = 0;

    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        cluster::WorkerReply reply;
        if (down_ != 0) {
            if (down_ > 0) --down_;
            reply.end = cluster::CallEnd::unreachable;
            reply.transport = "No route to host";
            return reply;
        }
        if (is_worker_gone && reboots > 0) {
            reply.exit_code = 127;
            reply.transport = "sh: 1: kmm-worker: not found";
            return reply;
        }
        const bool is_reboot = call.args[1] == "reboot";
        reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                               {"kind", is_reboot ? "NodeSystemStep" : "NodeSystem"},
                                               {"kernel", kernel},
                                               {"bootID", boot},
                                               {"architecture", "amd64"}});
        if (!is_reboot) return reply;
        ++asked;
        CHECK(call.args == std::vector<std::string>{"node", "reboot", "--boot-id", "boot-1"});
        if (refusal || asked == refused_request) {
            reply.exit_code = 1;
            reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                                   {"kind", "Error"},
                                                   {"code", refusal.value_or("reboot-failed")},
                                                   {"message", "it does not"},
                                                   {"exitCode", 1}});
            return reply;
        }
        if (boot == "boot-1" && deaf-- <= 0) {
            boot = "boot-2";
            kernel = next;
            down_ = away;
            ++reboots;
        }
        if (is_answer_lost) {
            reply.end = cluster::CallEnd::unknown;
            reply.document = {};
        }
        if (is_worker_stopped) {
            reply.exit_code = 143;
            reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                                   {"kind", "Error"},
                                                   {"code", "interrupted"},
                                                   {"message", "interrupted"}});
        }
        return reply;
    }
    [[nodiscard]] std::string describe() const override { return "fake"; }

private:
    int down_ = 0;
};

struct Case {
    Machine machine;
    drive::test::FakeClock clock;
    bool is_stopped = false;
    std::vector<std::string> told;
    SystemAgent agent{machine, clock, [this] { return is_stopped; },
                      [this](const std::string&, const std::string& text) { told.push_back(text); }};

    [[nodiscard]] SystemSight reboot(std::chrono::minutes limit = std::chrono::minutes(30)) {
        const Deadline deadline(clock, limit);
        return agent.reboot_into("node-a", k_new, "boot-1", {machine.kernel, machine.boot, "amd64"}, deadline);
    }
    [[nodiscard]] std::string refused(std::chrono::minutes limit = std::chrono::minutes(30)) {
        try {
            static_cast<void>(reboot(limit));
        } catch (const Error& error) {
            CHECK(error.message().find("node-a") != std::string::npos);
            CHECK(!error.hint().empty());
            return error.code();
        }
        return "";
    }
};

}  // namespace

TEST_SUITE("upgrade::drive_kernel") {

TEST_CASE("a node is asked once, its silence is waited out, and the new boot is what counts") {
    for (const char* end : {"answers", "lost", "stopped"}) {
        const bool is_lost = end != std::string_view("answers");
        CAPTURE(end);
        Case one;
        one.machine.is_answer_lost = end == std::string_view("lost");
        one.machine.is_worker_stopped = end == std::string_view("stopped");
        const auto now = one.reboot();
        CHECK(now.kernel == k_new);
        CHECK(now.boot_id == "boot-2");
        CHECK(one.machine.asked == 1);
        CHECK(one.told.size() == (is_lost ? 1 : 0));
    }
}

TEST_CASE("a node that runs the release, or another boot, is not rebooted") {
    Case there;
    there.machine.kernel = k_new;
    CHECK(there.reboot().boot_id == "boot-1");
    CHECK(there.machine.asked == 0);
    Case rebooted;
    rebooted.machine.boot = "boot-2";
    CHECK(rebooted.refused() == "kernel-not-booted");
    CHECK(rebooted.machine.asked == 0);
}

TEST_CASE("a node that comes back with the old kernel, not at all, or does not go down") {
    Case old;
    old.machine.next = k_old;
    CHECK(old.refused() == "kernel-not-booted");
    CHECK(old.machine.reboots == 1);
    Case lost;
    lost.machine.away = -1;
    CHECK(lost.refused() == "node-not-back");
    Case stays;
    stays.machine.deaf = 1000;
    CHECK(stays.refused() == "node-not-rebooted");
    CHECK(stays.machine.asked > 1);
    Case refuses;
    refuses.machine.refusal = "reboot-failed";
    try {
        static_cast<void>(refuses.reboot());
        FAIL("it is refused");
    } catch (const Error& error) {
        CHECK(error.code() == "reboot-failed");
    }
}

TEST_CASE("why a node is not known to be back is said: it is not reached, or it answers without a worker") {
    const auto error_of = [](Case& one) {
        try {
            static_cast<void>(one.reboot());
        } catch (const Error& error) {
            return error;
        }
        FAIL("it is refused");
        return bug("unreachable");
    };
    Case lost;
    lost.machine.away = -1;
    const auto silent = error_of(lost);
    CHECK(silent.message() == "node node-a did not come back after its reboot");
    REQUIRE(silent.details().size() == 1);
    CHECK(silent.details().front().second == "No route to host");
    CHECK(silent.hint() == "look at its console; once it is up: kmm-upgrade retry node-a");
    Case bare;
    bare.machine.is_worker_gone = true;
    const auto without = error_of(bare);
    CHECK(without.code() == "node-not-back");
    CHECK(without.message() ==
          "node node-a was asked to reboot, and its facts cannot be read: kmm-worker cannot be run there");
    Case unsure;
    unsure.machine.is_worker_gone = unsure.machine.is_answer_lost = true;
    CHECK(error_of(unsure).message() ==
          "node node-a may have been asked to reboot, and its facts cannot be read: kmm-worker cannot be run there");
    Case cut_off;
    cut_off.machine.is_answer_lost = true;
    cut_off.machine.away = -1;
    CHECK(error_of(cut_off).message() == "node node-a may have been asked to reboot, and cannot be reached");
    REQUIRE(without.details().size() == 1);
    CHECK(without.details().front().second == "sh: 1: kmm-worker: not found");
    CHECK(without.hint().starts_with("install kmm-worker on the node"));
    CHECK(without.hint().ends_with("; then kmm-upgrade retry node-a"));
}

TEST_CASE("a request that had no effect is repeated, and a person may leave") {
    Case late;
    late.machine.deaf = 1;
    CHECK(late.reboot().boot_id == "boot-2");
    CHECK(late.machine.asked == 2);
    CHECK(late.machine.reboots == 1);
    Case busy;  // with its shutdown, and systemd refuses a second one
    busy.machine.deaf = 1;
    busy.machine.refused_request = 2;
    CHECK(busy.reboot().boot_id == "boot-2");
    CHECK(busy.told == std::vector<std::string>{"kmm-worker says: it does not; the node may be shutting down"});
    Case never;
    never.machine.deaf = 1000;
    never.machine.refused_request = 2;
    CHECK(never.refused() == "node-not-rebooted");
    Case left;
    left.machine.away = -1;
    left.clock.on_sleep = [&] { left.is_stopped = true; };
    CHECK_THROWS_AS(static_cast<void>(left.reboot()), Leave);
}

TEST_CASE("facts without kernel or boot id are no answer") {
    CHECK_THROWS_AS(static_cast<void>(read_system("node-a", value::Node::mapping({{"kernel", k_new}}))), Error);
    CHECK_THROWS_AS(static_cast<void>(read_system("node-a", value::Node::mapping({{"bootID", "boot-1"}}))), Error);
}

TEST_CASE("KMM's labels count for the present boot and kernel only") {
    api::NodeModule entry;
    entry.name = "kmm-hello";
    entry.namespace_ = "drivers";
    entry.config.edit().kernel_version = k_new;
    NodeView view;
    view.node.boot_id = "boot-2";
    view.ready = "";
    auto status = entry;
    status.boot_id = "boot-2";
    view.spec = entry;
    view.status = status;
    CHECK(operator_lacks(view, entry, "boot-2").empty());
    auto late = view;
    late.node.boot_id = "boot-1";
    CHECK(!operator_lacks(late, entry, "boot-2").empty());
    late = view;
    late.status->boot_id = "boot-1";
    CHECK(operator_lacks(late, entry, "boot-2").find("to load") != std::string::npos);
    late = view;
    late.status->config.edit().kernel_version = k_old;
    CHECK(operator_lacks(late, entry, "boot-2").find("to load") != std::string::npos);
    late = view;
    late.spec->config.edit().kernel_version = k_old;
    CHECK(!operator_lacks(late, entry, "boot-2").empty());
    late = view;
    late.ready.reset();
    CHECK(operator_lacks(late, entry, "boot-2").find("label") != std::string::npos);
}

TEST_CASE("drivers are read back from the record") {
    const std::map<std::string, LoadedDriver> drivers{{"drivers/kmm-hello", {"kmm_hello", {"ABC", "def", "", "1"}}}};
    const auto again = decode_drivers(encode(drivers));
    REQUIRE(again.size() == 1);
    CHECK(again.at("drivers/kmm-hello").kernel_module == "kmm_hello");
    CHECK(again.at("drivers/kmm-hello").identity == drivers.at("drivers/kmm-hello").identity);
}

}
