// SPDX-License-Identifier: Apache-2.0
// Every code that kmm-plan can say, with what it means: the reasons of plan lines, the findings about documents and
// clusters, and the errors of the command itself.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/code.hpp"

namespace kmm::plan {

/// All codes, sorted. The reasons are those of reasons().
[[nodiscard]] const std::vector<Code>& codes();

/// The entry of `code`, nullptr if there is none. O(log n).
[[nodiscard]] const Code* find_code(std::string_view code);

// In these tables a row whose code is a reason too may leave `verdict` and `remedy` to it.

/// What documents and clusters are found to have. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> finding_texts() noexcept;
/// What rendering finds and refuses. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> render_texts() noexcept;
/// What images are found to have, and what registries answer. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> image_texts() noexcept;
/// What kubeconfigs are found to have, and what API servers answer. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> live_texts() noexcept;
/// What charts and their templates are refused for. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> chart_texts() noexcept;
/// What recipes are found to have, and refused for. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> recipe_texts() noexcept;

}  // namespace kmm::plan
