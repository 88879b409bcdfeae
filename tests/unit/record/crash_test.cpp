// SPDX-License-Identifier: Apache-2.0
// Every operation on the disk fails, or is the last one of its process.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "record/state_dir.hpp"
#include "scenario.hpp"
#include "sys/directory.hpp"

using namespace kmm;
using namespace kmm::record;
using namespace kmm::record::test;

namespace {

/// Calls `on_op` before each operation; `half` lets a write be torn first.
class HookedFileOps final : public sys::FileOps {
public:
    enum class Verdict { go, tear };
    explicit HookedFileOps(std::function<Verdict(const char*)> on_op) : on_op_(std::move(on_op)) {}
    std::function<void()> after_tear;

    int create(const std::string& path, unsigned mode) override {
        on_op_("create");
        return real_.create(path, mode);
    }
    int open_append(const std::string& path) override {
        on_op_("open_append");
        return real_.open_append(path);
    }
    void write(int fd, std::string_view bytes) override {
        if (on_op_("write") == Verdict::tear) {
            real_.write(fd, bytes.substr(0, bytes.size() / 2));
            after_tear();
        }
        real_.write(fd, bytes);
    }
    void sync(int fd) override {
        on_op_("sync");
        real_.sync(fd);
    }
    void rename(const std::string& from, const std::string& to) override {
        on_op_("rename");
        real_.rename(from, to);
    }
    void sync_dir(const std::string& directory) override {
        on_op_("sync_dir");
        real_.sync_dir(directory);
    }

private:
    std::function<Verdict(const char*)> on_op_;
    sys::LinuxFileOps real_;
};

int count_operations() {
    const ScratchState scratch;
    int count = 0;
    HookedFileOps ops([&](const char*) {
        ++count;
        return HookedFileOps::Verdict::go;
    });
    play(scratch.path(), ops, [](int) {});
    return count;
}

bool has_temp_files(const std::string& dir) {
    for (const sys::DirectoryEntry& entry : sys::list_directory(dir)) {
        if (entry.name.ends_with(".kmm-tmp")) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_SUITE("record::unit") {
    TEST_CASE("an error of any operation leaves a record that can be gone on with") {
        const int operations = count_operations();
        REQUIRE(operations > 40);
        int points = 0;
        for (const int error : {ENOSPC, EIO, EINTR, EDQUOT, EROFS}) {
            for (const bool torn : {false, true}) {
                for (int failing = 1; failing <= operations; failing += static_cast<int>(k_stride)) {
                    CAPTURE(error);
                    CAPTURE(torn);
                    CAPTURE(failing);
                    const ScratchState scratch;
                    int acked = 0;
                    int count = 0;
                    HookedFileOps ops([&](const char* name) {
                        if (++count != failing) {
                            return HookedFileOps::Verdict::go;
                        }
                        if (torn && std::string_view(name) == "write") {
                            return HookedFileOps::Verdict::tear;
                        }
                        throw from_errno(error, name);
                    });
                    ops.after_tear = [&] { throw from_errno(error, "torn write"); };
                    CHECK_THROWS_AS(play(scratch.path(), ops, [&](int step) { acked = step; }), Error);
                    CHECK_FALSE(has_temp_files(scratch.path()));
                    CHECK(verdict(scratch.path(), acked) == "");
                    CHECK(go_on(scratch.path()) == "");
                    ++points;
                }
            }
        }
        MESSAGE("errno points tried: " << points);
    }

    TEST_CASE("after a failed append the same object can append again, on a new file") {
        const int operations = count_operations();
        const FixedClock clock;
        for (int failing = 1; failing <= operations; ++failing) {
            CAPTURE(failing);
            const ScratchState scratch;
            int count = 0;
            HookedFileOps ops([&](const char* name) {
                if (++count == failing) {
                    throw from_errno(EIO, name);
                }
                return HookedFileOps::Verdict::go;
            });
            StateDir state(scratch.path(), ops, clock);
            const auto twice = [](const std::function<void()>& body) {
                try {
                    body();
                } catch (const Error&) {
                    body();
                }
            };
            twice([&] {
                if (state.load().entries.empty()) {
                    state.begin(payload_of(1));
                }
            });
            twice([&] { state.append(payload_of(2)); });
            twice([&] { state.append(payload_of(3)); });
            CHECK(StateDir(scratch.path(), ops, clock).load().entries.size() == 3);
            if (count < failing) {
                break;
            }
        }
    }

    TEST_CASE("a run that is followed by another is never lost between the two") {
        const FixedClock clock;
        int operations = 0;
        for (int last = 1; last <= operations || operations == 0; ++last) {
            CAPTURE(last);
            const ScratchState scratch;
            sys::LinuxFileOps real;
            StateDir first(scratch.path(), real, clock);
            first.begin(payload_of(1));
            first.append(payload_of(2));
            first.write_snapshot(payload_of(2));
            const pid_t pid = ::fork();
            if (pid == 0) {
                int count = 0;
                HookedFileOps ops([&](const char*) {
                    if (++count == last) ::_exit(9);
                    return HookedFileOps::Verdict::go;
                });
                StateDir(scratch.path(), ops, clock).succeed("first", payload_of(1));
                ::_exit(0);
            }
            int status = 0;
            ::waitpid(pid, &status, 0);
            StateDir after(scratch.path(), real, clock);
            const auto entries = after.load().entries.size();
            CHECK(after.history().size() == (entries == 2 ? 0 : 1));
            if (WEXITSTATUS(status) == 0) operations = last - 1;
            if (entries == 2) after.succeed("first", payload_of(1));
            REQUIRE(after.load().entries.size() == 1);
            REQUIRE(after.history().size() == 1);
            CHECK(after.load_history(after.history()[0]).entries.size() == 2);
            CHECK(go_on(scratch.path()) == "");
            if (operations != 0) break;
        }
        CHECK(operations > 8);
    }

    TEST_CASE("a process that dies at any operation leaves a record that can be gone on with") {
        const int operations = count_operations();
        int points = 0;
        for (const bool torn : {false, true}) {
            for (int last = 1; last <= operations; ++last) {
                CAPTURE(torn);
                CAPTURE(last);
                const ScratchState scratch;
                std::array<int, 2> pipe_ends{};
                REQUIRE(::pipe(pipe_ends.data()) == 0);
                const pid_t pid = ::fork();
                if (pid == 0) {
                    int count = 0;
                    HookedFileOps ops([&](const char* name) {
                        if (++count != last) {
                            return HookedFileOps::Verdict::go;
                        }
                        if (torn && std::string_view(name) == "write") {
                            return HookedFileOps::Verdict::tear;
                        }
                        ::_exit(9);
                    });
                    ops.after_tear = [] { ::_exit(9); };
                    play(scratch.path(), ops, [&](int step) {
                        const char byte = static_cast<char>(step);
                        [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], &byte, 1);
                    });
                    ::_exit(0);
                }
                ::close(pipe_ends[1]);
                int acked = 0;
                char byte = 0;
                while (::read(pipe_ends[0], &byte, 1) == 1) {
                    acked = byte;
                }
                ::close(pipe_ends[0]);
                int status = 0;
                ::waitpid(pid, &status, 0);
                CHECK(WEXITSTATUS(status) == 9);
                CHECK(verdict(scratch.path(), acked) == "");
                CHECK(go_on(scratch.path()) == "");
                ++points;
            }
        }
        MESSAGE("crash points tried: " << points);
    }

    TEST_CASE("no space for the journal shows before the run begins") {
        const ScratchState scratch;
        const pid_t pid = ::fork();
        if (pid == 0) {
            // A file system of 32 kB: more than what is written, less than what is reserved.
            if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                ::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=32k,mode=0700") != 0) {
                ::_exit(77);
            }
            sys::LinuxFileOps ops;
            const FixedClock clock;
            try {
                StateDir(scratch.path(), ops, clock).begin(payload_of(1));
            } catch (const Error& error) {
                const bool clean =
                    StateDir(scratch.path(), ops, clock).load().entries.empty() && !has_temp_files(scratch.path());
                ::_exit(error.exit() == Exit::io && clean ? 7 : 8);
            }
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        if (WEXITSTATUS(status) == 77) {
            MESSAGE("not allowed to mount: a full file system was not tried");
            return;
        }
        CHECK(WEXITSTATUS(status) == 7);
    }
}
