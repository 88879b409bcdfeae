// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/finding/finding.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"

namespace kmm::kubernetes {

std::string_view to_string(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::ok: return "OK";
        case Outcome::warn: return "WARN";
        case Outcome::fail: return "FAIL";
        case Outcome::skip: break;
    }
    return "SKIP";
}

std::string name_some(const std::vector<std::string>& names) {
    constexpr std::size_t k_max = 10;
    return base::join_some(names, k_max);
}

Finding fail_if_any(const std::vector<std::string>& problems, std::string fine) {
    if (problems.empty()) { return {Outcome::ok, std::move(fine)}; }
    return {Outcome::fail, name_some(problems)};
}

std::string fixes_of(const Diagnostics& faults) {
    constexpr std::size_t k_fixes_max = 3;
    std::vector<std::string> fixes;
    for (const auto& fault : faults) {
        const bool is_new = std::find(fixes.begin(), fixes.end(), fault.hint) == fixes.end();
        if (is_new && !fault.hint.empty()) { fixes.push_back(fault.hint); }
    }
    if (fixes.size() > k_fixes_max) {
        const auto more = fmt::format("{} more: kmm-upgrade versions lists them", fixes.size() - k_fixes_max);
        fixes.resize(k_fixes_max);
        fixes.push_back(more);
    }
    return base::join(fixes, "; ");
}

std::optional<Finding> versions_unknown(const CheckInput& input) {
    if (input.seen.faults.empty()) { return std::nullopt; }
    return Finding{Outcome::fail, "not all versions that run are known, see versions-uniform",
                   fixes_of(input.seen.faults)};
}

std::optional<Finding> target_lower(const CheckInput& input) {
    const auto lowest = input.seen.lowest_control_plane();
    if (!lowest || !input.target || !(input.target->line() < lowest->line())) { return std::nullopt; }
    return Finding{Outcome::skip, "there is no way to the target, see version-path"};
}

}  // namespace kmm::kubernetes
