// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/text.hpp"
#include "value/writer.hpp"

namespace kmm::cli {
namespace {

std::string painted(std::string_view text, std::string_view code, bool color) {
    return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string severity_word(Severity severity, bool color) {
    const std::string word = fmt::format("{}:", to_string(severity));
    switch (severity) {
        case Severity::error: return painted(word, "1;31", color);
        case Severity::warning: return painted(word, "1;33", color);
        case Severity::note: return painted(word, "1;36", color);
    }
    return word;
}

/// Escapes each line of a text that may have several; further lines are indented under the first.
std::string indented(std::string_view text, std::size_t indent) {
    std::string lines;
    for (const auto line : base::split(text, '\n')) {
        if (!lines.empty()) lines.append("\n").append(indent, ' ');
        lines.append(base::printable(line));
    }
    return lines;
}

void append_field(std::string& text, std::string_view key, std::string_view value) {
    const std::string head = fmt::format("  {:<8} ", fmt::format("{}:", base::printable(key)));
    text.append(head).append(indented(value, head.size()));
    text.erase(text.find_last_not_of(' ') + 1);
    text.push_back('\n');
}

using Details = std::vector<std::pair<std::string, std::string>>;

/// Of details with one text, but for the name in it, only the first stays, with the names of all: "node-a, node-b, 58
/// more", or "node-a, node-b hint" of keys that have a word after the name.
Details grouped(const Details& details) {
    constexpr std::size_t k_names = 4;
    struct Group {
        std::string rest;  ///< of the keys, after the name
        std::vector<std::string> names;
    };
    Details made;
    std::vector<Group> groups;
    std::map<std::pair<std::string, std::string>, std::size_t> index;
    std::map<std::string, std::size_t> uses;
    for (const auto& [key, value] : details) ++uses[key];
    for (const auto& [key, value] : details) {
        const auto name = key.substr(0, key.find(' '));
        // A key that comes again, as "fix", is no name: it belongs to what stands before it.
        if (uses[key] > 1) {
            if (!made.empty() && made.back() == std::pair(key, value)) continue;
            made.emplace_back(key, value);
            groups.push_back({key.substr(name.size()), {name}});
            continue;
        }
        const auto rest = key.substr(name.size());
        // A letter or a number is the same by chance.
        constexpr std::size_t k_cause_min = 4;
        const auto cause = rest.empty() && value.size() < k_cause_min ? key + " " + value : without_node(value, name);
        const auto [found, is_new] = index.try_emplace({rest, cause}, made.size());
        if (is_new) {
            made.emplace_back(key, value);
            groups.push_back({rest, {}});
        }
        groups[found->second].names.push_back(name);
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
        auto& names = groups[i].names;
        if (names.size() > 1) made[i].second = without_node(made[i].second, names.front());
        if (const auto count = names.size(); count > k_names) {
            names.resize(k_names - 1);
            names.push_back(fmt::format("{} more", count - (k_names - 1)));
        }
        made[i].first = base::join(names, ", ") + groups[i].rest;
    }
    return made;
}

value::Node position_node(const Position& position) {
    auto node = value::Node::mapping({{"file", position.file}});
    if (position.line > 0) node.set("line", static_cast<std::uint64_t>(position.line));
    if (position.column > 0) node.set("column", static_cast<std::uint64_t>(position.column));
    return node;
}

}  // namespace

value::Node diagnostic_node(const Diagnostic& diagnostic) {
    auto node = value::Node::mapping(
        {{"code", diagnostic.code}, {"severity", to_string(diagnostic.severity)}, {"message", diagnostic.message}}
    );
    if (diagnostic.position) {
        const auto place = position_node(*diagnostic.position);
        for (const auto& member : place.members()) node.set(member.key, member.value);
    }
    if (!diagnostic.hint.empty()) node.set("hint", diagnostic.hint);
    return node;
}

std::string diagnostic_text(const Diagnostic& diagnostic, bool color) {
    std::string text;
    if (diagnostic.position) text.append(base::printable(diagnostic.position->to_string())).append(": ");
    text.append(severity_word(diagnostic.severity, color)).append(" ").append(indented(diagnostic.message, 2));
    if (!diagnostic.code.empty()) text.append(fmt::format(" [{}]", diagnostic.code));
    text.append("\n");
    if (!diagnostic.hint.empty()) append_field(text, "hint", diagnostic.hint);
    return text;
}

std::string error_text(const Error& error, bool color) {
    std::string text;
    const auto& found = error.diagnostics();
    const bool is_one = found.size() == 1;
    const bool repeats = is_one && found.front().message == error.message();
    const bool listed = found.size() > 1 ||
                        (is_one && (found.front().position || (found.front().severity != Severity::error && !repeats)));
    if (listed) {
        for (const auto& diagnostic : found) text.append(diagnostic_text(diagnostic, color));
    }
    // One fault stands above as several do, and is counted as they are.
    const bool counts = listed && std::any_of(found.begin(), found.end(), [&](const Diagnostic& one) {
        return one.message == error.message();
    });
    text.append(severity_word(Severity::error, color)).append(" ");
    for (const auto& context : error.context()) text.append(base::printable(context)).append(": ");
    // Beside warnings alone the error stands nowhere else.
    if (error.position() && (!listed || (!has_errors(found) && !counts)))
        text.append(base::printable(error.position()->to_string())).append(": ");
    text.append(counts ? "1 fault found" : indented(error.message(), 2)).append("\n");
    for (const auto& [key, value] : grouped(error.details())) append_field(text, key, value);
    if (const auto number = error.errno_cause();
        number && error.message().find(errno_name(*number)) == std::string::npos) {
        append_field(text, "cause", fmt::format("{} ({})", errno_text(*number), errno_name(*number)));
    }
    if (const auto status = error.http_cause()) {
        const std::string words = fmt::format("HTTP {}", *status);
        if (error.message().find(words) == std::string::npos) append_field(text, "cause", words);
    }
    if (!error.hint().empty() && !counts) append_field(text, "hint", error.hint());
    append_field(text, "code", error.code());
    return text;
}

value::Node error_node(const Error& error) {
    auto node = value::Node::mapping({
        {"apiVersion", "kmmtools/v1"},
        {"kind", "Error"},
        {"code", error.code()},
        {"exit", static_cast<int>(error.exit())},
        {"message", error.message()},
    });
    if (!error.context().empty()) node.set("context", value::Node::strings(error.context()));
    if (!error.hint().empty()) node.set("hint", error.hint());
    if (error.position()) node.set("position", position_node(*error.position()));
    if (!error.details().empty()) {
        auto details = value::Node::mapping();
        for (const auto& [key, text] : error.details()) {
            const auto* present = details.find(key);
            details.set(key, present == nullptr ? text : fmt::format("{}\n{}", present->text(), text));
        }
        node.set("details", details);
    }
    if (error.errno_cause() || error.http_cause()) {
        auto cause = value::Node::mapping();
        if (const auto number = error.errno_cause()) cause.set("errno", errno_name(*number));
        if (const auto status = error.http_cause()) cause.set("httpStatus", *status);
        node.set("cause", cause);
    }
    if (error.is_retryable()) node.set("retryable", true);
    if (!error.diagnostics().empty()) {
        auto list = value::Node::sequence();
        for (const auto& diagnostic : error.diagnostics()) list.push_back(diagnostic_node(diagnostic));
        node.set("diagnostics", list);
    }
    return node;
}

std::string error_json(const Error& error) { return value::to_json_pretty(error_node(error)); }

}  // namespace kmm::cli
