// SPDX-License-Identifier: Apache-2.0
// Edits of trees: what an edited text must mean. Internal to lib/edit.
#pragma once

#include <optional>
#include <string_view>

#include "edit/edit.hpp"
#include "value/node.hpp"

namespace kmm::edit {

/// Makes the change in the tree. Missing parents are created.
void edit_tree(value::Node& root, const Edit& edit);

/// The one document that is edited; nullopt if there is nothing in `text`. Errors: from_diagnostics; data "cannot-edit"
/// for several documents.
[[nodiscard]] std::optional<value::Document> read_one(std::string_view text, std::string_view file);

}  // namespace kmm::edit
