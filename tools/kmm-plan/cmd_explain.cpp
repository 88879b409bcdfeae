// SPDX-License-Identifier: Apache-2.0
// kmm-plan explain: what a reason or finding means.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/text.hpp"
#include "kmm-plan/documents.hpp"
#include "kmm-plan/explanation.hpp"
#include "kmm-plan/verbs.hpp"

namespace kmm::tool_plan {

namespace {

constexpr std::size_t k_explain_indent = 11;

void append_part(std::string& text, std::string_view key, const std::string& words) {
    if (words.empty()) { return; }
    std::string lines = cli::wrap(words, 80, k_explain_indent);
    lines.replace(0, k_explain_indent, fmt::format("{:<{}}", fmt::format("{}:", key), k_explain_indent));
    text += lines;
}

value::Node code_node(const plan::Code& code) {
    value::Node node = value::Node::mapping({{"code", code.code}, {"kinds", value::Node::sequence()}, {"verdict", code.verdict}});
    for (const auto kind : base::split(code.kind, ',')) { node.find("kinds")->push_back(base::trim(kind)); }
    if (!code.meaning.empty()) { node.set("meaning", code.meaning); }
    if (!code.remedy.empty()) { node.set("remedy", code.remedy); }
    return node;
}

value::Node headed(std::string_view kind) { return value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}}); }

bool is_machine(const std::string& output) { return output == "json" || output == "yaml" || output == "jsonl"; }

std::string heading(const std::string& kind) {
    if (kind == "reason") { return "Reasons of plan lines"; }
    if (kind == "finding") { return "Findings about documents and clusters"; }
    return kind == "error" ? "Errors of the command" : "Reasons and findings";
}

/// Codes and verdicts under the heading of their kind, at most 80 columns wide.
std::string list_text() {
    constexpr std::size_t column = 30;  // the longest code has 26 characters
    std::string text;
    for (const std::string kind : {"reason", "reason, finding", "finding", "error"}) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", heading(kind));
        for (const auto& code : plan::codes()) {
            if (code.kind != kind) { continue; }
            std::string lines = cli::wrap(code.verdict, 80, column);
            lines.replace(0, column, cli::pad("  " + code.code, column));
            text += lines;
        }
    }
    return text;
}

Exit list_codes(cli::Context& context) {
    if (context.output == "jsonl") {
        for (const auto& code : plan::codes()) { context.console.out(machine_text(code_node(code), "jsonl")); }
    } else if (is_machine(context.output)) {
        value::Node node = headed("Codes");
        value::Node list = value::Node::sequence();
        for (const auto& code : plan::codes()) { list.push_back(code_node(code)); }
        node.set("codes", std::move(list));
        context.console.out(machine_text(node, context.output));
    } else if (context.output == "name") {
        for (const auto& code : plan::codes()) { context.console.out(code.code + "\n"); }
    } else {
        context.console.out(list_text());
    }
    return Exit::ok;
}

Exit run_explain(const cli::Args& args, cli::Context& context) {
    const std::string name = args.positional("CODE");
    if (name.empty()) { return list_codes(context); }
    const plan::Code* code = plan::find_code(name);
    if (code == nullptr) {
        std::vector<std::string> names;
        for (const auto& known : plan::codes()) { names.push_back(known.code); }
        const auto near = base::nearest(name, names);
        throw Error(Exit::not_found, "not-found", fmt::format("'{}' is no code of kmm-plan", base::escape(name)))
            .hint(near ? fmt::format("did you mean {}?", *near) : "kmm-plan explain lists all; kmm-worker explain knows its own");
    }
    if (is_machine(context.output)) {
        value::Node node = headed("Explanation");
        const value::Node fields = code_node(*code);
        for (const auto& member : fields.members()) { node.set(member.key, member.value); }
        context.console.out(machine_text(node, context.output));
    } else {
        context.console.out(context.output == "name" ? code->code + "\n" : explanation_text(*code));
    }
    return Exit::ok;
}

}  // namespace

std::string explanation_text(const plan::Code& code) {
    std::string text = cli::wrap(fmt::format("{}: {}", code.code, code.verdict), 80);
    append_part(text, "  kind", code.kind);
    append_part(text, "  meaning", code.meaning);
    append_part(text, "  remedy", code.remedy.empty() ? "nothing needs to be done" : code.remedy);
    return text;
}

cli::Verb explain_verb() {
    cli::Verb verb;
    verb.name = "explain";
    verb.summary = "what a reason, finding or error code means, and what to do";
    verb.description =
        "A reason is why a line of the plan says what it says, a finding is what is wrong with documents or the cluster, an "
        "error is why a command failed. Without CODE: all of them.";
    verb.examples = {
        {"kmm-plan explain taint-not-tolerated", "one code"},
        {"kmm-plan explain", "all codes"},
    };
    std::vector<std::string> names;
    for (const auto& code : plan::codes()) { names.emplace_back(code.code); }
    verb.positionals = {{"CODE", "a code, as messages and plans have it", false, false, std::move(names)}};
    verb.options = cli::common_options();
    verb.run = run_explain;
    return verb;
}

}  // namespace kmm::tool_plan
