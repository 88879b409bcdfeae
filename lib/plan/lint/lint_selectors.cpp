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

#include <fmt/format.h>

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

struct Slip {
    std::string key, what, hint;
};

/// The first label of the selector that looks misspelt: no node has its key, and some have one that is nearly it; or
/// both values mark a node, in other words.
std::optional<Slip> slip_of(const api::Labels& selector, const ValuesByKey& labels) {
    for (const auto& [key, text] : selector) {
        const auto found = labels.find(key);
        if (found == labels.end()) {
            const auto meant = meant_key(key, labels);
            if (!meant) { continue; }
            return Slip{key, fmt::format("none has the label {}", base::escape(key)),
                        fmt::format("did you mean {}?", base::escape(*meant))};
        }
        const Values& values = found->second;
        const bool is_other_mark =
            values.size() == 1 && !values.contains(text) && is_mark(text) && is_mark(*values.begin());
        if (!is_other_mark) { continue; }
        return Slip{key,
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
            findings.warning(fmt::format("spec.selector[{}]", slip->key), "selects-no-node",
                             fmt::format("{}: {}", none, slip->what), slip->hint);
            continue;
        }
        Diagnostic note;
        note.severity = Severity::note;
        note.code = "selects-no-node";
        note.message = fmt::format("{}: {}", findings.subject(), none);
        note.position = findings.place("spec.selector");
        note.hint = fmt::format("kmm-plan why NODE {} shows which label a node lacks", module.full_name());
        findings.add(std::move(note));
    }
}

}  // namespace kmm::plan
