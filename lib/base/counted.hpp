// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kmm::base {

/// "1 node", "3 nodes": `number` and `noun`, with "s" behind it unless there is one.
[[nodiscard]] std::string counted(std::size_t number, std::string_view noun);

}  // namespace kmm::base
