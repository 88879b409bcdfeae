// SPDX-License-Identifier: Apache-2.0
// The closed list of reasons a plan's line can have.
#pragma once

#include <span>
#include <string_view>

namespace kmm::plan {

/// One reason: the code is stable, the text is for people.
struct Reason {
    std::string_view code;
    std::string_view text;    ///< one phrase, lower case, no full stop
    std::string_view remedy;  ///< what would lead to another answer, "" if nothing needs to
};

/// All reasons, sorted by code. Static storage.
[[nodiscard]] std::span<const Reason> reasons() noexcept;

/// The entry of `code`; a bug if it is not in the list.
[[nodiscard]] const Reason& reason(std::string_view code);

}  // namespace kmm::plan
