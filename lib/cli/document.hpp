// SPDX-License-Identifier: Apache-2.0
// Results as documents, in the form that -o asks for.
#pragma once

#include <string_view>

#include "cli/app.hpp"
#include "value/node.hpp"

namespace kmm::cli {

/// Prints a document as -o json, yaml or jsonl asks; false for the other formats.
[[nodiscard]] bool print_document(Context& context, const value::Node& node);
/// As print_document, of a document that is a list: with jsonl a line for each of the sequence `member`, and nothing around them.
[[nodiscard]] bool print_list(Context& context, const value::Node& node, std::string_view member = "items");

}  // namespace kmm::cli
