// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <optional>

#include "base/invisible.hpp"
#include "report/formats.hpp"
#include "unit/report/sample.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::report;

namespace {

value::Node json(const std::string& text) {
    Diagnostics faults;
    auto documents = value::read_json(text, "report", faults);
    REQUIRE(faults.empty());
    REQUIRE(documents.size() == 1);
    return documents.front().root;
}

void append_utf8(std::string& text, std::uint32_t point) {
    if (point >= 0xD800 && point < 0xE000) { return; }
    const auto add = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    const auto more = [&](unsigned shift) { add(0x80U | ((point >> shift) & 0x3FU)); };
    if (point < 0x80) { return add(point); }
    if (point < 0x800) {
        add(0xC0U | (point >> 6U));
        return more(0);
    }
    if (point < 0x10000) {
        add(0xE0U | (point >> 12U));
    } else {
        add(0xF0U | (point >> 18U));
        more(12);
    }
    more(6);
    more(0);
}

/// The first code point of valid UTF-8 that nobody sees, or that XML does not have.
std::optional<std::uint32_t> first_invisible(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto lead = static_cast<unsigned char>(text[at]);
        const std::size_t length = lead < 0x80U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
        const auto point = base::code_point(std::string_view(text).substr(at, length));
        if (base::is_invisible(point) || point == 0x7F || (point < 0x20 && point != '\n')) { return point; }
        at += length;
    }
    return std::nullopt;
}

std::size_t occurrences(const std::string& text, std::string_view part) {
    std::size_t number = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
        ++number;
    }
    return number;
}

}  // namespace

TEST_SUITE("report::unit") {
    TEST_CASE("the threshold: errors always fail, warnings when asked, notes never") {
        CHECK(fails(Severity::error, Severity::error));
        CHECK(fails(Severity::error, Severity::warning));
        CHECK_FALSE(fails(Severity::warning, Severity::error));
        CHECK(fails(Severity::warning, Severity::warning));
        CHECK_FALSE(fails(Severity::note, Severity::warning));
        CHECK(summary(sample::report().findings) == "2 errors, 1 warning, 1 note");
        CHECK(summary({}) == "no findings");
    }

    TEST_CASE("paths as pipelines name them") {
        CHECK(report_path("./a/./b") == "a/./b");
        CHECK(report_path(".//a") == "a");
        CHECK(report_path("./") == "./");
        CHECK(report_path("-") == "stdin");
        CHECK(report_path("/a") == "/a");
    }

    TEST_CASE("fingerprints stay when lines move and differ for a second finding of the same kind") {
        Diagnostics findings{sample::finding(Severity::error, "a", "m"), sample::finding(Severity::error, "a", "m"),
                             sample::finding(Severity::error, "a", "n")};
        const auto before = fingerprints(findings);
        for (auto& finding : findings) { finding.position->line += 10; }
        CHECK(fingerprints(findings) == before);
        CHECK(before[0] != before[1]);
        CHECK(before[0] != before[2]);
        CHECK(before[0].size() == 16);
        // Codes, files and messages do not run into each other.
        CHECK(fingerprints({sample::finding(Severity::error, "ab", "c", "")}) !=
              fingerprints({sample::finding(Severity::error, "a", "bc", "")}));
    }

    TEST_CASE("junit: a case a finding and one for each clean file") {
        Report report = sample::report();
        const std::string text = to_junit(report);
        CHECK(text.find("<testsuite name=\"kmm-plan validate\" tests=\"5\" failures=\"2\"") != std::string::npos);
        CHECK(occurrences(text, "<testcase ") == 5);
        CHECK(occurrences(text, "<failure ") == 2);
        CHECK(text.find("<testcase classname=\"b.yaml\" name=\"no findings\"/>") != std::string::npos);
        CHECK(text.find("path &quot;/a,b:c&quot; &lt;&amp; 100% | \\x01") != std::string::npos);
        CHECK(text.find("file=\"m a.yaml\" line=\"3\"") != std::string::npos);
        report.fail_on = Severity::warning;
        CHECK(occurrences(to_junit(report), "<failure ") == 3);
    }

    TEST_CASE("every form can be read and shows nothing invisible, whatever code points a finding has") {
        constexpr std::uint32_t k_chunk = 0x2000;
        for (std::uint32_t first = 0; first < 0x110000; first += k_chunk) {
            std::string text;
            for (std::uint32_t point = first; point < first + k_chunk; ++point) { append_utf8(text, point); }
            Report report = sample::report();
            report.findings = {sample::finding(Severity::error, "a", text, text)};
            report.findings[0].hint = text;
            report.files = {text};
            CAPTURE(first);
            for (const auto& format : format_names()) {
                CAPTURE(format);
                const std::string written = text_of(format, report);
                if (format == "sarif" || format == "codequality") { static_cast<void>(json(written)); }
                CHECK_FALSE(first_invisible(written));
            }
        }
    }

    TEST_CASE("html: a row a finding, and nothing of a finding is markup") {
        const std::string text = to_html(sample::report());
        CHECK(occurrences(text, "<tr class=") == 4);
        CHECK(text.find("path &quot;/a,b:c&quot; &lt;&amp; 100% | \\x01") != std::string::npos);
        CHECK(text.find("<p>2 files, kmm-plan 1.2.3</p>") != std::string::npos);
        Report clean = sample::report();
        clean.findings.clear();
        CHECK(to_html(clean).find("<table>") == std::string::npos);
        CHECK(to_html(clean).find("<h1>kmm-plan validate: no findings</h1>") != std::string::npos);
    }

    TEST_CASE("sarif: rules, artifacts and results refer to each other") {
        const value::Node root = json(to_sarif(sample::report()));
        const value::Node& run = root.find("runs")->items().at(0);
        const auto& rules = run.find_path({"tool", "driver", "rules"})->items();
        const auto& artifacts = run.find("artifacts")->items();
        const auto& results = run.find("results")->items();
        REQUIRE(rules.size() == 4);
        CHECK(rules[0].get_string({"shortDescription", "text"}) == "a dot");
        CHECK(rules[1].find("help") == nullptr);
        REQUIRE(artifacts.size() == 3);
        REQUIRE(results.size() == 4);
        for (const auto& result : results) {
            const auto index = static_cast<std::size_t>(*result.find("ruleIndex")->as_int());
            CHECK(rules.at(index).get_string({"id"}) == result.get_string({"ruleId"}));
            if (result.find("locations") == nullptr) { continue; }
            const value::Node& place =
                *result.find("locations")->items().at(0).find_path({"physicalLocation", "artifactLocation"});
            const auto artifact = static_cast<std::size_t>(*place.find("index")->as_int());
            CHECK(artifacts.at(artifact).get_string({"location", "uri"}) == place.get_string({"uri"}));
        }
        const value::Node& first = results[0].find("locations")->items().at(0);
        CHECK(first.get_string({"physicalLocation", "artifactLocation", "uri"}) == "m%20a.yaml");
        CHECK(first.find_path({"physicalLocation", "region", "startLine"})->as_int() == 3);
        CHECK(first.find_path({"physicalLocation", "region", "startColumn"})->as_int() == 7);
        REQUIRE(results[2].find("locations") != nullptr);  // in the first file that was read
        CHECK(results[2].get_string({"level"}) == "note");
        const value::Node& last = results[3].find("locations")->items().at(0);
        CHECK(last.get_string({"physicalLocation", "artifactLocation", "uri"}) == "file:///abs/z.yaml");
        CHECK(last.find_path({"physicalLocation", "region", "startLine"})->as_int() == 1);
    }

    TEST_CASE("markdown: markup is taken for text, and the limit is kept") {
        const std::string text = to_markdown(sample::report());
        CHECK(text.starts_with("## kmm-plan validate: 2 errors, 1 warning, 1 note\n"));
        CHECK(text.find("| warning | m a.yaml:3:7 | a\\_b\\* | dotted-name |") != std::string::npos);
        CHECK(text.find("\\<\\& 100% \\| \\\\x01<br>hint: two\\\\nlines") != std::string::npos);
        Report mention = sample::report();
        mention.findings.assign(1, sample::finding(Severity::error, "a", "@team of reg/m@sha256:ab, (@b)"));
        CHECK(to_markdown(mention).find("@<!-- -->team of reg/m@sha256:ab, (@<!-- -->b)") != std::string::npos);
        Report many = sample::report();
        many.findings.assign(500, sample::finding(Severity::error, "a", "message"));
        const std::string cut = to_markdown(many, 2000);
        CHECK(cut.size() <= 2000);
        CHECK(cut.find(" more findings are not shown\n") != std::string::npos);
        many.findings.clear();
        CHECK(to_markdown(many) == "## kmm-plan validate: no findings\n\n2 files\n");
    }

    TEST_CASE("a list of checks: what was not made is never no findings") {
        Report report = sample::report();
        report.files = {"dump.json"};
        report.findings.clear();
        report.counts = "1 OK, 0 WARN, 0 FAIL, 1 SKIP";
        report.quiet = {{"nodes-ready", ""}, {"node-reach", "needs | a node"}};
        report.rules.push_back({"node-reach", "finding", "kmm-worker runs on each node", ""});
        const std::string markdown = to_markdown(report);
        CHECK(markdown == "## kmm-plan validate: 1 OK, 0 WARN, 0 FAIL, 1 SKIP\n\n| check not made | reason |\n"
                          "| --- | --- |\n| node-reach | needs \\| a node |\n");
        CHECK(to_markdown(report, 150).find("\n1 more checks not made are not shown\n") != std::string::npos);
        const std::string html = to_html(report);
        CHECK(html.find("<h1>kmm-plan validate: 1 OK, 0 WARN, 0 FAIL, 1 SKIP</h1>") != std::string::npos);
        CHECK(html.find("<tr><td>node-reach</td><td>needs | a node</td></tr>") != std::string::npos);
        CHECK(html.find(" file") == std::string::npos);
        const std::string junit = to_junit(report);
        CHECK(junit.find("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\"") != std::string::npos);
        report.findings.assign(1, sample::finding(Severity::error, "host-path", "bad", ""));
        const value::Node root = json(to_sarif(report));
        const value::Node& run = root.find("runs")->items().at(0);
        const value::Node& invocation = run.find("invocations")->items().at(0);
        const value::Node& told = invocation.find("toolExecutionNotifications")->items().at(0);
        CHECK(told.get_string({"message", "text"}) == "not made: needs | a node");
        const auto rule = static_cast<std::size_t>(*told.find_path({"associatedRule", "index"})->as_int());
        CHECK(run.find_path({"tool", "driver", "rules"})->items().at(rule).get_string({"id"}) == "node-reach");
        CHECK(invocation.get_string({"properties", "summary"}) == report.counts);
        const value::Node& place = run.find("results")->items().at(0).find("locations")->items().at(0);
        CHECK(place.get_string({"physicalLocation", "artifactLocation", "uri"}) == "dump.json");
        CHECK(to_markdown(report).find("| error |  | bad | host-path |\n\n| check not made |") != std::string::npos);
    }

    TEST_CASE("code quality: what GitLab requires of each issue") {
        const value::Node list = json(to_code_quality(sample::report()));
        REQUIRE(list.items().size() == 4);
        for (const auto& issue : list.items()) {
            CHECK_FALSE(issue.get_string({"description"}).empty());
            CHECK_FALSE(issue.get_string({"check_name"}).empty());
            CHECK_FALSE(issue.get_string({"fingerprint"}).empty());
            CHECK_FALSE(issue.get_string({"location", "path"}).empty());
            CHECK(issue.find_path({"location", "lines", "begin"})->as_int().value_or(0) >= 1);
        }
        CHECK(list.items()[0].get_string({"severity"}) == "major");
        CHECK(list.items()[1].get_string({"severity"}) == "minor");
        CHECK(list.items()[2].get_string({"severity"}) == "info");
    }

    TEST_CASE("github: one line a finding, with its escapes") {
        CHECK(to_github(sample::report()) ==
              "::group::kmm-plan validate: 2 errors, 1 warning, 1 note\n"
              "::error file=m a.yaml,line=3,col=7,title=host-path::path \"/a,b:c\" <& 100%25 | \\x01%0Ahint: "
              "two\\nlines\n"
              "::warning file=m a.yaml,line=3,col=7,title=dotted-name::a_b*\n"
              "::notice title=odd::x\n"
              "::error file=/abs/z.yaml,title=file-not-found::gone\n::endgroup::\n");
        Report report = sample::report();
        report.findings = {sample::finding(Severity::error, "a", "m", "x,y:z.yaml")};
        CHECK(
            to_github(report) ==
            "::group::kmm-plan validate: 1 error\n::error file=x%2Cy%3Az.yaml,line=3,col=7,title=a::m\n::endgroup::\n");
    }
}
