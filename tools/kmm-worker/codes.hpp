// SPDX-License-Identifier: Apache-2.0
// Every code that kmm-worker can say, with its exit code, what it means and what to do.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/exit_code.hpp"

namespace kmm::tool_worker {

struct CodeRow {
    std::string_view code;
    std::optional<Exit> exit;  ///< nullopt for warnings
    std::string_view meaning, hint;
};

/// All of them, sorted by code. Static storage.
[[nodiscard]] std::span<const CodeRow> codes() noexcept;

}  // namespace kmm::tool_worker
