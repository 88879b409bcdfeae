// SPDX-License-Identifier: Apache-2.0
// Helm's --set.
#pragma once

#include <string_view>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

/// Puts "a.b=1,c={x,y},d[0].e=z" into `values`, a map. Numbers become int64, true, false and null what they say, all
/// else texts. Error: usage "bad-set" that names the key and the place.
void set_values(const tmpl::Value& values, std::string_view text);

}  // namespace kmm::recipe::chart
