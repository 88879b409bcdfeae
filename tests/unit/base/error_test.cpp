// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"

using namespace kmm;

TEST_SUITE("base::error") {
    TEST_CASE("the exit code table names every code once, in ascending order") {
        int last = -1;
        std::set<std::string_view> names;
        for (const auto& row : exit_code_table()) {
            CHECK(static_cast<int>(row.code) > last);
            last = static_cast<int>(row.code);
            CHECK(names.insert(row.name).second);
            CHECK_FALSE(row.meaning.empty());
            CHECK(exit_name(row.code) == row.name);
        }
        CHECK(exit_code_table().size() == 25);
        CHECK(exit_name(static_cast<Exit>(99)) == "unknown");
    }

    TEST_CASE("numbers that users script against do not move") {
        CHECK(static_cast<int>(Exit::checks_failed) == 10);
        CHECK(static_cast<int>(Exit::paused) == 11);
        CHECK(static_cast<int>(Exit::hangup) == 129);
        CHECK(static_cast<int>(Exit::refused) == 13);
        CHECK(static_cast<int>(Exit::unsafe) == 16);
        CHECK(static_cast<int>(Exit::usage) == 64);
        CHECK(static_cast<int>(Exit::locked) == 75);
        CHECK(static_cast<int>(Exit::integrity) == 76);
        CHECK(static_cast<int>(Exit::terminated) == 143);
    }

    TEST_CASE("positions leave out what is unknown") {
        CHECK(Position{"a.yaml", 3, 7}.to_string() == "a.yaml:3:7");
        CHECK(Position{"a.yaml", 3, 0}.to_string() == "a.yaml:3");
        CHECK(Position{"a.yaml", 0, 0}.to_string() == "a.yaml");
    }

    TEST_CASE("contexts are kept outermost first") {
        try {
            with_context(
                [] { return std::string("outer"); },
                [] {
                    with_context([] { return std::string("inner"); }, [] { throw Error(Exit::io, "io", "disk gone"); });
                }
            );
            FAIL("nothing was thrown");
        } catch (const Error& error) {
            CHECK(error.context() == std::vector<std::string>{"outer", "inner"});
            CHECK(error.message() == "disk gone");
        }
    }

    TEST_CASE("with_context returns the body's value and does not build text on success") {
        bool built = false;
        const int value = with_context(
            [&] {
                built = true;
                return std::string();
            },
            [] { return 42; }
        );
        CHECK(value == 42);
        CHECK_FALSE(built);
    }

    TEST_CASE("errno becomes an exit class, a name and a text") {
        const Error missing = from_errno(ENOENT, "open x");
        CHECK(missing.exit() == Exit::not_found);
        CHECK(missing.message() == "open x: No such file or directory (ENOENT)");
        CHECK(missing.errno_cause() == ENOENT);
        CHECK(from_errno(EACCES, "x").exit() == Exit::no_permission);
        CHECK(from_errno(EPERM, "x").exit() == Exit::no_permission);
        CHECK(from_errno(ENOSPC, "x").exit() == Exit::io);
        CHECK(from_errno(EMFILE, "x").hint() == "raise the limit of open files of this process: ulimit -n");
        CHECK(from_errno(EFBIG, "x").hint().find("ulimit -f") != std::string::npos);
        CHECK(from_errno(ENFILE, "x").hint() == "raise the limit of open files of this host: sysctl fs.file-max");
        CHECK(from_errno(ENOENT, "x").hint().empty());
        CHECK(errno_name(4711) == "errno 4711");
        CHECK(errno_name(517) == "EPROBE_DEFER");
        CHECK(errno_text(524) == "Operation is not supported");
    }

    TEST_CASE("many diagnostics become one error with the right exit") {
        Diagnostic bad;
        bad.code = "unknown-field";
        bad.message = "unknown field \"x\"";
        bad.position = Position{"b.yaml", 2, 1};
        Diagnostic missing;
        missing.code = "unreadable-file";
        missing.message = "no such file";
        missing.position = Position{"a.yaml", 0, 0};
        missing.exit = Exit::not_found;
        Diagnostic warning;
        warning.severity = Severity::warning;
        warning.code = "note";

        CHECK(Error::from_diagnostics({bad}).exit() == Exit::data);
        CHECK(Error::from_diagnostics({bad}).position() == bad.position);
        CHECK(Error::from_diagnostics({missing}).exit() == Exit::not_found);
        CHECK(Error::from_diagnostics({missing, bad}).exit() == Exit::data);
        CHECK(Error::from_diagnostics({missing, bad, warning}).message() == "2 faults found");
        CHECK(Error::from_diagnostics({warning}).exit() == Exit::bug);
        CHECK(has_errors({warning, bad}));
        CHECK_FALSE(has_errors({warning}));
    }

    TEST_CASE("sorting merges equal findings and orders by place") {
        Diagnostic a;
        a.code = "x";
        a.position = Position{"a", 2, 1};
        Diagnostic b = a;
        b.position = Position{"a", 1, 9};
        Diagnostics all = {a, b, a};
        sort_and_merge(all);
        REQUIRE(all.size() == 2);
        CHECK(all[0].position == b.position);
    }
}
