// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <doctest/doctest.h>

#include "sys/signals.hpp"
#include "unit/cli/sample.hpp"

namespace kmm::cli {
namespace {

struct Ran {
    Ran(const std::vector<std::string>& arguments, std::function<Exit(const Args&, Context&)> action, bool terminal) {
        ::setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
        console.terminal = terminal;
        std::vector<const char*> argv = {"kmm-plan"};
        for (const auto& argument : arguments) argv.push_back(argument.c_str());
        exit = run_main(sample::program(std::move(action)), static_cast<int>(argv.size()), argv.data(), console);
    }
    int exit = 0;
    BufferConsole console;
};

Ran run(const std::vector<std::string>& arguments, std::function<Exit(const Args&, Context&)> action,
        bool terminal = false) {
    return Ran(arguments, std::move(action), terminal);
}

Exit nothing(const Args&, Context&) { return Exit::ok; }

TEST_SUITE("cli::unit") {
    TEST_CASE("the verb's exit is the program's") {
        CHECK(run({"show"}, nothing).exit == 0);
        CHECK(run({"show"}, [](const Args&, Context&) { return Exit::changes; }).exit == 2);
    }

    TEST_CASE("an interrupted wait exits with the code of its signal") {
        const auto exit_after = [](int signal) {
            sys::clear_interrupt();
            sys::request_interrupt(signal);
            const Ran ran = run({"show"}, [](const Args&, Context&) -> Exit {
                throw Error(Exit::interrupted, "interrupted", "interrupted while waiting")
                    .add_context("inner")
                    .add_context("outer")
                    .detail("url", "u")
                    .hint("again");
            });
            sys::clear_interrupt();
            CHECK(ran.console.err_text.find("outer: inner: interrupted while waiting") != std::string::npos);
            CHECK(ran.console.err_text.find("again") != std::string::npos);
            return ran.exit;
        };
        CHECK(exit_after(SIGINT) == 130);
        CHECK(exit_after(SIGTERM) == 143);
        CHECK(exit_after(SIGHUP) == 129);
    }

    TEST_CASE("a wait that --timeout ended is reported as such, not as an interrupt") {
        for (const char* output : {"table", "json"}) {
            const Ran ran = run({"show", "-o", output}, [](const Args&, Context&) -> Exit {
                throw Error(Exit::timeout, "interrupted", "timed out while waiting for login program x")
                    .detail("server", "s")
                    .hint("h");
            });
            CHECK(ran.exit == 124);
            const auto text = ran.console.err_text + ran.console.out_text;
            CHECK(text.find("timeout") != std::string::npos);
            CHECK(text.find("interrupted") == std::string::npos);
            CHECK(text.find("server") != std::string::npos);
        }
    }

    TEST_CASE("a path that cannot be looked at is the user's, not a bug") {
        for (const auto& [number, exit] : {std::pair{EACCES, 77}, {ENAMETOOLONG, 74}, {ENOENT, 66}}) {
            const Ran ran = run({"show"}, [number = number](const Args&, Context&) -> Exit {
                throw std::filesystem::filesystem_error("status", "/a\nb",
                                                        std::error_code(number, std::system_category()));
            });
            CHECK(ran.exit == exit);
            CHECK(ran.console.err_text.starts_with("error: cannot read /a\\nb: "));
        }
    }

    TEST_CASE("the program is told of every error before it is printed, of the command line too") {
        std::vector<std::string> told;
        const auto exit_of = [&](std::vector<const char*> argv, std::function<Exit(const Args&, Context&)> action) {
            Program program = sample::program(std::move(action));
            BufferConsole console;
            program.on_error = [&](const Error& error) {
                CHECK(console.err_text.empty());
                told.push_back(error.code());
            };
            argv.insert(argv.begin(), "kmm-plan");
            return run_main(program, static_cast<int>(argv.size()), argv.data(), console);
        };
        CHECK(exit_of({"show"}, nothing) == 0);
        CHECK(exit_of({"show", "--bogus"}, nothing) == 64);
        CHECK(exit_of({"show"}, [](const Args&, Context&) -> Exit { throw Error(Exit::data, "bad-value", "no"); }) ==
              65);
        CHECK(exit_of({"show"}, [](const Args&, Context&) -> Exit { throw std::runtime_error("x"); }) == 70);
        CHECK(told == std::vector<std::string>{"unknown-option", "bad-value", "bug"});
    }

    TEST_CASE("what the verb is told") {
        (void)run({"show", "-vv", "-o", "wide", "--color", "always"}, [](const Args& args, Context& context) {
            CHECK(context.verb.name == "show");
            CHECK(context.verbosity == 2);
            CHECK(context.output == "wide");
            CHECK(context.color_out);
            CHECK(context.color_err);
            CHECK(args.source("output") == "option");
            return Exit::ok;
        });
        (void)run({"show", "-q"}, [](const Args&, Context& context) {
            CHECK(context.verbosity == -1);
            CHECK(context.output == "table");
            CHECK_FALSE(context.color_out);
            return Exit::ok;
        });
    }

    TEST_CASE("colour is for terminals, unless NO_COLOR says no") {
        const auto colored = [](const std::vector<std::string>& arguments, bool terminal) {
            bool color = false;
            (void)run(arguments, [&](const Args&, Context& context) {
                color = context.color_err;
                return Exit::ok;
            }, terminal);
            return color;
        };
        ::unsetenv("NO_COLOR");
        CHECK(colored({"show"}, true));
        CHECK_FALSE(colored({"show"}, false));
        CHECK_FALSE(colored({"show", "--color=never"}, true));
        ::setenv("NO_COLOR", "1", 1);
        CHECK_FALSE(colored({"show"}, true));
        CHECK(colored({"show", "--color=always"}, true));
        ::unsetenv("NO_COLOR");
    }

    TEST_CASE("errors go to stderr as text and to stdout as a document") {
        const auto fail = [](const Args&, Context&) -> Exit { throw Error(Exit::busy, "module-in-use", "in use"); };
        const auto text = run({"show"}, fail);
        CHECK(text.exit == 14);
        CHECK(text.console.out_text.empty());
        CHECK(text.console.err_text == "error: in use\n  code:    module-in-use\n");
        const auto json = run({"show", "-o", "json"}, fail);
        CHECK(json.exit == 14);
        CHECK(json.console.err_text.empty());
        CHECK(json.console.out_text.starts_with("{\n  \"apiVersion\": \"kmmtools/v1\",\n  \"kind\": \"Error\","));
        CHECK(run({"show", "-o", "jsonl"}, fail)
                  .console.out_text.starts_with("{\"apiVersion\":\"kmmtools/v1\",\"kind\":\"Error\","));
        CHECK(run({"show", "-oyaml"}, fail).console.out_text.starts_with("apiVersion: kmmtools/v1\nkind: Error\n"));
        const auto usage = run({"show", "--bogus", "--output=json"}, nothing);
        CHECK(usage.exit == 64);
        CHECK(usage.console.out_text.find("\"unknown-option\"") != std::string::npos);
    }

    TEST_CASE("a failure nobody foresaw is a bug, said politely") {
        const auto ran = run({"show"}, [](const Args&, Context&) -> Exit { throw std::logic_error("oops"); });
        CHECK(ran.exit == 70);
        CHECK(ran.console.err_text.find("error: unexpected failure: oops\n") == 0);
        CHECK(ran.console.err_text.find("please report it") != std::string::npos);
        const auto memory = run({"show"}, [](const Args&, Context&) -> Exit { throw std::bad_alloc(); });
        CHECK(memory.exit == 70);
        CHECK(memory.console.err_text == "error: out of memory\n  code:    out-of-memory\n");
    }

    TEST_CASE("version and help") {
        CHECK(run({"--version"}, nothing).console.out_text == "kmm-plan " KMM_VERSION "\n");
        const auto help = run({"start", "--help"}, nothing);
        CHECK(help.exit == 0);
        CHECK(help.console.out_text.find("start kubernetes") != std::string::npos);
        CHECK(help.console.out_text.find("  show") == std::string::npos);
    }
}

}  // namespace
}  // namespace kmm::cli
