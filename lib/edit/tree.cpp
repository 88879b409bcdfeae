// SPDX-License-Identifier: Apache-2.0
#include "edit/tree.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "value/reader.hpp"

namespace kmm::edit {

void edit_tree(value::Node& root, const Edit& edit) {
    value::Node* node = &root;
    for (std::size_t i = 0; i + 1 < edit.path.size(); ++i) {
        value::Node* next = node->find(edit.path[i]);
        if (next == nullptr || next->is_null()) {
            if (!edit.value) return;
            next = &node->set(edit.path[i], value::Node::mapping());
        }
        node = next;
    }
    if (edit.value) {
        node->set(edit.path.back(), *edit.value);
    } else {
        node->erase(edit.path.back());
    }
}

std::optional<value::Document> read_one(std::string_view text, std::string_view file) {
    Diagnostics diagnostics;
    auto documents = value::read_any(text, file, diagnostics);
    if (has_errors(diagnostics)) throw Error::from_diagnostics(std::move(diagnostics));
    if (documents.size() > 1) {
        throw Error(Exit::data, "cannot-edit", fmt::format("expected one document, found {}", documents.size()))
            .at(documents[1].position(documents[1].root.mark()))
            .hint("put each object into a file of its own");
    }
    if (documents.empty()) return std::nullopt;
    return std::move(documents[0]);
}

}  // namespace kmm::edit
