// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/text.hpp"

namespace kmm::cli {

namespace {

constexpr std::size_t k_explain_indent = 11;

void append_part(std::string& text, std::string_view key, const std::string& words) {
    if (words.empty()) return;
    std::string lines = wrap(words, 80, k_explain_indent);
    lines.replace(0, k_explain_indent, fmt::format("{:<{}}", fmt::format("{}:", key), k_explain_indent));
    text += lines;
}

value::Node code_node(const Code& code) {
    value::Node node =
        value::Node::mapping({{"code", code.code}, {"kinds", value::Node::sequence()}, {"verdict", code.verdict}});
    for (const auto kind : base::split(code.kind, ',')) node.find("kinds")->push_back(base::trim(kind));
    if (!code.meaning.empty()) node.set("meaning", code.meaning);
    if (!code.remedy.empty()) node.set("remedy", code.remedy);
    return node;
}

value::Node headed(std::string_view kind) {
    return value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}});
}

std::string_view heading(std::string_view kind) {
    if (kind == "reason") return "Reasons";
    if (kind == "finding") return "Findings about documents and clusters";
    if (kind == "error, finding") return "Findings, and errors of the command";
    return kind == "error" ? "Errors of the command" : "Reasons and findings";
}

/// Codes and verdicts under the heading of their kind, at most 80 columns wide.
std::string list_text(const std::vector<Code>& codes) {
    constexpr std::size_t column = 30;  // the longest code has 26 characters
    std::string text;
    for (const std::string_view kind : {"reason", "reason, finding", "finding", "error, finding", "error"}) {
        std::string part;
        for (const auto& code : codes) {
            if (code.kind != kind) continue;
            std::string lines = wrap(code.verdict, 80, column);
            lines.replace(0, column, pad("  " + code.code, column));
            part += lines;
        }
        if (!part.empty()) text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", heading(kind), part);
    }
    return text;
}

Exit list_codes(const std::vector<Code>& codes, Context& context) {
    value::Node list = value::Node::sequence();
    for (const auto& code : codes) list.push_back(code_node(code));
    value::Node node = headed("Codes");
    node.set("codes", std::move(list));
    if (print_list(context, node, "codes")) return Exit::ok;
    if (context.output == "name") {
        for (const auto& code : codes) context.console.out(code.code + "\n");
    } else {
        context.console.out(list_text(codes));
    }
    return Exit::ok;
}

Exit explain_code(const Code& code, Context& context) {
    value::Node node = headed("Explanation");
    const value::Node fields = code_node(code);
    for (const auto& member : fields.members()) node.set(member.key, member.value);
    if (!print_document(context, node))
        context.console.out(context.output == "name" ? code.code + "\n" : explanation_text(code));
    return Exit::ok;
}

}  // namespace

std::string explanation_text(const Code& code) {
    std::string text = wrap(fmt::format("{}: {}", code.code, code.verdict), 80);
    append_part(text, "  kind", code.kind);
    append_part(text, "  meaning", code.meaning);
    append_part(text, "  remedy", code.remedy.empty() ? "nothing needs to be done" : code.remedy);
    return text;
}

std::string explained_elsewhere(std::string_view code, std::string_view command) {
    constexpr int k_errno_max = 133;
    constexpr std::string_view k_worker = "kmm-worker";
    std::vector<std::string> texts;
    for (const std::string_view other : {std::string_view("kmm-plan"), std::string_view("kmm-upgrade"), k_worker}) {
        const auto all = codes_of(other);
        if (other != command && std::find(all.begin(), all.end(), code) != all.end())
            texts.push_back(fmt::format("{} explain {}", other, code));
    }
    for (int number = 1; number <= k_errno_max && command != k_worker; ++number)
        if (errno_name(number) == code) texts.push_back(fmt::format("{} explain {}", k_worker, code));
    return base::join(texts, ", or: ");
}

Verb explain_verb(Verb verb, const std::vector<Code>& codes, const std::vector<Code>& known, std::string others) {
    verb.name = "explain";
    std::vector<std::string> names;
    for (const auto& code : codes) names.emplace_back(code.code);
    verb.positionals = {{"CODE", "code from a message or document", false, false, std::move(names)}};
    verb.run = [&codes, &known, others = std::move(others)](const Args& args, Context& context) {
        const std::string name = args.positional("CODE");
        if (args.positionals("CODE").empty()) return list_codes(codes, context);
        for (const auto* each : {&codes, &known}) {
            const auto found =
                std::find_if(each->begin(), each->end(), [&](const Code& code) { return code.code == name; });
            if (found != each->end()) return explain_code(*found, context);
        }
        std::vector<std::string> near;
        for (const auto& code : codes) near.push_back(code.code);
        const auto nearest = base::nearest(name, near);
        const auto elsewhere = explained_elsewhere(name, context.program.name);
        throw Error(Exit::not_found, "not-found",
                    fmt::format("'{}' is not a code of {}", base::escape(name), context.program.name))
            .hint(!elsewhere.empty() ? elsewhere
                  : nearest            ? fmt::format("did you mean {}?", *nearest)
                                       : fmt::format("{} explain lists all; {}", context.program.name, others));
    };
    return verb;
}

Topic codes_topic(std::string title, const std::vector<Code>& codes) {
    Topic topic;
    topic.title = std::move(title);
    for (const auto& code : codes) {
        std::string text = fmt::format("({}) {}.", code.kind, code.verdict);
        if (!code.meaning.empty()) text += " " + code.meaning;
        if (!code.remedy.empty()) text += fmt::format(" To do: {}.", code.remedy);
        topic.entries.push_back({code.code, std::move(text)});
    }
    return topic;
}

}  // namespace kmm::cli
