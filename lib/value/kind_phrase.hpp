// SPDX-License-Identifier: Apache-2.0
// Kinds of nodes in messages.
#pragma once

#include <string>

#include "value/node.hpp"

namespace kmm::value {

/// "a list", "an integer", "null": what a message says was found.
[[nodiscard]] std::string a_kind(Kind kind);

}  // namespace kmm::value
