// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade versions --scan: metadata proposed from what the nodes hold.
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kubernetes/check/scan.hpp"

namespace kmm::tool_upgrade {
namespace {

using kubernetes::ScanNote;
using kubernetes::ScanResult;
using kubernetes::ScannedVersion;
using value::Node;

Node notes_node(const std::vector<ScanNote>& notes) {
    auto list = Node::sequence();
    for (const auto& note : notes)
        list.push_back(Node::mapping({{"node", note.node}, {"subject", note.subject}, {"reason", note.reason}}));
    return list;
}

Node metadata_node(const ScanResult& result) {
    auto versions = Node::sequence();
    for (const auto& entry : result.entries) versions.push_back(kubernetes::entry_node(entry));
    return Node::mapping({{"versions", std::move(versions)}});
}

Node scan_node(const ScanResult& result) {
    auto versions = Node::sequence();
    for (const auto& one : result.versions) {
        auto ways = Node::sequence();
        for (const auto& way : one.ways) {
            auto lacking = Node::sequence();
            for (const auto& [node, reason] : way.lacking)
                lacking.push_back(Node::mapping({{"node", node}, {"reason", reason}}));
            auto made = Node::mapping({{"way", way.way}, {"nodes", Node::strings(way.nodes)}});
            made.set("lacking", std::move(lacking));
            ways.push_back(std::move(made));
        }
        auto made = Node::mapping(
            {{"version", one.version.text()}, {"runs", one.runs}, {"proposed", one.is_proposed}});
        made.set("ways", std::move(ways));
        versions.push_back(std::move(made));
    }
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "KubernetesVersionScan"}});
    document.set("versions", std::move(versions));
    document.set("silent", notes_node(result.silent));
    document.set("ignored", notes_node(result.ignored));
    document.set("unread", notes_node(result.unread));
    document.set("proposal", metadata_node(result));
    return document;
}

/// Why a version is not proposed, or is not there by each way: a line a way.
std::vector<std::string> lacks_of(const ScannedVersion& one) {
    std::vector<std::string> lines;
    for (const auto& way : one.ways) {
        if (way.lacking.empty()) continue;
        std::vector<std::string> nodes;
        for (const auto& [node, reason] : way.lacking)
            nodes.push_back(fmt::format("{} ({})", base::escape(node), base::escape(reason)));
        lines.push_back(fmt::format("{} lacks as {}: {}", one.version.text(), way.way, kubernetes::name_some(nodes)));
    }
    return lines;
}

std::string cell_of(const ScannedVersion& one, std::string_view way) {
    for (const auto& each : one.ways)
        if (each.way == way) return fmt::format("{}/{}", each.nodes.size(), each.nodes.size() + each.lacking.size());
    return "-";
}

std::string line_of(const ScanNote& note) {
    return fmt::format("{}{}: {}", base::escape(note.node),
                       note.subject.empty() ? "" : " " + base::escape(note.subject), base::escape(note.reason));
}

void print_metadata(cli::Context& context, const ScanResult& result, const kubernetes::Catalogue& catalogue) {
    std::string text = "# Proposed by kmm-upgrade versions --scan; for --versions FILE.\n";
    for (const auto& note : result.silent) text += fmt::format("# {}\n", line_of(note));
    for (const auto& one : result.versions) {
        if (one.is_proposed) continue;
        text += fmt::format("# {} is not proposed\n", one.version.text());
        for (const auto& line : lacks_of(one)) text += fmt::format("#   {}\n", line);
    }
    if (!catalogue.applications.empty())
        text += fmt::format("# applications of {} are not in this file\n", base::escape(catalogue.source));
    context.console.out(text + value::to_yaml(metadata_node(result)));
}

void print_table(cli::Context& context, const ScanResult& result) {
    std::vector<std::vector<std::string>> cells;
    for (const auto& one : result.versions)
        cells.push_back({one.version.text(), one.runs ? "yes" : "no", one.is_proposed ? "yes" : "no",
                         cell_of(one, "binaries"), cell_of(one, "packages")});
    context.console.out(cli::format_table({"VERSION", "RUNS", "PROPOSED", "BINARIES", "PACKAGES"}, cells,
                                          context.console.width()));
    for (const auto& one : result.versions)
        for (const auto& line : lacks_of(one)) context.console.out(line + "\n");
    for (const auto& [what, notes] : {std::pair("no answer", &result.silent), std::pair("ignored", &result.ignored),
                                      std::pair("could not be read", &result.unread)})
        for (const auto& note : *notes) context.console.out(fmt::format("{}: {}\n", what, line_of(note)));
}

}  // namespace

Exit run_scan(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    auto& call = access.call;
    if (!args.positional("VERSION").empty() || args.flag("stx"))
        throw Error(Exit::usage, "bad-value", "--scan takes neither VERSION nor --stx")
            .hint("leave them out, or leave --scan out");
    NodeQuestions questions;
    questions.scans = true;
    questions.directory = absolute_option(args, "from");
    const auto catalogue = read_versions(call);
    const auto inventory = read_inventory(call, drive::ReadExtent::control_plane);
    const auto seen = kubernetes::observe(inventory);
    if (!seen.faults.empty()) throw Error::from_diagnostics(seen.faults);
    upgrade::Options options;
    options.via = upgrade::Via::ssh;
    const auto answers = ask_nodes(call, *asking_runner(access, std::move(options)), inventory, questions);
    const auto result = kubernetes::read_scan(answers, seen, catalogue);
    const auto exit = result.silent.empty() ? Exit::ok : Exit::unavailable;
    if (context.output == "yaml") {
        print_metadata(context, result, catalogue);
    } else if (context.output == "name") {
        for (const auto& entry : result.entries) context.console.out(entry.version.text() + "\n");
    } else if (!print_list(context, scan_node(result), "versions")) {
        print_table(context, result);
    }
    return exit;
}

}  // namespace kmm::tool_upgrade
