// SPDX-License-Identifier: Apache-2.0
#include "sys/signals.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/host.hpp"
#include "sys/random.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

/// Runs `body` in a forked child and returns its wait status.
template <typename Body>
int in_child(Body&& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
}

}  // namespace

TEST_SUITE("sys::unit") {
    TEST_CASE("the first signal asks, the second one ends the process") {
        struct Row {
            int first, second, exit_code;
        };
        for (const Row& row : {Row{SIGINT, SIGINT, 130}, Row{SIGTERM, SIGTERM, 143}, Row{SIGINT, SIGTERM, 143},
                               Row{SIGHUP, SIGHUP, 129}, Row{SIGTERM, SIGHUP, 129}}) {
            CAPTURE(row.first);
            const int status = in_child([&] {
                std::signal(row.first, SIG_DFL);
                sys::install_signal_handlers();
                std::raise(row.first);
                if (!sys::interrupt_requested() || sys::interrupt_signal() != row.first ||
                    static_cast<int>(sys::interrupt_exit()) != 128 + row.first) {
                    return 1;
                }
                std::raise(row.second);
                return 2;
            });
            CHECK(WIFEXITED(status));
            CHECK(WEXITSTATUS(status) == row.exit_code);
        }
    }

    TEST_CASE("the first signal ends waiting for input that does not come") {
        const sys::TempDir dir("kmm-signals-");
        const std::string fifo = dir.path() + "/fifo";
        REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
        for (const bool named :
             {true, false}) {  // one that nobody opens for writing, one that somebody opened and is silent
            CAPTURE(named);
            const int status = in_child([&] {
                int ends[2] = {-1, -1};
                if (::pipe(ends) != 0) { return 2; }
                sys::install_signal_handlers();
                ::alarm(10);
                std::thread later([] {
                    ::usleep(100'000);
                    ::kill(::getpid(), SIGTERM);
                });
                later.detach();
                try {
                    static_cast<void>(named ? sys::read_file(fifo) : sys::read_fd(ends[0], "the pipe"));
                } catch (const Error& error) {
                    return error.exit() == Exit::interrupted &&
                                   error.message() ==
                                       "interrupted while " + (named ? fifo : std::string("the pipe")) + " was read"
                               ? 0
                               : 3;
                }
                return 4;
            });
            CHECK(WIFEXITED(status));
            CHECK(WEXITSTATUS(status) == 0);
        }
    }

    TEST_CASE("a pipe with a name is read to its end, however late its writer comes") {
        const sys::TempDir dir("kmm-signals-");
        const std::string fifo = dir.path() + "/fifo";
        REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
        std::thread writer([&] {
            ::usleep(50'000);
            const sys::Fd fd(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
            CHECK(::write(fd.get(), "one ", 4) == 4);
            ::usleep(50'000);
            CHECK(::write(fd.get(), "two", 3) == 3);
        });
        CHECK(sys::read_file(fifo) == "one two");
        writer.join();
    }

    TEST_CASE("a signal that the parent ignored stays ignored, SIGTERM never is") {
        const int status = in_child([] {
            std::signal(SIGHUP, SIG_IGN);
            std::signal(SIGINT, SIG_IGN);
            std::signal(SIGTERM, SIG_IGN);
            sys::install_signal_handlers();
            std::raise(SIGHUP);
            std::raise(SIGINT);
            if (sys::interrupt_requested()) {
                return 1;
            }
            std::raise(SIGTERM);
            return sys::interrupt_requested() ? 0 : 2;
        });
        CHECK(WEXITSTATUS(status) == 0);
    }

    TEST_CASE("sleeping ends early on a signal, in every thread") {
        const int status = in_child([] {
            sys::install_signal_handlers();
            sys::LinuxClock clock;
            bool other = true;
            std::thread sleeper([&] { other = clock.sleep_for(std::chrono::seconds(30)); });
            std::thread killer([] {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                ::kill(::getpid(), SIGTERM);
            });
            const bool mine = clock.sleep_for(std::chrono::seconds(30));
            sleeper.join();
            killer.join();
            return !mine && !other ? 0 : 1;
        });
        CHECK(WEXITSTATUS(status) == 0);
    }

    TEST_CASE("an undisturbed sleep lasts at least as long as asked for") {
        sys::LinuxClock clock;
        const auto start = clock.monotonic();
        CHECK(clock.sleep_for(std::chrono::milliseconds(30)));
        CHECK(clock.monotonic() - start >= std::chrono::milliseconds(29));
    }

    TEST_CASE("closed standard descriptors are replaced, and writing to them fails still") {
        const int status = in_child([] {
            ::close(0);
            ::close(1);
            ::close(2);
            sys::install_signal_handlers();
            char byte = 0;
            if (::read(0, &byte, 1) != 0) {
                return 1;
            }
            for (const int fd : {1, 2}) {
                if (::write(fd, "x", 1) != -1 || errno != EBADF) {
                    return 2;
                }
            }
            return ::dup(0) > 2 ? 0 : 3;
        });
        CHECK(WEXITSTATUS(status) == 0);
    }

    TEST_CASE("a limit of too few open files is raised, or is the error before anything is done") {
        struct Row {
            rlim_t soft, hard, then;
            std::string said;
        };
        const std::string few = "expected a limit of at least 64 open files, found ";
        for (const Row& row : {Row{13, 64, 64, ""}, Row{13, 1024, 256, ""}, Row{300, 300, 300, ""}, Row{64, 64, 64, ""},
                               Row{13, 13, 13, few + "13"}, Row{3, 63, 63, few + "63"}}) {
            CAPTURE(row.hard);
            const int status = in_child([&] {
                rlimit limit{row.soft, row.hard};
                if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) { return 2; }
                std::string said;
                try {
                    sys::require_open_files();
                } catch (const Error& error) {
                    said = error.message();
                }
                ::getrlimit(RLIMIT_NOFILE, &limit);
                return said == row.said && limit.rlim_cur == row.then ? 0 : 1;
            });
            CHECK(status == 0);
        }
    }

    TEST_CASE("uuids are of version 4 and differ") {
        class Fixed final : public sys::Random {
        public:
            void fill(std::span<std::uint8_t> bytes) override {
                std::fill(bytes.begin(), bytes.end(), std::uint8_t{0xff});
            }
        };
        Fixed fixed;
        CHECK(sys::uuid_v4(fixed) == "ffffffff-ffff-4fff-bfff-ffffffffffff");
        sys::LinuxRandom random;
        std::set<std::string> seen;
        for (int i = 0; i < 100; ++i) {
            seen.insert(sys::uuid_v4(random));
        }
        CHECK(seen.size() == 100);
    }

    TEST_CASE("start times tell processes apart") {
        CHECK(sys::process_start_time(::getpid()).has_value());
        CHECK_FALSE(sys::process_start_time(0).has_value());
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::_exit(0);
        }
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
        CHECK_FALSE(sys::process_start_time(pid).has_value());  // a zombie holds nothing
        ::waitpid(pid, nullptr, 0);
        CHECK_FALSE(sys::host_name().empty());
    }
}
