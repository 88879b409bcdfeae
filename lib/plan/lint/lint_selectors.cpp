// SPDX-License-Identifier: Apache-2.0
// Modules that select none of the nodes.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/lint/findings.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

using Values = std::set<std::string>;
using ValuesByKey = std::map<std::string, Values>;

ValuesByKey labels_of_nodes(const api::Objects& objects) {
    ValuesByKey labels;
    for (const auto& node : objects.nodes) {
        for (const auto& [key, text] : node.meta.labels) { labels[key].insert(text); }
    }
    return labels;
}

std::string digits_of(std::string_view text) {
    std::string digits;
    std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c >= '0' && c <= '9'; });
    return digits;
}

/// The key that is meant, nullopt if none is near. Keys with other numbers are of other devices.
std::optional<std::string> meant_key(const std::string& key, const ValuesByKey& labels) {
    constexpr std::size_t k_slip = 2;
    for (const auto& [known, values] : labels) {
        if (base::edit_distance(base::to_lower(key), base::to_lower(known)) <= k_slip &&
            digits_of(key) == digits_of(known)) {
            return known;
        }
    }
    return std::nullopt;
}

/// Values of labels that are there or not, which is what people write for one another.
bool is_mark(std::string_view value) {
    constexpr std::array<std::string_view, 4> k_marks{"", "true", "yes", "1"};
    return std::find(k_marks.begin(), k_marks.end(), base::to_lower(value)) != k_marks.end();
}

/// Whether two values differ within a word of five letters or more: shorter ones, such as gpu and cpu, are as near to
/// each other as a slip.
bool is_slip_of_word(std::string_view left, std::string_view right) {
    constexpr std::size_t k_word = 5;
    const auto is_mark_of_word = [](char c) { return c == '-' || c == '_' || c == '.'; };
    std::size_t begin = 0;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()) && left[i] == right[i]; ++i) {
        if (is_mark_of_word(left[i])) { begin = i + 1; }
    }
    const auto word = [&](std::string_view text) {
        const std::size_t end = text.find_first_of("-_.", begin);
        return (end == std::string_view::npos ? text.size() : end) - begin;
    };
    return word(left) >= k_word && word(right) >= k_word;
}

/// Whether two values differ by one letter, or in case. One more at the beginning makes another word: large and xlarge.
bool is_slip_of_letter(const std::string& left, const std::string& right) {
    const std::size_t longer = std::max(left.size(), right.size()), shorter = std::min(left.size(), right.size());
    if (longer - shorter > 1 || base::edit_distance(left, right) > 1) { return false; }
    return longer == shorter || !(left.ends_with(right) || right.ends_with(left));
}

/// The value that is meant, nullopt if none is near. Labels of Kubernetes itself, such as kubernetes.io/arch, have
/// values that differ by a letter, and so do names of single nodes, of which there are many.
std::optional<std::string> meant_value(const std::string& key, const std::string& text, const Values& values) {
    constexpr std::size_t k_values_max = 200;
    if (key.find("kubernetes.io/") != std::string::npos || values.size() > k_values_max) { return std::nullopt; }
    const std::string wanted = base::to_lower(text);
    const auto is_meant = [&](const std::string& value) {
        return is_slip_of_letter(wanted, base::to_lower(value)) && digits_of(value) == digits_of(text) &&
               is_slip_of_word(text, value);
    };
    const auto found = std::find_if(values.begin(), values.end(), is_meant);
    return found == values.end() ? std::nullopt : std::optional<std::string>(*found);
}

struct Slip {
    std::string path, what, hint;
};

/// The first label of the selector that looks misspelt: no node has its key, and some have one that is nearly it; none
/// has its value, and some have one that is nearly it; or both values mark a node, in other words.
std::optional<Slip> slip_of(const api::Labels& selector, const ValuesByKey& labels) {
    for (const auto& [key, text] : selector) {
        const std::string path = fmt::format("spec.selector[{}]", key);
        const auto found = labels.find(key);
        if (found == labels.end()) {
            const auto meant = meant_key(key, labels);
            if (!meant) { continue; }
            return Slip{path + ".key", fmt::format("none has the label {}", base::escape(key)),
                        fmt::format("did you mean {}?", base::escape(*meant))};
        }
        const Values& values = found->second;
        if (values.contains(text)) { continue; }
        if (const auto meant = meant_value(key, text, values)) {
            return Slip{path,
                        fmt::format("label {} has the value \"{}\" nowhere", base::escape(key), base::escape(text)),
                        fmt::format("did you mean {}: {}?", base::escape(key), base::escape(*meant))};
        }
        const bool is_other_mark =
            values.size() == 1 && is_mark(text) && is_mark(*values.begin());
        if (!is_other_mark) { continue; }
        return Slip{path,
                    fmt::format("label {} has the value \"{}\" there, the selector \"{}\"", base::escape(key),
                                base::escape(*values.begin()), base::escape(text)),
                    fmt::format("did you mean {}: \"{}\"?", base::escape(key), base::escape(*values.begin()))};
    }
    return std::nullopt;
}

}  // namespace

void check_selectors(const api::Objects& objects, Diagnostics& diagnostics) {
    if (objects.nodes.empty()) { return; }
    std::optional<ValuesByKey> labels;
    for (const auto& module : objects.modules) {
        const bool selects_one =
            module.meta.deleting || std::any_of(objects.nodes.begin(), objects.nodes.end(), [&](const auto& node) {
                return selects(module.selector, node.meta.labels);
            });
        if (selects_one) { continue; }
        if (!labels) { labels = labels_of_nodes(objects); }
        Findings findings(module, fmt::format("Module {}", module.full_name()), diagnostics);
        const std::string none = objects.nodes.size() == 1
                                     ? std::string("its selector does not match the Node that was read")
                                     : fmt::format("its selector matches none of {} Nodes", objects.nodes.size());
        if (const auto slip = slip_of(module.selector, *labels)) {
            findings.warning(slip->path, "selects-no-node",
                             fmt::format("{}: {}", none, slip->what), slip->hint);
            continue;
        }
        Diagnostic note;
        note.severity = Severity::note;
        note.code = "selects-no-node";
        note.message = fmt::format("{}: {}", findings.subject(), none);
        note.position = findings.place("spec.selector");
        note.hint = fmt::format("kmm-plan why {} {}", base::command_word(objects.nodes.front().meta.name),
                                base::command_word(module.full_name()));
        findings.add(std::move(note));
    }
}

}  // namespace kmm::plan
