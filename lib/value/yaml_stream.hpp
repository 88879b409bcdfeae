// SPDX-License-Identifier: Apache-2.0
// Internal to lib/value.
#pragma once

#include <optional>
#include <string_view>

#include "value/object_stream.hpp"

namespace kmm::value {

/// As stream_yaml, with libyaml alone: the measure of what is read line by line.
[[nodiscard]] std::optional<Diagnostic> stream_libyaml(const ReadMore& read_more, std::string_view file,
                                                       ObjectSink& sink, const ReadLimits& limits = {});

}  // namespace kmm::value
