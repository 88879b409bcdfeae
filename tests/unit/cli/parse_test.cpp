// SPDX-License-Identifier: Apache-2.0
#include "cli/parse.hpp"

#include <cerrno>

#include <doctest/doctest.h>

#include "unit/cli/sample.hpp"

namespace kmm::cli {
namespace {

using Tokens = std::vector<std::string>;

Command parse(const Tokens& tokens, const Surroundings& surroundings = sample::surroundings()) {
    static const Program program = sample::program();
    return parse_command(program, tokens, surroundings);
}

/// The error of a command line that must be refused.
Error refused(const Tokens& tokens, const Surroundings& surroundings = sample::surroundings()) {
    try {
        (void)parse(tokens, surroundings);
    } catch (const Error& error) {
        return error;
    }
    FAIL("was accepted");
    return bug("unreachable");
}

TEST_SUITE("cli::unit") {
    TEST_CASE("options stand anywhere") {
        const std::vector<Tokens> cases = {
            {"show", "-f", "a", "--file=b", "node-1", "node-2"},
            {"-f", "a", "show", "node-1", "-fb", "node-2"},
            {"--file", "a", "show", "--file", "b", "--", "node-1", "node-2"},
            {"--file=a", "-f", "b", "show", "node-1", "node-2"},
        };
        for (const auto& tokens : cases) {
            CAPTURE(tokens.front());
            const auto command = parse(tokens);
            REQUIRE(command.verb != nullptr);
            CHECK(command.verb->name == "show");
            CHECK(command.args.all("file") == Tokens{"a", "b"});
            CHECK(command.args.positionals("NODE") == Tokens{"node-1", "node-2"});
        }
    }

    TEST_CASE("a value may look like anything") {
        CHECK(parse({"show", "--file", "-", "-"}).args.positional("NODE") == "-");
        CHECK(parse({"show", "--file", "--help"}).args.get("file") == "--help");
        CHECK(parse({"start", "module", "--to=", "ns/m"}).args.get("to") == "");
        CHECK(parse({"start", "module", "--to=", "ns/m"}).args.positional("MODULE") == "ns/m");
        CHECK(parse({"start", "module", "--to", "", "ns/m"}).args.get("to") == "");
        CHECK(parse({"show", "--file=[a,b]"}).args.get("file") == "[a,b]");
        CHECK(parse({"show", "--file=a=b"}).args.get("file") == "a=b");
        CHECK(parse({"show", "-f", "show"}).args.get("file") == "show");
        CHECK(parse({"show", "[a,b]"}).args.positional("NODE") == "[a,b]");
        CHECK(refused({"show", "--file", "--", "x"}).message() == "option --file needs a value: FILE");
        CHECK(parse({"show", "--", "-x"}).args.positional("NODE") == "-x");
    }

    TEST_CASE("names may be written as kubectl get -o name prints them") {
        CHECK(parse({"show", "node/a", "nodes/b", "c"}).args.positionals("NODE") == Tokens{"a", "b", "c"});
        const auto why = parse({"why", "node/a", "module.kmm.sigs.x-k8s.io/foo"});
        CHECK(why.args.positional("NODE") == "a");
        CHECK(why.args.positional("MODULE") == "foo");
        CHECK(parse({"why", "a", "node/foo"}).args.positional("MODULE") == "node/foo");
        CHECK(parse({"show", "--file", "node/a"}).args.get("file") == "node/a");
    }

    TEST_CASE("verbs of two words") {
        const auto command = parse({"start", "--to", "v2", "module", "drivers/hello"});
        CHECK(command.verb->name == "start module");
        CHECK(command.args.positional("MODULE") == "drivers/hello");
        CHECK(command.args.get("to") == "v2");
        CHECK(refused({"start"}).hint() == "kmm-plan start module, start kubernetes");
        CHECK(refused({"start", "modul", "x"}).hint() == "did you mean 'start module'?");
    }

    TEST_CASE("help and version are found everywhere") {
        struct Case {
            Tokens tokens;
            Request request;
            std::string verb, group;
        };
        const std::vector<Case> cases = {
            {{"--help"}, Request::help, "", ""},
            {{"-h"}, Request::help, "", ""},
            {{"help"}, Request::help, "", ""},
            {{"help", "why"}, Request::help, "why", ""},
            {{"why", "--help"}, Request::help, "why", ""},
            {{"why", "-vh"}, Request::help, "why", ""},
            {{"-h", "why"}, Request::help, "why", ""},
            {{"help", "start", "module"}, Request::help, "start module", ""},
            {{"start", "--help"}, Request::help, "", "start"},
            {{"show", "--bogus", "--help"}, Request::help, "show", ""},
            {{"--version"}, Request::version, "", ""},
            {{"show", "--version"}, Request::version, "", ""},
        };
        for (const auto& [tokens, request, verb, group] : cases) {
            CAPTURE(tokens.back());
            const auto command = parse(tokens);
            CHECK(command.request == request);
            CHECK((command.verb == nullptr ? "" : command.verb->name) == verb);
            CHECK(command.group == group);
        }
        CHECK(parse({"show", "--", "--help"}).args.positional("NODE") == "--help");
    }

    TEST_CASE("wrong command lines name the fault and the nearest right one") {
        struct Case {
            Tokens tokens;
            std::string code, message, hint;
        };
        const std::vector<Case> cases = {
            {{}, "missing-argument", "no verb given", "kmm-plan --help"},
            {{"shw"}, "unknown-verb", "unknown verb 'shw'", "did you mean 'show'?"},
            {{"frobnicate"}, "unknown-verb", "unknown verb 'frobnicate'", "kmm-plan --help"},
            {{"version"}, "unknown-verb", "unknown verb 'version'", "kmm-plan --version"},
            {{"stop"}, "unknown-verb", "unknown verb 'stop'", "see kmm-plan help start"},
            {{"stopp"}, "unknown-verb", "unknown verb 'stopp'", "see kmm-plan help start"},
            {{"STOP"}, "unknown-verb", "unknown verb 'STOP'", "see kmm-plan help start"},
            {{"star"}, "unknown-verb", "unknown verb 'star'", "did you mean 'start module'?"},
            {{"modulez"}, "unknown-verb", "unknown verb 'modulez'", "see kmm-plan help why"},
            {{"module"}, "unknown-verb", "unknown verb 'module'", "did you mean 'start module'?"},
            {{"help", "wyh"}, "unknown-verb", "unknown verb 'wyh'", "did you mean 'why'?"},
            {{"show", "--clustr", "x"}, "unknown-option", "unknown option --clustr", "did you mean --cluster?"},
            {{"--clustr=x"}, "unknown-option", "unknown option --clustr", "kmm-plan --help lists the options"},
            {{"why", "a", "b", "--canary", "1"},
             "unknown-option",
             "unknown option --canary",
             "kmm-plan why --help lists the options"},
            {{"start", "kubernetes", "--to", "v2"},
             "unknown-option",
             "unknown option --to",
             "VERSION is given without --to: kmm-plan start kubernetes VERSION [OPTION...]"},
            {{"show", "-Z"}, "unknown-option", "unknown option -Z", "kmm-plan show --help lists the options"},
            {{"why", "a"},
             "missing-argument",
             "missing argument MODULE: the module",
             "kmm-plan why NODE MODULE [OPTION...]"},
            {{"why", "a", "b", "c"}, "usage", "unexpected argument 'c'", "kmm-plan why NODE MODULE [OPTION...]"},
            {{"show", "a", ""}, "bad-value", "expected NODE, found ''", "name one, or leave it out"},
            {{"show", "nodes/"}, "bad-value", "expected NODE, found ''", "name one, or leave it out"},
            {{"why", "", "b"}, "bad-value", "expected NODE, found ''", "name one"},
            {{"show", "--mode", "sefl"},
             "bad-value",
             "option --mode: expected one of self, operator, found 'sefl'",
             "did you mean 'self'?"},
            {{"show", "--mode", "self", "--mode", "self"}, "usage", "option --mode was given 2 times", "give it once"},
            {{"show", "--dry-run=x"}, "usage", "option --dry-run takes no value", "write --dry-run alone"},
            {{"show", "--file"}, "usage", "option --file needs a value: FILE", "write --file FILE"},
            {{"show", "--timeout", "5 minutes"},
             "bad-value",
             "option --timeout: expected a duration such as 90s or 5m, found '5 minutes'",
             "a number and its unit, which is ms, s, m or h"},
            {{"show", "--cluster", ""},
             "bad-value",
             "option --cluster: expected DIR, found ''",
             "name one, or leave the option out"},
            {{"show", "--file", ""}, "bad-value", "option --file: expected FILE, found ''",
             "name one, or leave the option out"},
            {{"show", "-n", ""},
             "bad-value",
             "option --namespace: expected NAMESPACE, found ''",
             "name one, or leave the option out"},
            {{"show", "--canary", "-1"},
             "bad-value",
             "option --canary: expected a number, found '-1'",
             "digits alone, up to 4294967295"},
            {{"show", "-o=jsn"},
             "bad-value",
             "option --output: expected one of table, wide, json, yaml, name, jsonl, found 'jsn'",
             "did you mean 'json'?"},
            {{"show", "-o", "jsn"},
             "bad-value",
             "option --output: expected one of table, wide, json, yaml, name, jsonl, found 'jsn'",
             "did you mean 'json'?"},
        };
        for (const auto& [tokens, code, message, hint] : cases) {
            const Error error = refused(tokens);
            CHECK(error.exit() == Exit::usage);
            CHECK(error.code() == code);
            CHECK(error.message() == message);
            CHECK(error.hint() == hint);
        }
        const auto details = refused({"why", "a", "b", "--canary", "1"}).details();
        REQUIRE(details.size() == 1);
        CHECK(details.front().second == "to show");
    }

    TEST_CASE("option over environment over user's file over system's file over default") {
        const std::string system = "/etc/kmm-tools/config.yaml";
        const std::string user = "/home/u/conf/kmm-tools/config.yaml";
        const std::map<std::string, std::string> environment = {{"XDG_CONFIG_HOME", "/home/u/conf"}};
        auto with_variable = environment;
        with_variable["KMM_STATE_DIR"] = "/env";
        struct Case {
            Tokens tokens;
            Surroundings surroundings;
            std::string value, source;
        };
        const std::map<std::string, std::string> both = {{system, "state-dir: /system\n"},
                                                         {user, "state-dir: /user\n"}};
        const std::vector<Case> cases = {
            {{"show", "--state-dir", "/given"}, sample::surroundings(with_variable, both), "/given", "option"},
            {{"show"}, sample::surroundings(with_variable, both), "/env", "environment"},
            {{"show"}, sample::surroundings(environment, both), "/user", "configuration file"},
            {{"show"},
             sample::surroundings(environment, {{system, "state-dir: /system\n"}}),
             "/system",
             "configuration file"},
            {{"show"}, sample::surroundings(environment), "/var/lib/kmm-upgrade", "default"},
        };
        for (const auto& [tokens, surroundings, value, source] : cases) {
            const auto command = parse(tokens, surroundings);
            CHECK(command.args.get("state-dir") == value);
            CHECK(command.args.source("state-dir") == source);
        }
        CHECK(parse({"show"}).args.source("canary") == "");
        CHECK_FALSE(parse({"show"}).args.get("canary"));
    }

    TEST_CASE("flags from the environment and from files") {
        CHECK(parse({"show"}, sample::surroundings({{"KMM_DRY_RUN", "1"}})).args.flag("dry-run"));
        CHECK_FALSE(parse({"show"}, sample::surroundings({{"KMM_DRY_RUN", "no"}})).args.flag("dry-run"));
        CHECK_FALSE(parse({"show"}, sample::surroundings({{"KMM_DRY_RUN", ""}})).args.flag("dry-run"));
        CHECK(refused({"show"}, sample::surroundings({{"KMM_DRY_RUN", "maybe"}})).message() ==
              "environment variable KMM_DRY_RUN: expected true or false, found 'maybe'");
        const std::map<std::string, std::string> home = {{"HOME", "/h"}};
        const std::string path = "/h/.config/kmm-tools/config.yaml";
        CHECK(parse({"show"}, sample::surroundings(home, {{path, "dry-run: true\n"}})).args.flag("dry-run"));
        CHECK(parse({"show"}, sample::surroundings(home, {{path, "file: [a, b]\n"}})).args.all("file") ==
              Tokens{"a", "b"});
        CHECK(parse({"show"}, sample::surroundings(home, {{path, "canary: 3\n"}})).args.get("canary") == "3");
    }

    TEST_CASE("a command's own section of the file wins, other sections are not looked at") {
        const std::map<std::string, std::string> home = {{"HOME", "/h"}};
        const std::string text = "mode: self\nkmm-plan:\n  mode: operator\nkmm-upgrade:\n  whatever: 1\n";
        const std::string path = "/h/.config/kmm-tools/config.yaml";
        const auto command = parse({"show"}, sample::surroundings(home, {{path, text}}));
        CHECK(command.args.get("mode") == "operator");
        // ssh-config is an option of another command only
        CHECK(parse({"show"}, sample::surroundings(home, {{path, "ssh-config: x\n"}})).verb != nullptr);
    }

    TEST_CASE("an option that does nothing without another one is refused alone, but not from a file") {
        auto program = sample::program();
        program.verbs.front().options.push_back(sample::option("metrics", 0, "FILE", "write metrics"));
        program.verbs.front().options.push_back(sample::option("metrics-cluster", 0, "NAME", "their cluster"));
        const auto surroundings = sample::surroundings(
            {{"HOME", "/h"}}, {{"/h/.config/kmm-tools/config.yaml", "metrics-cluster: prod\n"}});
        try {
            (void)parse_command(program, {"show", "--metrics-cluster", "test"}, surroundings);
            FAIL("was accepted");
        } catch (const Error& error) {
            CHECK(error.code() == "missing-option");
            CHECK(error.message() == "--metrics-cluster requires --metrics");
        }
        const auto both = parse_command(program, {"show", "--metrics-cluster", "test", "--metrics", "-"}, surroundings);
        CHECK(both.args.get("metrics-cluster") == "test");
        CHECK(parse_command(program, {"show"}, surroundings).args.get("metrics-cluster") == "prod");
        // In a verb that has the name alone it is another option.
        program.verbs.front().options.push_back(sample::option("confirm", 0, "WORDS", "the words"));
        CHECK(parse_command(program, {"show", "--confirm", "x"}, surroundings).args.get("confirm") == "x");
        program.verbs.front().options.push_back(sample::option("restore-etcd", 0, "", "restore"));
        CHECK_THROWS_WITH_AS((void)parse_command(program, {"show", "--confirm", "x"}, surroundings),
                             "--confirm requires --restore-etcd", Error);
        CHECK(parse_command(program, {"show", "--confirm", "x", "--restore-etcd"}, surroundings)
                  .args.flag("restore-etcd"));
    }

    TEST_CASE("explain describes the error of a configuration file that is faulty") {
        auto program = sample::program();
        Verb explain;
        explain.name = "explain";
        program.verbs.push_back(explain);
        const std::string path = "/h/.config/kmm-tools/config.yaml";
        for (const char* text : {"colour: red\n", "a: [\n", "- a\n"}) {
            const auto surroundings = sample::surroundings({{"HOME", "/h"}}, {{path, text}});
            CHECK_THROWS_AS((void)parse_command(program, {"show"}, surroundings), Error);
            CHECK(parse_command(program, {"explain"}, surroundings).verb->name == "explain");
        }
        const auto whole = sample::surroundings({{"HOME", "/h"}}, {{path, "color: never\n"}});
        CHECK(parse_command(program, {"explain"}, whole).args.get("color") == "never");
    }

    TEST_CASE("keys that YAML 1.1 reads as booleans are options by their text") {
        auto program = sample::program();
        for (const char* name : {"yes", "no", "on", "y"})
            program.verbs.front().options.push_back(sample::option(name, 0, "", "a flag"));
        const std::string path = "/h/.config/kmm-tools/config.yaml";
        for (const std::string name : {"yes", "no", "on", "y"}) {
            CAPTURE(name);
            for (const auto& key : {name, "\"" + name + "\""}) {
                const auto surroundings = sample::surroundings({{"HOME", "/h"}}, {{path, key + ": true\n"}});
                CHECK(parse_command(program, {"show"}, surroundings).args.flag(name));
            }
        }
        CHECK_THROWS_WITH_AS((void)parse_command(program, {"show"},
                                                 sample::surroundings({{"HOME", "/h"}}, {{path, "off: true\n"}})),
                             "unknown key 'off'", Error);
    }

    TEST_CASE("a configuration file that may not be read stops verbs, not --help and --version") {
        const std::string own = "/h/.config/kmm-tools/config.yaml";
        for (const std::string& closed : {std::string("/etc/kmm-tools/config.yaml"), own}) {
            CAPTURE(closed);
            auto surroundings = sample::surroundings({{"HOME", "/h"}});
            surroundings.read_file = [closed](const std::string& path) -> std::optional<std::string> {
                if (path == closed) throw from_errno(EACCES, "cannot open " + path);
                return std::nullopt;
            };
            const Error error = refused({"show"}, surroundings);
            CHECK(error.exit() == Exit::no_permission);
            CHECK(error.hint().starts_with("make it readable for this user"));
            CHECK((error.hint().find("XDG_CONFIG_HOME") != std::string::npos) == (closed == own));
            CHECK(parse({"--version"}, surroundings).request == Request::version);
            CHECK(parse({"show", "--help"}, surroundings).request == Request::help);
        }
    }

    TEST_CASE("a bad configuration file is refused with its place") {
        struct Case {
            std::string text, message, hint;
            std::size_t line, column;
        };
        const std::vector<Case> cases = {
            {"# x\nclustr: a\n", "unknown key 'clustr'", "did you mean 'cluster'?", 2, 1},
            {"kmm-plan:\n  ssh-config: a\n", "unknown key 'ssh-config'", "the keys are the long options without dashes",
             2, 3},
            {"help: true\n", "unknown key 'help'", "the keys are the long options without dashes", 1, 1},
            {"mode: sefl\n", "'mode': expected one of self, operator, found 'sefl'", "did you mean 'self'?", 1, 7},
            {"dry-run: 5\n", "expected true or false for 'dry-run', found integer", "", 1, 10},
            {"cluster: [a]\n", "expected a value for 'cluster', found list", "", 1, 10},
            {"- a\n", "expected a mapping of option names, found list", "", 1, 1},
            {"kmm-plan: 5\n", "expected a mapping under 'kmm-plan', found integer", "", 1, 11},
        };
        for (const auto& [text, message, hint, line, column] : cases) {
            CAPTURE(text);
            const Error error = refused({"show"}, sample::surroundings({}, {{"/etc/kmm-tools/config.yaml", text}}));
            CHECK(error.exit() == Exit::config);
            CHECK(error.code() == "bad-configuration");
            CHECK(error.message() == message);
            CHECK(error.hint() == hint);
            REQUIRE(error.position());
            CHECK(error.position()->line == line);
            CHECK(error.position()->column == column);
        }
        CHECK(refused({"show"}, sample::surroundings({}, {{"/etc/kmm-tools/config.yaml", "a: [\n"}})).exit() ==
              Exit::config);
    }
}

}  // namespace
}  // namespace kmm::cli
