// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/apply_order.hpp"

#include <set>
#include <utility>

namespace kmm::drive {

ApplyOrder::ApplyOrder(std::vector<std::string> kernels)
    : kernels_(std::move(kernels)), applied_(kernels_.size(), false), ready_(kernels_.size(), false) {}

bool ApplyOrder::is_awaited(std::size_t place) const {
    const auto& kernel = kernels_[place];
    for (auto later = place + 1; later < kernels_.size(); ++later)
        if (!applied_[later] && (kernel.empty() || kernels_[later].empty() || kernels_[later] == kernel)) return true;
    return false;
}

std::vector<std::string> ApplyOrder::advance(const Attempt& apply, const Attempt& gate) {
    std::vector<std::string> problems;
    std::set<std::string> blocked;  // kernels; "" blocks all
    const auto missing = [&](std::size_t place, std::string problem) {
        if (problem.empty()) return false;
        problems.push_back(std::move(problem));
        blocked.insert(kernels_[place]);
        return true;
    };
    for (std::size_t place = 0; place < kernels_.size() && !blocked.contains(""); ++place) {
        const auto& kernel = kernels_[place];
        const bool is_blocked = blocked.contains(kernel) || (kernel.empty() && !blocked.empty());
        if (!applied_[place]) {
            if (is_blocked) {
                blocked.insert(kernel);
                continue;
            }
            if (missing(place, apply(place))) continue;
            applied_[place] = true;
        }
        if (ready_[place] || !is_awaited(place)) continue;
        if (!missing(place, gate(place))) ready_[place] = true;
    }
    return problems;
}

}  // namespace kmm::drive
