// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using sys::ProcessSpec;

namespace {

ProcessSpec shell(const std::string& script) {
    ProcessSpec spec;
    spec.argv = {"sh", "-c", script};
    return spec;
}

}  // namespace

TEST_SUITE("sys::unit") {
    TEST_CASE("a child runs in the directory that is asked for, or in ours if that is gone") {
        auto spec = shell("pwd");
        spec.directory = "/usr";
        CHECK(sys::run_process(spec).out == "/usr\n");
        spec.argv = {"./true"};
        spec.directory = "/usr/bin";
        CHECK(sys::run_process(spec).exit_code == 0);
        spec = shell("pwd");
        const auto ours = sys::run_process(spec).out;
        spec.directory = "/no/such/directory";
        CHECK(sys::run_process(spec).out == ours);
    }

    TEST_CASE("what does not start in a directory is told as it is there") {
        const sys::TempDir directory("kmm-test-");
        const std::string script = directory.path() + "/script";
        sys::ProcessSpec spec;
        spec.argv = {"./script"};
        spec.directory = directory.path();
        const auto told = [&] {
            try {
                (void)sys::run_process(spec);
            } catch (const Error& error) {
                return error.message();
            }
            return std::string("started");
        };
        CHECK(told() == "command ./script not found");
        std::ofstream(script) << "#!/no/such/interpreter\n";
        std::filesystem::permissions(script, std::filesystem::perms::owner_all);
        CHECK(told() == "command ./script cannot be run: it is there, and the interpreter that it names is not");
        spec.directory = "/" + std::string(300, 'x');
        CHECK(told() == "cannot enter " + spec.directory + ": File name too long (ENAMETOOLONG)");
    }

    TEST_CASE("a child's output, error output and exit code come back") {
        const sys::ProcessResult result = sys::run_process(shell("echo out; echo err >&2; exit 7"));
        CHECK(result.out == "out\n");
        CHECK(result.err == "err\n");
        CHECK(result.exit_code == 7);
        CHECK(result.signal == 0);
        CHECK_FALSE(result.timed_out);
    }

    TEST_CASE("input larger than a pipe is fed while output is read") {
        ProcessSpec spec;
        spec.argv = {"cat"};
        spec.stdin_text.assign(1U << 20U, 'x');
        const sys::ProcessResult result = sys::run_process(spec);
        CHECK(result.exit_code == 0);
        CHECK(result.out == spec.stdin_text);
    }

    TEST_CASE("a child that does not read its input ends without SIGPIPE here") {
        ProcessSpec spec;
        spec.argv = {"true"};
        spec.stdin_text.assign(1U << 20U, 'x');
        CHECK(sys::run_process(spec).exit_code == 0);
    }

    TEST_CASE("output beyond the limit is dropped, not kept and not waited for") {
        ProcessSpec spec = shell("head -c 100000 /dev/zero");
        spec.output_max = 1000;
        const sys::ProcessResult result = sys::run_process(spec);
        CHECK(result.out.size() == 1000);
        CHECK(result.exit_code == 0);
    }

    TEST_CASE("lines of the error output arrive one by one, the last one without a newline too") {
        std::vector<std::string> lines;
        ProcessSpec spec = shell("printf 'a\\nb' >&2; printf 'c\\n\\nd' >&2");
        spec.on_stderr_line = [&](std::string_view line) { lines.emplace_back(line); };
        CHECK(sys::run_process(spec).exit_code == 0);
        CHECK(lines == std::vector<std::string>{"a", "bc", "", "d"});
    }

    TEST_CASE("the timeout ends the child and everything in its session") {
        ProcessSpec spec = shell("sleep 60 & sleep 60");
        spec.timeout = std::chrono::milliseconds(100);
        const auto start = std::chrono::steady_clock::now();
        const sys::ProcessResult result = sys::run_process(spec);
        CHECK(result.timed_out);
        CHECK(result.signal == SIGTERM);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
    }

    TEST_CASE("a child that nobody waits for any more is ended as after the timeout") {
        ProcessSpec spec = shell("echo begun; sleep 60");
        spec.cancelled = [] { return true; };
        const sys::ProcessResult result = sys::run_process(spec);
        CHECK(result.cancelled);
        CHECK_FALSE(result.timed_out);
        CHECK(result.signal == SIGTERM);
        spec = shell("exit 3");
        spec.cancelled = [] { return false; };
        CHECK_FALSE(sys::run_process(spec).cancelled);
    }

    TEST_CASE("a child that ignores SIGTERM gets SIGKILL") {
        ProcessSpec spec = shell("trap '' TERM; while :; do sleep 0.05; done");
        spec.timeout = std::chrono::milliseconds(100);
        const sys::ProcessResult result = sys::run_process(spec);
        CHECK(result.timed_out);
        CHECK(result.signal == SIGKILL);
    }

    TEST_CASE("the timeout ends what the child has started too, whatever that does with SIGTERM") {
        for (const char* trap : {"trap '' TERM", ":"}) {
            CAPTURE(trap);
            ProcessSpec spec = shell(std::string("(") + trap + "; while :; do sleep 0.05; done) & echo $!; wait");
            spec.timeout = std::chrono::milliseconds(200);
            const sys::ProcessResult result = sys::run_process(spec);
            CHECK(result.timed_out);
            const pid_t left = std::stoi(result.out);
            bool is_gone = false;  // or a zombie, where nobody waits for orphans
            for (int look = 0; look < 100 && !is_gone; ++look) {
                std::ifstream stat("/proc/" + std::to_string(left) + "/stat");
                std::string number, name, state;
                is_gone = !(stat >> number >> name >> state) || state == "Z";
                ::usleep(10'000);
            }
            CHECK(is_gone);
        }
    }

    TEST_CASE("a command that is there and cannot be run is not called missing") {
        const sys::TempDir directory("kmm-test-");
        const std::string script = directory.path() + "/script";
        const auto error_of = [&](const std::string& text) {
            std::ofstream(script) << text;
            std::filesystem::permissions(script, std::filesystem::perms::owner_all);
            ProcessSpec spec;
            spec.argv = {script};
            try {
                (void)sys::run_process(spec);
            } catch (const Error& error) {
                return error.message() + " / " + error.hint();
            }
            return std::string();
        };
        CHECK(error_of("#!/no/such/interpreter\n").find("it is there, and the interpreter that it names is not") !=
              std::string::npos);
        CHECK(error_of("echo no first line\n").find("#!/bin/sh") != std::string::npos);
        CHECK(sys::replace_process({script}).errno_cause() == ENOEXEC);
    }

    TEST_CASE("a grandchild that keeps the pipes open is not waited for") {
        const auto start = std::chrono::steady_clock::now();
        const sys::ProcessResult result = sys::run_process(shell("sleep 60 & echo done"));
        CHECK(result.out == "done\n");
        CHECK(result.exit_code == 0);
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
    }

    TEST_CASE("a missing command is 66 command-not-found") {
        for (const char* name : {"no-such-command-here", "/no/such/command"}) {
            ProcessSpec spec;
            spec.argv = {name};
            try {
                static_cast<void>(sys::run_process(spec));
                FAIL("started " << name);
            } catch (const Error& error) {
                CHECK(error.code() == "command-not-found");
                CHECK(error.exit() == Exit::not_found);
            }
        }
    }

    TEST_CASE("descriptors above 2 are not inherited and variables are added or replaced") {
        const int leaked = ::open("/dev/null", O_RDONLY);  // no O_CLOEXEC
        REQUIRE(leaked > 2);
        ProcessSpec spec = shell("ls /proc/self/fd | wc -l; echo $KMM_X; echo $HOME");
        spec.extra_env = {{"KMM_X", "1"}, {"HOME", "/nowhere"}};
        const sys::ProcessResult result = sys::run_process(spec);
        ::close(leaked);
        CHECK(result.out == "4\n1\n/nowhere\n");  // 0, 1, 2 and the directory itself
    }

    TEST_CASE("many threads at once") {
        std::vector<std::thread> threads;
        std::vector<std::string> outputs(8);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            threads.emplace_back([&outputs, i] {
                ProcessSpec spec;
                spec.argv = {"cat"};
                spec.stdin_text = std::string(50'000, static_cast<char>('a' + i));
                outputs[i] = sys::run_process(spec).out;
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            CHECK(outputs[i] == std::string(50'000, static_cast<char>('a' + i)));
        }
    }
}
