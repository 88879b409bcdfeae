// SPDX-License-Identifier: Apache-2.0
// What KMM's own objects and the Pods that it made say about a pair that is not where it is to be, for `why`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/decide/verdict.hpp"

namespace kmm::plan {

/// One fact that keeps a module off its node, and what helps.
struct Cause {
    std::string topic;  ///< of the line, as in WhyLine
    std::string text;
    std::vector<std::string> changes;
};

/// In the order in which KMM comes to them: the image, its Pods, the worker Pod. Empty if nothing is said to be wrong.
/// `config_maps`: those that were read. O(pull, build and sign Pods + worker Pods of the node + config_maps).
[[nodiscard]] std::vector<Cause> causes(const NodeView& view, const api::Module& module, const Verdict& verdict,
                                        std::span<const api::ConfigMap> config_maps = {});

}  // namespace kmm::plan
