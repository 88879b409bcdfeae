// SPDX-License-Identifier: Apache-2.0
#include "selector/label_selector.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::selector {
namespace {

std::string term_text(const Term& term) {
    if (term.op == "Exists") return term.key;
    if (term.op == "DoesNotExist") return "!" + term.key;
    if (term.op == "In" && term.values.size() == 1) return term.key + "=" + term.values.front();
    return fmt::format("{} {} ({})", term.key, base::to_lower(term.op), base::join(term.values, ","));
}

}  // namespace

LabelSelector decode_label_selector(const value::Node& selector) {
    LabelSelector made;
    if (const auto* labels = selector.find("matchLabels"))
        for (const auto& label : labels->members())
            if (label.value.is_string()) made.push_back({label.key, "In", {label.value.text()}});
    if (const auto* expressions = selector.find("matchExpressions"))
        for (const auto& each : expressions->items())
            made.push_back({each.get_string({"key"}), each.get_string({"operator"}), each.get_texts({"values"})});
    return made;
}

std::string to_text(const LabelSelector& selector) {
    std::vector<std::string> parts;
    for (const auto& term : selector) parts.push_back(term_text(term));
    return base::join(parts, ",");
}

}  // namespace kmm::selector
