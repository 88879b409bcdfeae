// SPDX-License-Identifier: Apache-2.0
// Runs StdConsole in a child whose stdout is what the case says.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include <doctest/doctest.h>

#include "unit/cli/sample.hpp"

namespace kmm::cli {
namespace {

/// Exit code of a child that runs a verb printing 200 kB with stdout on `fd`.
int exit_with_stdout(int fd) {
    const pid_t child = ::fork();
    if (child == 0) {
        (void)::dup2(fd, STDOUT_FILENO);
        (void)::close(STDERR_FILENO);
        StdConsole console;
        const char* const argv[] = {"kmm-plan", "show"};
        const auto program = sample::program([](const Args&, Context& context) {
            for (int i = 0; i < 200; ++i) context.console.out(std::string(1000, 'x'));
            return Exit::ok;
        });
        ::_exit(run_main(program, 2, argv, console));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_SUITE("cli::unit") {
    TEST_CASE("a full disk is exit 74") {
        const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
        REQUIRE(full >= 0);
        CHECK(exit_with_stdout(full) == 74);
        (void)::close(full);
    }

    TEST_CASE("a reader that went away is no failure and no signal") {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        (void)::close(ends[0]);
        CHECK(exit_with_stdout(ends[1]) == 0);
        (void)::close(ends[1]);
    }

    TEST_CASE("what has standard output alone is followed by nothing there") {
        BufferConsole console;
        console.out("a\n");
        console.out_alone("report\n");
        console.out("b\n");
        console.ci_commands("::notice::c\n", false);
        console.out_alone("second report\n");
        CHECK(console.out_text == "a\nreport\nsecond report\n");
        CHECK(console.err_text == "b\n::notice::c\n");
    }

    TEST_CASE("the width comes from COLUMNS and is sane") {
        const StdConsole console;
        ::setenv("COLUMNS", "132", 1);
        CHECK(console.width() == 132);
        ::setenv("COLUMNS", "3", 1);
        CHECK(console.width() == 20);
        ::setenv("COLUMNS", "rubbish", 1);
        CHECK(console.width() >= 20);
        ::unsetenv("COLUMNS");
    }
}

}  // namespace
}  // namespace kmm::cli
