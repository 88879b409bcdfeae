// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "record/owner_text.hpp"
#include "scenario.hpp"

using namespace kmm;
using namespace kmm::record;
using namespace kmm::record::test;

namespace {

struct Channel {
    std::array<int, 2> ends{};
    Channel() { REQUIRE(::pipe(ends.data()) == 0); }
    ~Channel() {
        close_read();
        close_write();
    }
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    void close_read() { ::close(std::exchange(ends[0], -1)); }
    void close_write() { ::close(std::exchange(ends[1], -1)); }
    char get() const {
        char byte = '?';
        return ::read(ends[0], &byte, 1) == 1 ? byte : '\0';
    }
    void put(char byte) const { [[maybe_unused]] const ssize_t written = ::write(ends[1], &byte, 1); }
};

/// 'W' if this process got the lock, 'L' if it was told who has it, 'X' for anything else. A winner keeps the lock
/// until `release` is closed.
char try_lock(const std::string& dir, const Channel& answers, Channel& release) {
    sys::LinuxFileOps ops;
    const FixedClock clock;
    StateDir state(dir, ops, clock);
    try {
        const Lock lock = state.lock(current_owner("start", clock));
        answers.put('W');
        release.close_write();
        static_cast<void>(release.get());
        return 'W';
    } catch (const Error& error) {
        const bool named = error.exit() == Exit::locked && error.code() == "locked" && error.details().size() == 6;
        answers.put(named ? 'L' : 'X');
        return named ? 'L' : 'X';
    }
}

}  // namespace

TEST_SUITE("record::unit") {
    TEST_CASE("a lock that its owner lets go of in the next moment is waited for") {
        const ScratchState scratch;
        sys::LinuxFileOps ops;
        const FixedClock clock;
        StateDir first(scratch.path(), ops, clock);
        std::optional<Lock> dying(first.lock(current_owner("start", clock)));
        std::thread end([&dying] {
            std::this_thread::sleep_for(std::chrono::milliseconds(60));
            dying.reset();
        });
        StateDir second(scratch.path(), ops, clock);
        CHECK_NOTHROW(static_cast<void>(second.lock(current_owner("resume", clock))));
        end.join();
    }

    TEST_CASE("of 50 processes that lock at once exactly one wins, the others learn who") {
        const int rounds = k_stride == 1 ? 20 : 3;
        constexpr int k_processes = 50;
        for (int round = 0; round < rounds; ++round) {
            CAPTURE(round);
            const ScratchState scratch;
            Channel start;
            Channel answers;
            Channel release;
            std::vector<pid_t> children;
            for (int i = 0; i < k_processes; ++i) {
                const pid_t pid = ::fork();
                if (pid == 0) {
                    start.close_write();
                    static_cast<void>(start.get());
                    try_lock(scratch.path(), answers, release);
                    ::_exit(0);
                }
                children.push_back(pid);
            }
            start.close_write();
            int winners = 0;
            int losers = 0;
            for (int i = 0; i < k_processes; ++i) {
                const char answer = answers.get();
                winners += answer == 'W' ? 1 : 0;
                losers += answer == 'L' ? 1 : 0;
            }
            release.close_write();
            for (const pid_t pid : children) {
                ::waitpid(pid, nullptr, 0);
            }
            CHECK(winners == 1);
            CHECK(losers == k_processes - 1);
        }
        MESSAGE("lock rounds: " << rounds << " of " << k_processes << " processes");
    }

    TEST_CASE("the lock dies with its owner, whatever the text says") {
        const ScratchState scratch;
        sys::LinuxFileOps ops;
        const FixedClock clock;
        StateDir state(scratch.path(), ops, clock);
        Channel answers;
        Channel release;
        const pid_t pid = ::fork();
        if (pid == 0) {
            try_lock(scratch.path(), answers, release);
            ::_exit(0);
        }
        REQUIRE(answers.get() == 'W');
        const std::optional<Owner> holder = state.holder();
        REQUIRE(holder.has_value());
        CHECK(holder->pid == pid);
        CHECK(holder->operation == "start");
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        const auto before = std::chrono::steady_clock::now();
        CHECK_FALSE(state.holder().has_value());
        {
            const Lock lock = state.lock(current_owner("resume", clock));
            CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(30));
            CHECK(state.holder()->pid == ::getpid());
            CHECK_THROWS_AS(static_cast<void>(StateDir(scratch.path(), ops, clock).lock(current_owner("x", clock))),
                            Error);
            // Opening and closing the file once more must not lose the lock.
            static_cast<void>(sys::read_file(scratch.path() + "/lock"));
            CHECK(state.holder().has_value());
        }
        CHECK_FALSE(state.holder().has_value());
    }

    TEST_CASE("an owner that is cut short by a limit is not said to be a full disk") {
        const ScratchState scratch;
        rlimit before{};
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
        rlimit small = before;
        small.rlim_cur = 1024;
        const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
        sys::LinuxFileOps ops;
        const FixedClock clock;
        StateDir state(scratch.path(), ops, clock);
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
        std::string message;
        try {
            static_cast<void>(state.lock(current_owner("start", clock)));
        } catch (const Error& error) {
            message = error.message();
        }
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
        static_cast<void>(std::signal(SIGXFSZ, old_action));
        CHECK(message.find("(EFBIG)") != std::string::npos);
    }

    TEST_CASE("a cluster directory is for one record at a time") {
        const ScratchState scratch;
        const FixedClock clock;
        const auto code_of = [&] {
            try {
                static_cast<void>(lock_cluster_directory(scratch.path(), current_owner("resume", clock)));
                return std::string("done");
            } catch (const Error& error) {
                return error.code() + " " + std::to_string(static_cast<int>(error.exit())) + " " +
                       std::to_string(error.details().size());
            }
        };
        {
            const Lock lock = lock_cluster_directory(scratch.path(), current_owner("start", clock));
            CHECK(code_of() == "cluster-locked 75 6");
        }
        CHECK(code_of() == "done");
        const std::string file = scratch.path() + "/.kmm-lock";
        CHECK(::access(file.c_str(), F_OK) != 0);
        REQUIRE(::symlink("elsewhere", file.c_str()) == 0);
        CHECK(code_of() == "io 74 0");
        REQUIRE(::unlink(file.c_str()) == 0);
        REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
        CHECK(code_of() == "bad-cluster-lock 78 0");
    }

    TEST_CASE("an owner is dead only when that is proven") {
        const FixedClock clock;
        const Owner self = current_owner("start", clock);
        CHECK(owner_may_live(self));
        CHECK(self.uid == ::geteuid());
        CHECK(self.since == "2026-09-21T14:13:20Z");
        CHECK_FALSE(self.command.empty());

        Owner reused = self;  // the pid lives, but it is another process
        reused.start_time += 1;
        CHECK_FALSE(owner_may_live(reused));
        Owner gone = self;
        gone.pid = 1 << 30;
        CHECK_FALSE(owner_may_live(gone));
        if (!self.pid_namespace.empty()) {
            Owner contained = gone;  // a live process of a container: its pid is none here
            contained.pid_namespace = "pid:[1]";
            CHECK(owner_may_live(contained));
            contained.boot_id = "00000000-0000-4000-8000-000000000000";
            CHECK(owner_may_live(contained) == self.boot_id.empty());
        }
        Owner elsewhere = gone;
        elsewhere.machine_id = "0123456789abcdef0123456789abcdef";
        elsewhere.host = "elsewhere";
        CHECK(owner_may_live(elsewhere));
        if (!self.boot_id.empty()) {
            Owner rebooted = self;
            rebooted.boot_id = "00000000-0000-4000-8000-000000000000";
            CHECK_FALSE(owner_may_live(rebooted));
        }
    }

    TEST_CASE("the owner record survives its text, and other texts are none") {
        const FixedClock clock;
        Owner owner = current_owner("abort", clock);
        owner.command = "kmm-upgrade abort --rollback \"all\"\n";
        const std::optional<Owner> back = parse_owner(encode_owner(owner) + "   \n");
        REQUIRE(back.has_value());
        CHECK(back->host == owner.host);
        CHECK(back->machine_id == owner.machine_id);
        CHECK(back->boot_id == owner.boot_id);
        CHECK(back->pid == owner.pid);
        CHECK(back->uid == owner.uid);
        CHECK(back->user == owner.user);
        CHECK(back->pid_namespace == owner.pid_namespace);
        CHECK(back->start_time == owner.start_time);
        CHECK(back->tty == owner.tty);
        CHECK(back->command == owner.command);
        CHECK(back->operation == owner.operation);
        CHECK(back->since == owner.since);
        for (const char* text : {"", "    \n", "[]", "{\"pid\":", "4711"}) {
            CHECK_FALSE(parse_owner(text).has_value());
        }
    }

    TEST_CASE("temporary files of a killed writer go when the next one locks") {
        const ScratchState scratch;
        sys::LinuxFileOps ops;
        const FixedClock clock;
        const std::string left = scratch.path() + "/.upgrade.json.17-0.kmm-tmp";
        std::ofstream(left) << "x";
        const Lock lock = StateDir(scratch.path(), ops, clock).lock(current_owner("start", clock));
        CHECK(::access(left.c_str(), F_OK) != 0);
    }

    TEST_CASE("readers never block, and always see a growing record, while a writer is at work") {
        const ScratchState scratch;
        sys::LinuxFileOps ops;
        const FixedClock clock;
        const int writes = k_stride == 1 ? 1500 : 300;
        const pid_t pid = ::fork();
        if (pid == 0) {
            StateDir state(scratch.path(), ops, clock);
            const Lock lock = state.lock(current_owner("start", clock));
            state.begin(payload_of(1));
            for (int entry = 2; entry <= writes; ++entry) {
                if (entry % 100 == 0) {
                    static_cast<void>(StateDir(scratch.path(), ops, clock).load());
                }
                state.append(payload_of(entry));
                state.write_snapshot(payload_of(entry));
            }
            ::_exit(0);
        }
        const StateDir reader(scratch.path(), ops, clock);
        std::size_t reads = 0;
        std::size_t last = 0;
        int status = 0;
        while (::waitpid(pid, &status, WNOHANG) == 0) {
            Loaded loaded;
            REQUIRE_NOTHROW(loaded = reader.load());
            REQUIRE(loaded.entries.size() >= last);
            last = loaded.entries.size();
            ++reads;
        }
        CHECK(WEXITSTATUS(status) == 0);
        const Loaded at_end = reader.load();
        CHECK(at_end.entries.size() == writes);
        CHECK(at_end.warnings.empty());
        CHECK(reads > 10);
        MESSAGE("reads while " << writes << " entries were written: " << reads);
    }
}
