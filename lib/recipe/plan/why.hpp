// SPDX-License-Identifier: Apache-2.0
// What a recipe consists of, for people.
#pragma once

#include <span>
#include <string>

#include "recipe/plan/render.hpp"

namespace kmm::recipe::plan {

/// The page of `kmm-plan why recipe`. `rendered` is of `name`, with all builds. Errors: those of apply_waves and select_kernels.
[[nodiscard]] std::string why_text(std::span<const SpecialResource> all, const std::string& name, const Facts& facts, const RenderedRecipes& rendered);

}  // namespace kmm::recipe::plan
