// SPDX-License-Identifier: Apache-2.0
// Single facts of an object of the API server, as its document says them.
#pragma once

#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::cluster {

/// The annotation `key`, "" without it.
[[nodiscard]] std::string annotation_of(const value::Node& object, std::string_view key);

/// The condition `type` of its status, nullptr without it. The pointer dies with the next change of `object`.
[[nodiscard]] const value::Node* condition_of(const value::Node& object, std::string_view type);

/// True if a Pod or a Node has the condition Ready.
[[nodiscard]] bool is_ready(const value::Node& object);

}  // namespace kmm::cluster
