// SPDX-License-Identifier: Apache-2.0
// Label selectors of the API: meta/v1 LabelSelector.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::selector {

/// One requirement.
struct Term {
    std::string key, op;  ///< op: In, NotIn, Exists or DoesNotExist
    std::vector<std::string> values;
};

/// All of them must hold; without any it matches everything. A pair of matchLabels is a term In with one value.
using LabelSelector = std::vector<Term>;

/// Of a document's LabelSelector. What is not of the kind that the API takes there is passed over.
[[nodiscard]] LabelSelector decode_label_selector(const value::Node& selector);

/// As lists of the API and kubectl -l take it: "app=a,tier in (x,y),!old"; "" for one that matches everything.
[[nodiscard]] std::string to_text(const LabelSelector& selector);

/// Does it match labels? `find` gives a pointer to the value of a key, nullptr where there is none. An unknown operator
/// matches nothing.
template <typename Find>
[[nodiscard]] bool matches(const LabelSelector& selector, const Find& find) {
    return std::all_of(selector.begin(), selector.end(), [&](const Term& term) {
        const std::string* text = find(term.key);
        const bool is_listed =
            text != nullptr && std::find(term.values.begin(), term.values.end(), *text) != term.values.end();
        if (term.op == "In") return is_listed;
        if (term.op == "NotIn") return !is_listed;
        if (term.op == "Exists") return text != nullptr;
        return term.op == "DoesNotExist" && text == nullptr;
    });
}

}  // namespace kmm::selector
