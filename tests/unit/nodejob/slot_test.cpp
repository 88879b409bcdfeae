// SPDX-License-Identifier: Apache-2.0
#include "nodejob/slot.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using namespace kmm::nodejob;
using namespace std::chrono_literals;

namespace {

/// Real time, of which ten times as much passes.
class HastyClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return real_.now_unix(); }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return real_.monotonic() * 10; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        std::this_thread::sleep_for(std::min(duration, std::chrono::milliseconds(10)));
        return true;
    }

private:
    sys::LinuxClock real_;
};

/// Ends the process at the `last`-th operation, or tears a write there.
class EndingFileOps final : public sys::FileOps {
public:
    /// Ends at its `last`th operation the caller, or else the supervisor.
    EndingFileOps(int last, pid_t caller, bool ends_caller) : last_(last), caller_(caller), ends_caller_(ends_caller) {}
    int create(const std::string& path, unsigned mode) override { return step(), real_.create(path, mode); }
    int open_append(const std::string& path) override { return step(), real_.open_append(path); }
    void write(int fd, std::string_view bytes) override {
        if (is_mortal() && count_ + 1 == last_) real_.write(fd, bytes.substr(0, bytes.size() / 2));
        step();
        real_.write(fd, bytes);
    }
    void sync(int fd) override { step(), real_.sync(fd); }
    void rename(const std::string& from, const std::string& to) override { step(), real_.rename(from, to); }
    void sync_dir(const std::string& directory) override { step(), real_.sync_dir(directory); }

private:
    void step() {
        if (is_mortal() && ++count_ == last_) ::kill(::getpid(), SIGKILL);
    }
    [[nodiscard]] bool is_mortal() const { return (::getpid() == caller_) == ends_caller_; }
    int last_, count_ = 0;
    pid_t caller_;
    bool ends_caller_;
    sys::LinuxFileOps real_;
};

struct Place {
    sys::TempDir top{"kmm-job-test-"};
    sys::LinuxFileOps ops;
    HastyClock clock;
    sys::LinuxRandom random;
    std::string boot = "boot-1";
    std::string cgroup_root = {};
    bool must_leave_cgroup = false;

    [[nodiscard]] std::string path(const std::string& name) const { return top.path() + "/" + name; }
    [[nodiscard]] JobSlot slot() { return slot(ops); }
    [[nodiscard]] JobSlot slot(sys::FileOps& with) {
        return JobSlot({path("slot"), boot, cgroup_root, must_leave_cgroup}, with, clock, random);
    }
    [[nodiscard]] std::string text(const std::string& name) const {
        return std::filesystem::exists(path(name)) ? sys::read_file(path(name)) : std::string();
    }
};

JobSpec script(const std::string& key, const std::string& text) {
    return {key, {{{"sh", "-c", text}, {}, false}}};
}

/// Runs `body` in a process of its own; returns its wait status.
int in_child(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        body();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
}

void wait_for(const std::function<bool()>& is_so) {
    for (int i = 0; i < 1000 && !is_so(); ++i) std::this_thread::sleep_for(5ms);
    REQUIRE(is_so());
}

}  // namespace

TEST_SUITE("nodejob::unit") {
    TEST_CASE("a job runs to its end; its result is adopted until it was received") {
        Place place;
        JobSlot slot = place.slot();
        CHECK(slot.look().state == JobState::none);
        const auto begun = slot.begin(script("greet", "echo out; echo err >&2; exit 3"));
        CHECK_FALSE(begun.adopted);
        const JobView job = place.slot().wait(std::nullopt);
        CHECK(job.state == JobState::finished);
        CHECK_FALSE(job.succeeded());
        CHECK(job.exit_code == 3);
        CHECK(job.key == "greet");
        CHECK(job.commands == std::vector<std::string>{"sh -c echo out; echo err >&2; exit 3"});
        CHECK(slot.output_end(100) == "out\nerr\n");
        CHECK(slot.output_end(4) == "err\n");
        const auto again = slot.begin(script("greet", "exit 9"));
        CHECK(again.adopted);
        CHECK(again.job.id == job.id);
        CHECK(again.job.exit_code == 3);
        slot.mark_received(job.id);
        CHECK(slot.look().received);
        const auto anew = slot.begin(script("greet", "true"));
        CHECK_FALSE(anew.adopted);
        CHECK(anew.job.id != job.id);
        CHECK_FALSE(anew.replaced);
        CHECK(slot.wait(std::nullopt).succeeded());
    }

    TEST_CASE("the first failure stops a job, but for commands that always run") {
        Place place;
        JobSlot slot = place.slot();
        JobSpec spec{"steps", {}};
        for (const std::string word : {"echo one", "kill -9 $$", "echo not", "echo always; exit 5"})
            spec.commands.push_back({{"sh", "-c", word}, {}, word.find("always") != std::string::npos});
        spec.commands.front().environment = {{"NAME", "x"}};
        static_cast<void>(slot.begin(spec));
        const JobView job = slot.wait(std::nullopt);
        CHECK(job.signal == SIGKILL);
        CHECK(job.failed_command == 1);
        CHECK_FALSE(job.succeeded());
        // Neither what ran before nor what ran after the failure says why.
        CHECK(slot.output_end(1000).empty());
        CHECK(place.text("slot/out.always") == "always\n");
    }

    TEST_CASE("a command that is not there fails with 127 and says so") {
        Place place;
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin({"absent", {{{"kmm-no-such-command"}, {}, false}}}));
        CHECK(slot.wait(std::nullopt).exit_code == 127);
        CHECK(slot.output_end(1000) == "cannot run kmm-no-such-command: No such file or directory\n");
    }

    TEST_CASE("a job outlives a killed caller and its session, and the next caller adopts it") {
        Place place;
        const int status = in_child([&] {
            ::setsid();
            static_cast<void>(place.slot().begin(script("long", "sleep 0.3; echo done")));
            ::kill(0, SIGHUP);
            ::kill(::getpid(), SIGKILL);
        });
        CHECK(WIFSIGNALED(status));
        JobSlot slot = place.slot();
        const auto begun = slot.begin(script("long", "echo second"));
        CHECK(begun.adopted);
        CHECK(begun.job.state == JobState::running);
        CHECK(begun.job.pid >= 0);
        CHECK(slot.wait(std::nullopt).succeeded());
        CHECK(slot.output_end(1000) == "done\n");
    }

    TEST_CASE("of many callers at once one starts the job and all get its result") {
        Place place;
        const std::string text = "echo run >> " + place.path("runs") + "; sleep 0.2; exit 4";
        std::vector<pid_t> callers;
        for (int i = 0; i < 8; ++i) {
            const pid_t pid = ::fork();
            if (pid == 0) {
                JobSlot slot = place.slot();
                static_cast<void>(slot.begin(script("same", text)));
                ::_exit(slot.wait(std::nullopt).exit_code);
            }
            callers.push_back(pid);
        }
        for (const pid_t pid : callers) {
            int status = 0;
            ::waitpid(pid, &status, 0);
            CHECK(WEXITSTATUS(status) == 4);
        }
        CHECK(place.text("runs") == "run\n");
    }

    TEST_CASE("a job of another key is refused while one runs, and so is a held slot") {
        Place place;
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin(script("first", "sleep 0.3")));
        try {
            static_cast<void>(slot.begin(script("second", "true")));
            FAIL("started");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::locked);
            CHECK(error.code() == "job-running");
            CHECK(std::string(error.what()) == "the job 'first' is running on this node");
        }
        CHECK_THROWS_AS(static_cast<void>(slot.hold("repair")), Error);
        CHECK_THROWS_AS(static_cast<void>(slot.adopt("second")), Error);
        CHECK(slot.adopt("first"));
        static_cast<void>(slot.wait(std::nullopt));
        CHECK_FALSE(slot.adopt("second"));
        {
            // The job that is recorded has ended: it is not what keeps others away.
            const SlotHold hold = slot.hold("repair of x");
            try {
                static_cast<void>(place.slot().begin(script("second", "true")));
                FAIL("started");
            } catch (const Error& error) {
                CHECK(error.code() == "job-running");
                CHECK(std::string(error.what()) == "kmm-worker is running on this node: repair of x");
            }
        }
        CHECK_FALSE(slot.begin(script("second", "true")).adopted);
        CHECK(slot.wait(std::nullopt).succeeded());
    }

    TEST_CASE("a deadline ends the waiting and not the job") {
        Place place;
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin(script("slow", "sleep 0.3; echo end")));
        try {
            static_cast<void>(slot.wait(place.clock.monotonic() + 50ms));
            FAIL("ended");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::timeout);
        }
        CHECK(slot.wait(std::nullopt).succeeded());
        CHECK(slot.output_end(100) == "end\n");
    }

    TEST_CASE("a killed supervisor: running while the command lives, then lost, never a success") {
        Place place;
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin(script("cut", "sleep 0.4")));
        wait_for([&] { return slot.look().pid > 0; });
        const JobView job = slot.look();
        ::kill(static_cast<pid_t>(job.pid), SIGKILL);
        CHECK(slot.look().state == JobState::running);
        const JobView after = slot.wait(std::nullopt);
        CHECK(after.state == JobState::lost);
        CHECK(after.lost_reason == "killed");
        CHECK_FALSE(after.succeeded());
        const auto begun = slot.begin(script("cut", "true"));
        CHECK_FALSE(begun.adopted);
        REQUIRE(begun.replaced);
        CHECK(begun.replaced->id == job.id);
        CHECK(slot.wait(std::nullopt).succeeded());
    }

    TEST_CASE("a job of an earlier boot without a result is lost, one with a result is finished") {
        Place place;
        static_cast<void>(place.slot().begin(script("boot", "sleep 0.1; kill -9 $PPID; exit 0")));
        wait_for([&] { return place.slot().look().state == JobState::lost; });
        place.boot = "boot-2";
        CHECK(place.slot().look().lost_reason == "rebooted");
        static_cast<void>(place.slot().begin(script("boot", "true")));
        CHECK(place.slot().wait(std::nullopt).succeeded());
        place.boot = "boot-3";
        CHECK(place.slot().look().succeeded());
        place.boot = "";
        CHECK_THROWS_AS(static_cast<void>(place.slot()), Error);
    }

    TEST_CASE("something that a job leaves running neither holds its result up nor the next job") {
        Place place;
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin(script("daemon", "sleep 3 & echo $! > " + place.path("left"))));
        CHECK(slot.wait(std::nullopt).succeeded());
        slot.mark_received(slot.look().id);
        static_cast<void>(slot.begin(script("next", "exit 6")));
        CHECK(slot.wait(std::nullopt).exit_code == 6);
        ::kill(static_cast<pid_t>(std::stoi(place.text("left"))), SIGKILL);
    }

    TEST_CASE("a job leaves its caller's cgroup") {
        Place place;
        place.cgroup_root = place.path("cgroup");
        std::filesystem::create_directories(place.path("cgroup/kmm-node"));
        std::ofstream(place.path("cgroup/cgroup.controllers")) << "cpu\n";
        std::ofstream(place.path("cgroup/kmm-node/cgroup.procs")) << "";
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin(script("group", "true")));
        const JobView job = slot.wait(std::nullopt);
        CHECK(place.text("cgroup/kmm-node/cgroup.procs") == std::to_string(job.pid));
    }

    TEST_CASE("a job of a Pod that cannot leave its cgroup does nothing") {
        Place place;
        place.must_leave_cgroup = true;
        auto slot = place.slot();
        static_cast<void>(slot.begin(script("a", "touch " + place.path("done"))));
        const auto job = slot.wait(std::nullopt);
        CHECK(job.state == JobState::finished);
        CHECK(job.exit_code == 126);
        CHECK_FALSE(std::filesystem::exists(place.path("done")));
        CHECK(slot.output_end(4096).find("would end with the Pod") != std::string::npos);
    }

    TEST_CASE("a damaged record is a lost job, and the next one runs") {
        Place place;
        JobSlot slot = place.slot();
        static_cast<void>(slot.begin(script("good", "true")));
        static_cast<void>(slot.wait(std::nullopt));
        for (const std::string text : {"", "{", "{\"apiVersion\":\"kmmtools/v1\",\"kind\":\"NodeJob\"}\n", "[]"}) {
            std::ofstream(place.path("slot/job.json")) << text;
            wait_for([&] { return slot.look().state == JobState::lost; });
            CHECK_FALSE(slot.begin(script("good", "true")).adopted);
            CHECK(slot.wait(std::nullopt).succeeded());
        }
    }

    TEST_CASE("killed at any write, the caller or the supervisor: runs never overlap and the next call gets a result") {
        for (const bool is_caller : {true, false}) {
            int point = 0, killed = 0;
            for (;;) {
                ++point;
                Place place;
                const std::string text =
                    "cd " + place.top.path() +
                    "; mkdir busy || echo overlap >> faults; sleep 0.03; rmdir busy; echo run >> runs";
                const int status = in_child([&] {
                    const pid_t self = ::getpid();
                    EndingFileOps caller_ops(point, self, is_caller);
                    JobSlot slot = place.slot(caller_ops);
                    static_cast<void>(slot.begin(script("crash", text)));
                    if (is_caller) ::_exit(0);
                    ::_exit(slot.wait(std::nullopt).succeeded() ? 0 : 1);
                });
                const bool was_hit = is_caller ? WIFSIGNALED(status) : WEXITSTATUS(status) != 0;
                JobSlot slot = place.slot();
                static_cast<void>(slot.begin(script("crash", text)));
                CHECK(slot.wait(std::nullopt).succeeded());
                CHECK(place.text("faults").empty());
                const auto runs = place.text("runs").size() / 4;
                CHECK(runs >= 1);
                CHECK(runs <= (was_hit ? 2U : 1U));
                if (!was_hit) break;
                ++killed;
                REQUIRE(point < 40);
            }
            CHECK(killed >= (is_caller ? 5 : 8));
        }
    }
}
