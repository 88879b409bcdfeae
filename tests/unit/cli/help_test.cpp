// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cli/parse.hpp"
#include "cli/text.hpp"
#include "base/text.hpp"
#include "unit/cli/sample.hpp"

namespace kmm::cli {
namespace {

TEST_SUITE("cli::unit") {
    TEST_CASE("help of a verb: examples first, groups apart, hidden options left out") {
        const Program program = sample::program();
        const std::string text = help_text(program, &program.verbs.front());
        const std::vector<std::string> parts = {
            "kmm-plan show - one line per node and module\n",
            "\nExamples:\n  kmm-plan show -o json\n      the plan file\n",
            "\nUsage:\n  kmm-plan show [NODE...] [OPTION...]\n",
            "\nFirst paragraph.\n\nSecond paragraph.\n",
            "\nArguments:\n  NODE                      only these nodes\n",
            "\nOptions:\n  -f, --file FILE           read-only documents (repeatable)\n",
            "\nWhich cluster:\n      --cluster DIR ",
            "\nCommon options:\n  -o, --output FORMAT ",
            "\nExit codes: kmm-plan --help\n",
        };
        std::size_t at = 0;
        for (const auto& part : parts) {
            CAPTURE(part);
            CAPTURE(text);
            const std::size_t found = text.find(part, at);
            REQUIRE(found != std::string::npos);
            at = found;
        }
        CHECK(text.find("secret-knob") == std::string::npos);
        CHECK(text.find("where the record is (environment: KMM_STATE_DIR;\n") != std::string::npos);
    }

    TEST_CASE("the usage line names the options that a verb does not do without") {
        Program program = sample::program();
        Option file;
        file.name = "file";
        file.value_name = "FILE";
        file.required = true;
        program.verbs.front().options = {file};
        CHECK(usage_line(program, program.verbs.front()) == "kmm-plan show [NODE...] --file FILE [OPTION...]");
    }

    TEST_CASE("help of the program has the whole exit code table") {
        const Program program = sample::program();
        const std::string text = help_text(program, nullptr);
        for (const auto& row : exit_code_table()) CHECK(text.find(row.meaning) != std::string::npos);
        CHECK(text.find("\nVerbs:\n  show              one line per node and module\n") != std::string::npos);
    }

    TEST_CASE("no line of help is wider than 80 columns") {
        Program program = sample::program();
        program.verbs.front().examples = {
            {std::string("kmm-plan show") +
                 std::string(40, ' ').replace(0, 40, " --cluster /a/rather/long/path/to/a/fleet") +
                 " --namespace drivers --selector a=b",
             "long"}};
        for (const Verb* verb : {static_cast<const Verb*>(nullptr), static_cast<const Verb*>(&program.verbs[0]),
                                 static_cast<const Verb*>(&program.verbs[2])}) {
            const std::string text = help_text(program, verb);
            for (const auto line : base::split(text, '\n')) CHECK(display_width(line) <= 80);
        }
        CHECK(help_text(program, &program.verbs.front()).find(" \\\n") != std::string::npos);
    }
}

}  // namespace
}  // namespace kmm::cli
