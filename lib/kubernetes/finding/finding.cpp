// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/finding/finding.hpp"

#include <cstddef>
#include <utility>

#include "base/join_some.hpp"

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

std::optional<Finding> versions_unknown(const CheckInput& input) {
    if (input.seen.faults.empty()) { return std::nullopt; }
    return Finding{Outcome::fail, "not all versions that run are known, see versions-uniform",
                   input.seen.faults.front().hint};
}

}  // namespace kmm::kubernetes
