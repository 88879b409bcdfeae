// SPDX-License-Identifier: Apache-2.0
// Changing one member in the text of a document that somebody else owns: comments, order, quoting and unknown fields
// of everything else stay as they are, byte for byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::edit {

/// One change: `path` names a member through mappings, e.g. {"metadata","labels","a/b"}; `value` replaces or adds it,
/// nullopt removes it (absent is fine). Missing parents are created; a parent left empty by a removal stays as `{}`.
struct Edit {
    std::vector<std::string> path;
    std::optional<value::Node> value;
};

/// Applies `edits` in order to `text` (YAML block or flow style, or JSON; one document). The result is re-read and
/// compared with the same edits applied to the tree: if they differ, nothing is returned but an Error (exit data, code
/// "cannot-edit", with position). Line endings (LF or CRLF) and a missing final newline are kept.
[[nodiscard]] std::string edit_text(std::string_view text, std::string_view file, const std::vector<Edit>& edits);
/// A changed text, and what it reads as: nullopt if there is no document in it.
struct Edited {
    std::string text;
    std::optional<value::Document> document;
};

/// The same where `text` has been read: as `root`, with its marks.
[[nodiscard]] Edited edit_text(std::string_view text, std::string_view file, const std::vector<Edit>& edits,
                               const value::Node& root);

}  // namespace kmm::edit
