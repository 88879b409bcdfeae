// SPDX-License-Identifier: Apache-2.0
// Single facts of an object of the API server, as its document says them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::cluster {

/// The annotation `key`, "" without it.
[[nodiscard]] std::string annotation_of(const value::Node& object, std::string_view key);

/// The integer there, 0 without it.
[[nodiscard]] std::int64_t number_of(const value::Node& object, std::initializer_list<std::string_view> path);

/// The condition `type` of its status, nullptr without it. The pointer dies with the next change of `object`.
[[nodiscard]] const value::Node* condition_of(const value::Node& object, std::string_view type);

/// True if a Pod or a Node has the condition Ready.
[[nodiscard]] bool is_ready(const value::Node& object);

}  // namespace kmm::cluster
