// SPDX-License-Identifier: Apache-2.0
// The toolkit's own annotation about unloading.
#pragma once

#include <string_view>

#include "api/types.hpp"
#include "plan/decide/passes.hpp"

namespace kmm::plan {

inline constexpr std::string_view k_annotation_unload_policy = "kmmtools.dev/unload-policy";

/// What the Module's annotation says; `always`, as KMM does, if it has none or an unknown value (see check_policy).
[[nodiscard]] UnloadPolicy unload_policy(const api::Module& module);
/// "always", "on-delete", "never".
[[nodiscard]] std::string_view to_string(UnloadPolicy policy) noexcept;

/// Reports "bad-unload-policy" for an annotation with another value.
void check_policy(const api::Module& module, Diagnostics& diagnostics);

}  // namespace kmm::plan
