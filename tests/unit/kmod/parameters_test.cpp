// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/parameters.hpp"

#include <doctest/doctest.h>

#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

kmod::ModuleFile module_with_parameters() {
    KoSpec spec;
    spec.modinfo = {"parmtype=answer:int",
                    "parmtype=level:byte",
                    "parmtype=on:bool",
                    "parmtype=who:charp",
                    "parmtype=many:array of uint",
                    "parmtype=odd:own_type",
                    "parmtype=flags:array of bool",
                    "parm=big:size",
                    "parmtype=big:ulong",
                    "parmtype=tri:bint",
                    "parmtype=off:invbool"};
    spec.defined = {"__param_str_answer", "__param_str_bare"};
    return kmod::parse_module(make_ko(spec), "x.ko");
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("parameters against their declaration") {
    const auto module = module_with_parameters();
    struct Case {
        const char* text;
        const char* code;  // "" for accepted
    };
    const Case cases[] = {
        {"answer=42", ""},
        {"answer=-42", ""},
        {"answer=0x2a", ""},
        {"answer=052", ""},
        {"answer=2147483647", ""},
        {"answer=-2147483648", ""},
        {"answer=2147483648", "bad-parameter"},
        {"answer=-2147483649", "bad-parameter"},
        {"answer=", "bad-parameter"},
        {"answer", "bad-parameter"},
        {"answer=4x", "bad-parameter"},
        {"answer=089", "bad-parameter"},
        {"level=255", ""},
        {"level=256", "bad-parameter"},
        {"level=-1", "bad-parameter"},
        {"on", ""},
        {"on=y", ""},
        {"on=off", ""},
        {"on=maybe", "bad-parameter"},
        {"on=", "bad-parameter"},
        {"on=\"\"", "bad-parameter"},
        {"on=true", ""},
        {"on=False", ""},
        {"on=oN", ""},
        {"on=2", "bad-parameter"},
        {"on=1", ""},
        {"on=10", "odd-parameter"},
        {"on=1x", "odd-parameter"},
        {"on=yes please", "odd-parameter"},
        {"on=never", "odd-parameter"},
        {"on=OFfen", "odd-parameter"},
        {"on=o", "bad-parameter"},
        {"on=ok", "bad-parameter"},
        {"on=enabled", "bad-parameter"},
        {"tri=no", ""},
        {"off=0x1", "odd-parameter"},
        {"flags=y,00", "odd-parameter"},
        {"level=-0", "bad-parameter"},
        {"answer=-0", ""},
        {"answer=+5", ""},
        {"answer=-+5", "bad-parameter"},
        {"answer=0x", "bad-parameter"},
        {"flags=y,n", ""},
        {"flags=y,", "bad-parameter"},
        {"many=1,-0", "bad-parameter"},
        {"many=", "bad-parameter"},
        {"who=some body", ""},
        {"who=a=b", ""},
        {"who=\"x y\"", ""},
        {"who=\"x", "bad-parameter"},
        {"who=x\"y\"", "bad-parameter"},
        {"answer=\"42\"", ""},
        {"who=a\nb", "bad-parameter"},
        {"many=1,2,3", ""},
        {"many=1,x", "bad-parameter"},
        {"odd=anything", ""},
        {"big=18446744073709551615", ""},
        {"big=18446744073709551616", "bad-parameter"},
        {"anwser=1", "unknown-parameter"},
        {"", "bad-parameter"},
        {"=1", "bad-parameter"},
        {"--", "bad-parameter"},
        {"async_probe", "odd-parameter"},
        {"dyndbg=+p", "odd-parameter"},
        {"async-probe", "unknown-parameter"},
        {"tri", ""},
        {"tri=", "bad-parameter"},
        {"off", "bad-parameter"},
        {"who", "bad-parameter"},
        {"many", "bad-parameter"},
        {"odd", ""},
        {"bare=anything", ""},
        {"bare", ""},
        {"bar=1", "unknown-parameter"},
    };
    for (const auto& [text, code] : cases) {
        CAPTURE(text);
        Diagnostics findings;
        kmod::check_parameters(module, {text}, findings);
        CHECK(findings.size() == (*code == '\0' ? 0U : 1U));
        if (findings.size() == 1) CHECK(findings.front().code == code);
    }
}

TEST_CASE("a boolean is what the kernel of the module makes of it") {
    const auto found = [](const char* release, const std::string& text) {
        KoSpec spec;
        spec.vermagic = std::string(release) + " SMP mod_unload ";
        spec.modinfo = {"parmtype=on:bool"};
        Diagnostics findings;
        kmod::check_parameters(kmod::parse_module(make_ko(spec), "x.ko"), {text}, findings);
        return findings.empty() ? ""
                                : (findings.front().severity == Severity::error ? "error: " : "warning: ") +
                                      findings.front().message;
    };
    CHECK(found("6.1.0", "on=10") ==
          "warning: parameter on=10 of module demo is read as y: of a bool the kernel looks at the beginning only");
    CHECK(found("6.1.0", "on=none") ==
          "warning: parameter on=none of module demo is read as n: of a bool the kernel looks at the beginning only");
    CHECK(found("6.1.0", "on=true") == "");
    CHECK(found("5.14.0-427.el9.x86_64", "on=true") ==
          "warning: parameter on=true of module demo may be refused: a bool is y or n for kernels before 5.19");
    CHECK(found("5.14.0-427.el9.x86_64", "on=yes") == "");
    CHECK(found("6.1.0", "on=disable").starts_with("error: "));
    CHECK(found("6.15.2", "on=disable") == "");
    CHECK(found("odd", "on=true") == "");
}

TEST_CASE("a parameter that is given again is told") {
    const auto module = module_with_parameters();
    const auto messages = [&](const std::vector<std::string>& wanted) {
        Diagnostics findings;
        kmod::check_parameters(module, wanted, findings);
        std::string text;
        for (const auto& finding : findings) {
            CHECK(finding.severity == Severity::warning);
            text += finding.code + ": " + finding.message + "\n";
        }
        return text;
    };
    CHECK(messages({"answer=1", "level=2", "answer=3"}) ==
          "odd-parameter: parameter answer of module demo is given twice: the kernel sets answer=1, then answer=3\n");
    CHECK(messages({"answer=1", "on", "on=n"}) ==
          "odd-parameter: parameter on of module demo is given twice: the kernel sets on, then on=n\n");
    CHECK(messages({"answer=1", "answer=1"}).empty());
}

TEST_CASE("a number that is refused for its notation is told which it is") {
    const auto hint = [](const std::string& text) {
        Diagnostics findings;
        kmod::check_parameters(module_with_parameters(), {text}, findings);
        REQUIRE(findings.size() == 1);
        return findings.front().hint;
    };
    CHECK(hint("answer=08") == "a 0 in front makes a number octal: write 8 for the decimal one");
    CHECK(hint("answer=-0019") == "a 0 in front makes a number octal: write -19 for the decimal one");
    CHECK(hint("many=1,089") == "a 0 in front makes a number octal: write 89 for the decimal one");
    CHECK(hint("level=0400") == "");
    CHECK(hint("answer=0x10000000000000000") == "");
    CHECK(hint("answer=0x") == "hexadecimal digits follow 0x");
    CHECK(hint("answer=0xfg") == "hexadecimal digits follow 0x");
    CHECK(hint("answer=1a") == "");
    CHECK(hint("level=256") == "");
}

TEST_CASE("a typing error is answered with the nearest name") {
    Diagnostics findings;
    kmod::check_parameters(module_with_parameters(), {"anwser=1"}, findings);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().hint == "did you mean answer?");
    CHECK(findings.front().exit == Exit::checks_failed);
    findings.clear();
    const kmod::ModuleFile module = module_with_parameters();
    kmod::check_parameters(module, {module.name + ".answer=1"}, findings);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().hint ==
          "did you mean answer? MODULE.PARAMETER is the form of the kernel command line");
}

TEST_CASE("the text for the kernel quotes blanks") {
    CHECK(kmod::parameter_text({"a=1", "who=some body", "flag"}) == "a=1 who=\"some body\" flag");
    CHECK(kmod::parameter_text({}).empty());
    CHECK(kmod::parameter_text({"who=\"some body\"", "a=\"1\"", "b="}) == "who=\"some body\" a=1 b=");
    CHECK(kmod::parameter_text({"who=voil\xc3\xa0"}) == "who=\"voil\xc3\xa0\"");  // the kernel splits at the byte a0
    CHECK(kmod::parameter_map({"who=\"some body\""}).at("who") == "some body");
    CHECK(kmod::parameter_map({"a=1", "flag"}) == std::map<std::string, std::string>{{"a", "1"}, {"flag", ""}});
}

}
