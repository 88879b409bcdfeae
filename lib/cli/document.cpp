// SPDX-License-Identifier: Apache-2.0
#include "cli/document.hpp"

#include "base/error.hpp"
#include "value/writer.hpp"

namespace kmm::cli {

bool print_document(Context& context, const value::Node& node) {
    if (context.output == "json") context.console.out(value::to_json_pretty(node));
    else if (context.output == "jsonl") context.console.out(value::to_json(node) + "\n");
    else if (context.output == "yaml") context.console.out(value::to_yaml(node));
    else return false;
    return true;
}

bool print_list(Context& context, const value::Node& node, std::string_view member) {
    if (context.output != "jsonl") return print_document(context, node);
    const auto* items = node.find(member);
    if (items == nullptr) throw bug("a list without its members");
    for (const auto& item : items->items()) context.console.out(value::to_json(item) + "\n");
    return true;
}

}  // namespace kmm::cli
