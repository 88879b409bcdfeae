// SPDX-License-Identifier: Apache-2.0
// The chain of facts behind one line of a plan, as data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/decide/verdict.hpp"

namespace kmm::plan {

/// `passed` and `failed` are conditions; `fact` is what is so.
enum class Mark { passed, failed, fact };
/// "yes", "no", "-".
[[nodiscard]] std::string_view to_string(Mark mark) noexcept;

/// One fact. `topic` is one of selector, taint, mapping, template, image, label, policy, observed, decision.
struct WhyLine {
    std::string topic;
    Mark mark = Mark::fact;
    std::string text;
};

struct Why {
    Entry settled, next;
    bool about_next = false;           ///< lines and changes are about `next`, else about `settled`
    std::vector<WhyLine> lines;        ///< in the order in which the decision looks at them
    std::vector<std::string> changes;  ///< what would have to change for another answer; never empty
};

/// Explains what `judge` says about the pair. `options` must be complete. `config_maps`: those that were read.
[[nodiscard]] Why explain(const NodeView& view, const api::Module& module, const Options& options,
                          std::span<const api::ConfigMap> config_maps = {});

}  // namespace kmm::plan
