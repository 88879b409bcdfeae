// SPDX-License-Identifier: Apache-2.0
// Every code that kmm-plan can say, with what it means: the reasons of plan lines, the findings about documents and
// clusters, and the errors of the command itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::plan {

/// One code. All texts are for people; the code and the kind are stable.
struct Code {
    std::string code;
    std::string kind;     ///< "reason", "finding", "error", or "reason, finding"
    std::string verdict;  ///< one phrase, lower case, no full stop
    std::string meaning;  ///< whole sentences, "" if the verdict says it all
    std::string remedy;   ///< what to do, "" if nothing needs to be done
};

/// All codes, sorted. The reasons are those of reasons().
[[nodiscard]] const std::vector<Code>& codes();

/// The entry of `code`, nullptr if there is none. O(log n).
[[nodiscard]] const Code* find_code(std::string_view code);

/// A row of the tables that codes() is made of. A row whose code is a reason too may leave `verdict` and `remedy` to it.
struct CodeText {
    std::string_view code, kind, verdict, meaning, remedy;
};

/// What documents and clusters are found to have. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> finding_texts() noexcept;
/// What rendering finds and refuses. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> render_texts() noexcept;
/// What images are found to have, and what registries answer. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> image_texts() noexcept;
/// What kubeconfigs are found to have, and what API servers answer. Static storage, in no order.
[[nodiscard]] std::span<const CodeText> live_texts() noexcept;

}  // namespace kmm::plan
