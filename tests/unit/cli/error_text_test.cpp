// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include <doctest/doctest.h>

#include "cli/app.hpp"

namespace kmm::cli {
namespace {

TEST_SUITE("cli::unit") {
    TEST_CASE("the house's form") {
        const Error error = Error(Exit::busy, "module-in-use", "module nv_peer_mem is still in use (refcount 3)")
                                .add_context("node worker-7")
                                .detail("holders", "nvidia_uvm -> nvidia")
                                .hint("kmm-upgrade resume --node worker-7 after the users have stopped");
        CHECK(
            error_text(error, false) ==
            "error: node worker-7: module nv_peer_mem is still in use (refcount 3)\n"
            "  holders: nvidia_uvm -> nvidia\n"
            "  hint:    kmm-upgrade resume --node worker-7 after the users have stopped\n"
            "  code:    module-in-use\n"
        );
        CHECK(error_text(error, true).starts_with("\x1b[1;31merror:\x1b[0m node"));
        CHECK(error_json(error) ==
              "{\n  \"apiVersion\": \"kmmtools/v1\",\n  \"kind\": \"Error\",\n  \"code\": \"module-in-use\",\n  "
              "\"exit\": 14,\n"
              "  \"message\": \"module nv_peer_mem is still in use (refcount 3)\",\n  \"context\": [\n    \"node "
              "worker-7\"\n  ],\n"
              "  \"hint\": \"kmm-upgrade resume --node worker-7 after the users have stopped\",\n"
              "  \"details\": {\n    \"holders\": \"nvidia_uvm -> nvidia\"\n  }\n}\n");
    }

    TEST_CASE("details with one text are one line, with their keys; as JSON each stays") {
        Error error(Exit::checks_failed, "pods-not-evictable", "6 of 9 nodes cannot be drained");
        for (const auto* node : {"a", "b", "c", "d", "e"}) error.detail(node, "cannot delete Pods");
        error.detail("f", "something else").detail("g", "something else");
        CHECK(
            error_text(error, false) ==
            "error: 6 of 9 nodes cannot be drained\n  a, b, c, 2 more: cannot delete Pods\n  f, g:    something else\n"
            "  code:    pods-not-evictable\n");
        CHECK(error_node(error).find("details")->members().size() == 7);
        const auto hints = Error(Exit::checks_failed, "c", "m")
                               .detail("a", "x")
                               .detail("a hint", "z")
                               .detail("b", "y")
                               .detail("b hint", "z");
        CHECK(error_text(hints, false) == "error: m\n  a:       x\n  a, b hint: z\n  b:       y\n  code:    c\n");
        const auto same =
            Error(Exit::checks_failed, "c", "m").detail("node-a", "node-a is away").detail("node-b", "node-b is away");
        CHECK(error_text(same, false) == "error: m\n  node-a, node-b: NODE is away\n  code:    c\n");
        // A key that comes again is of what stands before it.
        const auto fixes = Error(Exit::checks_failed, "c", "m")
                               .detail("a", "gone")
                               .detail("fix", "look")
                               .detail("b", "gone")
                               .detail("fix", "look")
                               .detail("d", "else")
                               .detail("fix", "run")
                               .detail("e", "other")
                               .detail("fix", "look");
        CHECK(error_text(fixes, false) ==
              "error: m\n  a, b:    gone\n  fix:     look\n  d:       else\n  fix:     run\n  e:       other\n"
              "  fix:     look\n  code:    c\n");
    }

    TEST_CASE("a cause is named unless the message has it") {
        CHECK(error_text(from_errno(ENOSPC, "writing /x"), false) ==
              "error: writing /x: No space left on device (ENOSPC)\n  code:    io\n");
        CHECK(
            error_text(Error(Exit::io, "io", "cannot write").cause_errno(ENOSPC), false) ==
            "error: cannot write\n  cause:   No space left on device (ENOSPC)\n  code:    io\n"
        );
        CHECK(
            error_text(Error(Exit::unavailable, "unavailable", "no answer").cause_http(503), false) ==
            "error: no answer\n  cause:   HTTP 503\n  code:    unavailable\n"
        );
        CHECK(error_json(Error(Exit::io, "io", "x").cause_errno(ENOSPC)).find("\"errno\": \"ENOSPC\"") !=
              std::string::npos);
        CHECK(error_json(Error(Exit::io, "io", "x").cause_http(503).retryable()).find("\"httpStatus\": 503") !=
              std::string::npos);
        CHECK(error_json(Error(Exit::io, "io", "x").retryable()).find("\"retryable\": true") != std::string::npos);
    }

    TEST_CASE("several faults: a line each, then the sum") {
        Diagnostic first;
        first.code = "unknown-field";
        first.message = "unknown field 'contaner'";
        first.position = Position{"a.yaml", 3, 5};
        first.hint = "did you mean 'container'?";
        Diagnostic second;
        second.severity = Severity::warning;
        second.code = "odd";
        second.message = "odd";
        second.position = Position{"b.yaml", 1, 1};
        Diagnostic third = second;
        third.severity = Severity::error;
        third.position = Position{"b.yaml", 2, 1};
        CHECK(
            error_text(Error::from_diagnostics({first, second, third}), false) ==
            "a.yaml:3:5: error: unknown field 'contaner' [unknown-field]\n  hint:    did you mean 'container'?\n"
            "b.yaml:1:1: warning: odd [odd]\nb.yaml:2:1: error: odd [odd]\n"
            "error: 2 faults found\n  code:    unknown-field\n"
        );
        CHECK(
            error_text(Error::from_diagnostics({first}), false) ==
            "a.yaml:3:5: error: unknown field 'contaner' [unknown-field]\n  hint:    did you mean 'container'?\n"
            "error: 1 fault found\n  code:    unknown-field\n"
        );
        const std::string json = error_json(Error::from_diagnostics({first}));
        CHECK(json.find("\"file\": \"a.yaml\",\n      \"line\": 3,\n      \"column\": 5,\n") != std::string::npos);
    }

    TEST_CASE("control characters of foreign text never reach the terminal") {
        const std::string text =
            error_text(Error(Exit::other, "x", "a\x1b[2Jb\nc").detail("kernel", "one\ntwo"), false);
        CHECK(text == "error: a\\x1b[2Jb\n  c\n  kernel:  one\n           two\n  code:    x\n");
    }
}

}  // namespace
}  // namespace kmm::cli
