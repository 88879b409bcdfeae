// SPDX-License-Identifier: Apache-2.0
// What decisions read of an object, in one form: the same tree from every file, order and format that says the same.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// Kind, namespace, name and canonical JSON of one object: one line, keys sorted, absent parts left out, no places. Of
/// a Secret only the type: nothing about its data may be learnt from a digest. Annotations: those of kmmtools.dev only.
using CanonicalSink = std::function<void(std::string_view kind, const ObjectMeta& meta, const std::string& json)>;

/// Calls `sink` for every object, kind after kind (Module, Node, ...), within a kind in the order of `objects`.
/// O(size).
void canonical(const Objects& objects, const CanonicalSink& sink);

}  // namespace kmm::api
