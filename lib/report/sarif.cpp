// SPDX-License-Identifier: Apache-2.0
// Static Analysis Results Interchange Format 2.1.0, OASIS standard of 2020; numbers of sections are its.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"
#include "value/writer.hpp"

namespace kmm::report {

namespace {

using value::Node;

Node sarif_number(std::size_t number) { return static_cast<std::uint64_t>(number); }

Node message_node(const std::string& text) { return Node::mapping({{"text", base::printable(text)}}); }

/// 3.4.3: a path as a URI reference. Everything but unreserved characters and '/' is percent-encoded.
std::string uri_of(const std::string& file) {
    constexpr std::string_view kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    std::string uri = file.starts_with('/') ? "file://" : "";
    for (const char c : file) {
        if (kept.find(c) != std::string_view::npos) {
            uri.push_back(c);
        } else {
            uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return uri;
}

std::string_view level_of(Severity severity) { return to_string(severity); }  // 3.27.10 has the same words

/// 3.49: reportingDescriptor.
Node rule_node(const std::string& code, const std::vector<Rule>& rules) {
    Node node = Node::mapping({{"id", code}});
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& known) { return known.code == code; });
    if (rule == rules.end()) { return node; }
    if (!rule->verdict.empty()) { node.set("shortDescription", message_node(rule->verdict)); }
    if (!rule->meaning.empty()) { node.set("fullDescription", message_node(rule->meaning)); }
    if (!rule->remedy.empty()) { node.set("help", message_node(rule->remedy)); }
    return node;
}

/// 3.28: location, with 3.30: region.
Node location_node(const Position& position, std::size_t artifact) {
    Node place = Node::mapping();
    place.set("artifactLocation",
              Node::mapping({{"uri", uri_of(report_path(position.file))}, {"index", sarif_number(artifact)}}));
    Node region = Node::mapping({{"startLine", sarif_number(std::max<std::size_t>(position.line, 1))}});
    if (position.line != 0 && position.column != 0) { region.set("startColumn", sarif_number(position.column)); }
    place.set("region", std::move(region));
    return Node::mapping({{"physicalLocation", std::move(place)}});
}

/// 3.58: notification of a check that was not made.
Node notification_node(const std::pair<std::string, std::string>& skipped, std::size_t rule) {
    return Node::mapping({{"message", message_node(fmt::format("not made: {}", skipped.second))},
                          {"level", "note"},
                          {"associatedRule", Node::mapping({{"id", skipped.first}, {"index", sarif_number(rule)}})}});
}

/// Names in order, each with its index.
std::map<std::string, std::size_t> numbered(const std::set<std::string>& names) {
    std::map<std::string, std::size_t> result;
    for (const auto& name : names) { result.emplace(name, result.size()); }
    return result;
}

}  // namespace

std::string to_sarif(const Report& report) {
    std::set<std::string> codes;
    std::set<std::string> files;
    for (const auto& file : report.files) { files.insert(report_path(file)); }
    for (const auto& finding : report.findings) {
        codes.insert(finding.code);
        if (finding.position) { files.insert(report_path(finding.position->file)); }
    }
    const auto skipped = checks_not_made(report);
    for (const auto& each : skipped) { codes.insert(each.first); }
    // GitHub's code scanning refuses a report if one result has no place.
    const Position elsewhere{report.files.empty() ? std::string(k_no_file) : report.files.front(), 1, 1};
    if (std::any_of(report.findings.begin(), report.findings.end(),
                    [](const Diagnostic& finding) { return !finding.position; })) {
        files.insert(report_path(elsewhere.file));
    }
    const auto rule_index = numbered(codes);
    const auto file_index = numbered(files);

    Node rules = Node::sequence();
    for (const auto& code : codes) { rules.push_back(rule_node(code, report.rules)); }
    Node artifacts = Node::sequence();
    for (const auto& file : files) {
        artifacts.push_back(Node::mapping({{"location", Node::mapping({{"uri", uri_of(file)}})}}));
    }
    Node results = Node::sequence();
    const auto marks = fingerprints(report.findings);
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
        const Diagnostic& finding = report.findings[i];
        const std::string hint = finding.hint.empty() ? "" : fmt::format("; hint: {}", finding.hint);
        Node result =
            Node::mapping({{"ruleId", finding.code}, {"ruleIndex", sarif_number(rule_index.at(finding.code))}});
        result.set("level", level_of(finding.severity));
        result.set("message", message_node(finding.message + hint));
        const Position& place = finding.position ? *finding.position : elsewhere;
        result.set("locations", Node::sequence({location_node(place, file_index.at(report_path(place.file)))}));
        result.set("partialFingerprints", Node::mapping({{"kmmFinding/v1", marks[i]}}));
        results.push_back(std::move(result));
    }
    const Node driver = Node::mapping({{"name", report.tool},
                                       {"version", report.version},
                                       {"semanticVersion", report.version},
                                       {"rules", std::move(rules)}});
    Node run = Node::mapping({{"tool", Node::mapping({{"driver", driver}})}});
    run.set("automationDetails", Node::mapping({{"id", fmt::format("{}/{}/", report.tool, report.check)}}));
    Node invocation = Node::mapping({{"executionSuccessful", true}});
    if (!skipped.empty()) {
        Node notifications = Node::sequence();
        for (const auto& each : skipped) {
            notifications.push_back(notification_node(each, rule_index.at(each.first)));
        }
        invocation.set("toolExecutionNotifications", std::move(notifications));
    }
    if (!report.counts.empty()) { invocation.set("properties", Node::mapping({{"summary", report.counts}})); }
    run.set("invocations", Node::sequence({std::move(invocation)}));
    run.set("artifacts", std::move(artifacts));
    run.set("results", std::move(results));
    return value::to_json_pretty(Node::mapping({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                                                {"version", "2.1.0"},
                                                {"runs", Node::sequence({std::move(run)})}}));
}

}  // namespace kmm::report
