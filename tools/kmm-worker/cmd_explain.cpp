// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/explain.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "kmm-worker/codes.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/check/errno_doctor.hpp"

namespace kmm::tool_worker {

namespace {

value::Node document(const std::string& code, const std::string& cause, const std::string& hint) {
    return value::Node::mapping(
        {{"apiVersion", "kmmtools/v1"}, {"kind", "Explanation"}, {"code", code}, {"cause", cause}, {"hint", hint}});
}

/// Keys and values in two columns, values wrapped at 80.
void print(const std::vector<std::pair<std::string, std::string>>& rows, value::Node node, cli::Context& context) {
    if (print_document(context, node)) return;
    if (context.output == "name") {
        context.console.out(node.get_string({"code"}) + "\n");
        return;
    }
    std::size_t column = 0;
    for (const auto& row : rows) column = std::max(column, row.first.size() + 3);
    for (const auto& [key, text] : rows) {
        std::string lines = cli::wrap(base::escape(text), 80, column);
        lines.replace(0, key.size(), key);
        context.console.out(lines.ends_with('\n') ? lines : lines + "\n");
    }
}

/// The causes of an errno, each tested on this host, then what to do.
void explain_errno(int number, const kmod::HostPaths& host, cli::Context& context) {
    const kmod::ErrnoAdvice load = kmod::load_advice(number);
    const auto causes = kmod::load_causes(number, host, kmod::kernel_state(host));
    std::vector<std::pair<std::string, std::string>> rows{
        {"errno", fmt::format("{} ({}): {}", errno_name(number), number, errno_text(number))},
        {"when loading", std::string(load.cause)}};
    value::Node list = value::Node::sequence();
    int place = 0;
    for (const auto& cause : causes) {
        value::Node item =
            value::Node::mapping({{"cause", cause.text}, {"applies", std::string(kmod::to_string(cause.applies))}});
        if (!cause.evidence.empty()) item.set("evidence", cause.evidence);
        list.push_back(std::move(item));
        std::string text = fmt::format("{}? {}", cause.text, kmod::to_string(cause.applies));
        if (!cause.evidence.empty()) text += fmt::format(" ({})", cause.evidence);
        rows.emplace_back(fmt::format("cause {}", ++place), std::move(text));
    }
    rows.emplace_back("hint", std::string(load.hint));
    value::Node made = document(errno_name(number), kmod::likeliest_cause(causes, number), std::string(load.hint));
    made.set("errno", number);
    made.set("causes", std::move(list));
    const auto table = kmod::unload_errnos();
    if (std::any_of(table.begin(), table.end(), [&](const auto& row) { return row.number == number; })) {
        const kmod::ErrnoAdvice unload = kmod::unload_advice(number);
        rows.emplace_back("when unloading", std::string(unload.cause));
        rows.emplace_back("hint", std::string(unload.hint));
        made.set("unload",
                 value::Node::mapping({{"cause", std::string(unload.cause)}, {"hint", std::string(unload.hint)}}));
    }
    print(rows, std::move(made), context);
}

/// With the exit code, which a warning does not have.
value::Node document(const CodeRow& row) {
    value::Node made = document(std::string(row.code), std::string(row.meaning), std::string(row.hint));
    if (row.exit) made.set("exit", static_cast<int>(*row.exit));
    return made;
}

std::string exit_text(const CodeRow& row) {
    return row.exit ? fmt::format("{} ({})", static_cast<int>(*row.exit), exit_name(*row.exit))
                    : "none, a warning or reason";
}

void list_codes(std::span<const CodeRow> all, cli::Context& context) {
    value::Node list = value::Node::sequence();
    std::vector<std::vector<std::string>> lines;
    for (const auto& row : all) {
        value::Node item = document(row);
        item.erase("apiVersion");
        item.erase("kind");
        list.push_back(std::move(item));
        lines.push_back({std::string(row.code), row.exit ? fmt::format("{}", static_cast<int>(*row.exit)) : "-",
                         std::string(row.meaning)});
    }
    const value::Node made =
        value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Codes"}, {"codes", std::move(list)}});
    if (cli::print_list(context, made, "codes")) return;
    if (context.output == "name") {
        for (const auto& row : all) context.console.out(fmt::format("{}\n", row.code));
        return;
    }
    context.console.out(cli::format_table({"CODE", "EXIT", "MEANING"}, lines,
                                          context.console.out_is_terminal() ? context.console.width() : 0));
}

Exit run_explain(const cli::Args& args, cli::Context& context) {
    const std::string word = args.positional("CODE");
    const kmod::HostPaths host = host_paths(args);
    if (const int number = kmod::errno_number(word); number != 0) {
        explain_errno(number, host, context);
        return Exit::ok;
    }
    const auto all = codes();
    if (args.positionals("CODE").empty()) {
        list_codes(all, context);
        return Exit::ok;
    }
    const auto row = std::find_if(all.begin(), all.end(), [&](const CodeRow& r) { return r.code == word; });
    if (row == all.end()) {
        std::vector<std::string> names;
        for (const auto& known : all) names.emplace_back(known.code);
        for (const auto& known : kmod::load_errnos()) names.push_back(errno_name(known.number));
        Error error(Exit::not_found, "not-found",
                    fmt::format("'{}' is neither a reason code nor an errno", base::escape(word)));
        const auto near = base::nearest(word, names);
        const auto elsewhere = cli::explained_elsewhere(word, context.program.name);
        throw error.hint(!elsewhere.empty() ? elsewhere
                         : near             ? fmt::format("did you mean {}?", *near)
                                            : "kmm-worker explain lists all codes");
    }
    print({{"code", word},
           {"exit code", exit_text(*row)},
           {"meaning", std::string(row->meaning)},
           {"hint", std::string(row->hint)}},
          document(*row), context);
    return Exit::ok;
}

}  // namespace

cli::Verb verb_explain() {
    cli::Verb verb;
    verb.name = "explain";
    verb.summary = "describe a reason code or an errno";
    verb.description =
        "Lists the causes of an errno of the kernel's module loader in the order in which the kernel checks them, "
        "tests each on this host where possible, and says what to do. Reason codes are those of errors and warnings "
        "of this command; without CODE all are listed.";
    verb.examples = {{"kmm-worker explain ENOEXEC", "an errno"},
                     {"kmm-worker explain module-differs", "a reason code"},
                     {"kmm-worker explain", "all reason codes"}};
    std::vector<std::string> names;
    for (const auto& row : codes()) names.emplace_back(row.code);
    verb.positionals = {{"CODE", "reason code, errno name or number", false, false, std::move(names)}};
    verb.options = host_options() + cli::common_options();
    verb.run = run_explain;
    return verb;
}

}  // namespace kmm::tool_worker
