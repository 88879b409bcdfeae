// SPDX-License-Identifier: Apache-2.0
// Objects of KMM against the definitions of its releases, by the rules of an API server for structural schemas.
// Internal to lib/api.
#pragma once

#include "api/fields.hpp"
#include "schema/schema.hpp"

namespace kmm::api {

/// Checks an object of `scope.kind` but for its metadata, and records places and misread values if the scope asks for
/// them. What some releases only have or require goes to `scope.release_marks`. From here on the readers of `scope`
/// report nothing again. Codes: wrong-type, missing-field, unknown-field, bad-value and those of kmm.schema; warning
/// null-dropped. Of a status that nothing here reads only unknown fields are faults: an API server leaves the rest of
/// it aside. O(members).
void check_object(Scope& scope, const value::Node& root);
/// The same for a part of an object, which is of the type `type`.
void check_part(Scope& scope, const value::Node& node, std::string_view type);

}  // namespace kmm::api
