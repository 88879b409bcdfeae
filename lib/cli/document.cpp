// SPDX-License-Identifier: Apache-2.0
#include "cli/document.hpp"

#include "base/error.hpp"
#include "sys/file_ops.hpp"

namespace kmm::cli {

std::optional<value::Form> document_form(const Context& context) {
    if (context.output == "json") return value::Form::json_pretty;
    if (context.output == "jsonl") return value::Form::json;
    if (context.output == "yaml") return value::Form::yaml;
    return std::nullopt;
}

bool print_document(Context& context, const value::Node& node, const value::LongSequence& sequence) {
    const auto form = document_form(context);
    if (form) value::write(node, *form, sequence, [&](std::string_view text) { context.console.out(text); });
    return form.has_value();
}

bool print_list(Context& context, const value::Node& node, std::string_view member) {
    if (context.output != "jsonl") return print_document(context, node);
    const auto* items = node.find(member);
    if (items == nullptr) throw bug("a list without its members");
    for (const auto& item : items->items()) context.console.out(value::to_json(item) + "\n");
    return true;
}

void write_report(Context& context, const std::string& file, const std::string& text) {
    constexpr unsigned k_report_mode = 0644;
    if (file == "-") {
        context.console.out(text);
        return;
    }
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, file, text, k_report_mode);
}

}  // namespace kmm::cli
