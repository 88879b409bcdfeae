// SPDX-License-Identifier: Apache-2.0
// JSON documents of images (manifests, indexes, configurations, signed payloads) read in a confined process: text goes
// in, a tree of values comes out.
#pragma once

#include <string>
#include <string_view>

#include "sandbox/confined.hpp"
#include "value/node.hpp"

namespace kmm::registry {

/// What a confined process needs to be asked by the functions below.
[[nodiscard]] sandbox::Service document_service();

/// The one JSON document in `text`, read in `parser`, or in this process without one. Marks are left out. After a text
/// that is not such a document the next one is read by another process. Errors: data `code`: "the WHAT is not a JSON
/// document: ..."; sandbox::Confined::lost().
[[nodiscard]] value::Node read_image_document(sandbox::Confined* parser, const std::string& text,
                                              const std::string& what, const char* code);

/// trust::read_payload() in `parser`, or in this process without one, by a process that reads nothing else: what is
/// said in the name of a key must not be read by one that has seen bytes of others. Errors: as there;
/// sandbox::Confined::lost().
[[nodiscard]] value::Node read_signed_payload(sandbox::Confined* parser, std::string_view text);

/// What comes next is not vouched for by what came before: it is read by another process. nullptr does nothing.
void begin_other_bytes(sandbox::Confined* parser);

}  // namespace kmm::registry
