// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/event_command.hpp"

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>

#include "sys/temp_dir.hpp"

namespace kmm::tool_upgrade {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// The lines a command has said about itself.
struct Said {
    std::mutex mutex;
    std::vector<std::string> lines;
    EventCommand::Say say() {
        return [this](const std::string& text) {
            const std::lock_guard guard(mutex);
            lines.push_back(text);
        };
    }
};

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }
bool never() { return false; }

std::string contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST_SUITE("tool_upgrade::unit") {
    TEST_CASE("a command gets every event in order, and pushing never waits for it") {
        const sys::TempDir directory("event-command");
        const auto file = directory.path() + "/events";
        Said said;
        const auto gate = directory.path() + "/gate";
        EventCommand command(shell("until [ -e " + gate + " ]; do sleep 0.01; done; cat >>" + file), said.say(), never);
        for (int i = 0; i < 5; ++i) command.push(std::to_string(i) + "\n");
        std::ofstream(gate).flush();  // the first command has been waiting for it, and no push for the command
        for (int i = 0; i < 6000 && contents(file) != "0\n1\n2\n3\n4\n"; ++i)
            std::this_thread::sleep_for(milliseconds(10));
        CHECK(command.finish());
        CHECK(contents(file) == "0\n1\n2\n3\n4\n");
        CHECK(said.lines.empty());
        command.push("5\n");
        command.finish();
        CHECK(contents(file) == "0\n1\n2\n3\n4\n");
    }

    TEST_CASE("what goes wrong is said once in a row, and the next event is passed on") {
        Said said;
        EventCommand command(shell("read -r code; exit \"$code\""), said.say(), never);
        for (const auto* code : {"3\n", "3\n", "0\n", "4\n", "4\n"}) command.push(code);
        command.finish();
        CHECK(said.lines == std::vector<std::string>{"warning: --on-event: sh exited with 3",
                                                     "warning: --on-event: sh exited with 4"});
        EventCommand absent({"no-such-command-here"}, said.say(), never);
        absent.push("x");
        absent.finish();
        CHECK(said.lines.back().starts_with("warning: --on-event: no-such-command-here could not be started: "));
    }

    TEST_CASE(
        "the end waits for as long as it may, then ends the command with all that it has started and says what is "
        "missing") {
        const sys::TempDir directory("event-command");
        Said said;
        EventCommand command(shell("sleep 60 & echo $! >" + directory.path() + "/pid; wait"), said.say(), never);
        for (int i = 0; i < 3; ++i) command.push("x\n");
        const auto begin = Clock::now();
        CHECK(command.finish(milliseconds(500)));
        CHECK(Clock::now() - begin > milliseconds(450));
        CHECK(Clock::now() - begin < milliseconds(30'000));
        CHECK(said.lines == std::vector<std::string>{
                                "warning: --on-event: sh did not get the last 3 events: it was still busy after 1s"});
        const auto pid = std::stoi(contents(directory.path() + "/pid"));
        CHECK(contents("/proc/" + std::to_string(pid) + "/cmdline").empty());
    }

    TEST_CASE("once the user has asked to stop nothing is waited for") {
        Said said;
        std::atomic<bool> is_stopped = false;
        EventCommand command(shell("sleep 60"), said.say(), [&] { return is_stopped.load(); });
        command.push("x\n");
        command.push("x\n");
        std::thread user([&] {
            std::this_thread::sleep_for(milliseconds(300));
            is_stopped = true;
        });
        const auto begin = Clock::now();
        CHECK(!command.finish());
        CHECK(!command.finish());
        user.join();
        CHECK(Clock::now() - begin < milliseconds(30'000));
        CHECK(said.lines == std::vector<std::string>{
                                "warning: --on-event: sh did not get the last 2 events: the upgrade was stopped"});
    }

    TEST_CASE("a long wait at the end is said") {
        Said said;
        EventCommand command(shell("sleep 1.5"), said.say(), never);
        for (int i = 0; i < 2; ++i) command.push("x\n");
        command.finish();
        REQUIRE(said.lines.size() == 1);
        CHECK(said.lines[0] == "note: waiting up to 30s for --on-event: sh to get 1 event");
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
