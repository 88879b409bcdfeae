// SPDX-License-Identifier: Apache-2.0
// kmm-plan why: the chain of facts behind one line.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/shell_word.hpp"
#include "cli/document.hpp"
#include "cli/text.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/verbs.hpp"

namespace kmm::tool_plan {

namespace {

/// The mark column: conditions that hold, that do not, and plain facts.
std::string_view mark_text(plan::Mark mark) {
    return mark == plan::Mark::fact ? "" : plan::to_string(mark);
}

/// As base::escape, but a backslash stays one: regular expressions are full of them.
std::string shown(const std::string& text) {
    std::string result;
    for (const std::string_view piece : base::split(text, '\\')) {
        if (piece.data() != text.data()) { result += '\\'; }
        result += base::escape(piece);
    }
    return result;
}

/// `text` after `head`; what is wider than a page goes on below its first word.
std::string hanging(const std::string& head, const std::string& text) {
    constexpr std::size_t page_width = 80;
    if (cli::display_width(head) + cli::display_width(text) <= page_width) { return head + text + "\n"; }
    std::string lines = cli::wrap(text, page_width, head.size());
    return lines.replace(0, head.size(), head);
}

std::string text_of(const plan::Why& why) {
    const plan::Entry& entry = why.about_next ? why.next : why.settled;
    const plan::Entry& other = why.about_next ? why.settled : why.next;
    const std::string margin(8, ' ');
    std::string text = fmt::format("node    {}\nmodule  {}/{}\naction  {} ({})\n", entry.node, entry.namespace_,
                                   entry.module, plan::to_string(entry.action), entry.reason) +
                       hanging(margin, shown(entry.message));
    if (other.action != entry.action || other.reason != entry.reason) {
        text += fmt::format("{:<8}{} ({})\n", why.about_next ? "settled" : "next", plan::to_string(other.action),
                            other.reason) +
                hanging(margin, shown(other.message));
    }
    std::string topic;
    for (const auto& line : why.lines) {
        if (line.topic != topic) { text += "\n"; }
        text += hanging(fmt::format("{:<10}{:<5}", line.topic == topic ? "" : line.topic, mark_text(line.mark)),
                        shown(line.text));
        topic = line.topic;
    }
    text += "\nwhat would change it\n";
    for (const auto& change : why.changes) { text += hanging("  ", shown(change)); }
    return text;
}

/// Errors: usage "bad-value" where the arguments stand the other way round.
void require_node_first(const Source& source, const std::string& node, const std::string& module,
                        const std::string& place) {
    const auto& nodes = source.objects.nodes;
    const auto is_node = [&](const std::string& name) {
        return std::any_of(nodes.begin(), nodes.end(), [&](const api::Node& one) { return one.meta.name == name; });
    };
    if (is_node(node) || !is_node(module)) { return; }
    throw Error(Exit::usage, "bad-value",
                fmt::format("expected NODE, then MODULE, found node {} in second place", base::escape(module)))
        .hint(fmt::format("kmm-plan why {} {}{}", base::command_word(module), base::command_word(node), place));
}

Exit run_why(const cli::Args& args, cli::Context& context) {
    Source source = read_valid_source(args, context);
    apply_what_if(args, source, context);
    require_node_first(source, args.positional("NODE"), args.positional("MODULE"),
                       place_options(args, context) + given_options(args, {"namespace"}));
    const auto nodes = select_nodes(source, args, {args.positional("NODE")});
    const api::Module& module = find_module(source, args, args.positional("MODULE"));
    if (nodes.empty()) {
        throw Error(Exit::not_found, "node-not-found",
                    fmt::format("node {} does not match the selector", args.positional("NODE")));
    }
    const plan::Options options = plan_options(args, source);
    for (const auto& view : plan::views(source.objects)) {
        if (view.node != nodes.front()) { continue; }
        const plan::Why why = plan::explain(view, module, options, source.objects.config_maps);
        if (context.output == "name") {
            context.console.out((why.about_next ? why.next : why.settled).reason + "\n");
        } else if (!print_document(context, why_node(why))) {
            context.console.out(text_of(why));
        }
    }
    return Exit::ok;
}

}  // namespace

cli::Verb why_verb() {
    cli::Verb verb;
    verb.name = "why";
    verb.summary = "explain one line of the plan, and what would change it";
    verb.description =
        "Shows each selector term, each taint, each kernel mapping in the order in which it was tried, each template "
        "variable, the version labels, the observed state and the decision. --next explains the next pass. -o name "
        "prints the reason code only.";
    verb.examples = {
        {"kmm-plan why node-a drivers/kmm-hello --cluster ./fleet", "explain one pair"},
        {"kmm-plan why node-a kmm-hello -n drivers --cluster ./fleet -o json", "the same as data"},
    };
    verb.positionals = {{"NODE", "name of a node"}, {"MODULE", "NAMESPACE/NAME, or NAME if it is unique"}};
    verb.options = plan_option_list() + what_if_option_list() + source_options() + cli::common_options();
    verb.run = run_why;
    return verb;
}

}  // namespace kmm::tool_plan
