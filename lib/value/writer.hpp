// SPDX-License-Identifier: Apache-2.0
// Writers: byte-stable JSON and YAML text of a tree. Member order is kept.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::value {

/// One line, no blanks: {"a":1}. Non-ASCII stays UTF-8; control characters are escaped.
[[nodiscard]] std::string to_json(const Node& node);
/// Two blanks a level and a final newline. Empty containers are {} and [].
[[nodiscard]] std::string to_json_pretty(const Node& node);
/// Block style, two blanks a level, sequences indented like kubectl (dash at the parent's column), final newline.
/// A string (key or value) is quoted, as JSON text, whenever any YAML 1.1 or 1.2 reader could take it for something
/// else (yes, on, y, null, numbers, dates, ...); multi-line text uses a literal block when it survives one unchanged.
[[nodiscard]] std::string to_yaml(const Node& node);

/// A sequence of a tree that is too long to be kept: nodes are made one by one while they are written.
struct LongSequence {
    const Node* place = nullptr;  ///< an empty sequence in the tree, which stands for it
    std::function<void(const std::function<void(const Node&)>&)>
        items;  ///< gives the items, at least one, to its argument
};
enum class Form { json, json_pretty, yaml };
/// What to_json (with a line break), to_json_pretty or to_yaml would make of `node` if `sequence` stood in it whole;
/// the text goes to `out` piece by piece.
void write(const Node& node, Form form, const LongSequence& sequence, const std::function<void(std::string_view)>& out);

}  // namespace kmm::value
