// SPDX-License-Identifier: Apache-2.0
#include "recipe/decide/upgradeable.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::recipe::decide {

using value::Node;

namespace {

constexpr std::size_t k_told_max = 5;
constexpr std::string_view k_default_name = "kmm-tools";

/// How far the images of drivers that are ready were looked into.
std::string_view extent(const std::vector<KernelVerdict>& verdicts) {
    const auto any = [&](Looked looked) {
        return std::any_of(verdicts.begin(), verdicts.end(),
                           [&](const KernelVerdict& one) { return one.looked == looked; });
    };
    const bool modules = any(Looked::modules);
    if (!any(Looked::image)) { return modules ? ": the modules in images fit" : ""; }
    return modules ? ": images exist, the modules in some of them were not checked"
                   : ": images exist, the modules in them were not checked";
}

}  // namespace

std::string condition_reason(std::string_view code) {
    std::string made;
    bool upper = true;
    for (const char c : code) {
        if (c == '-') {
            upper = true;
            continue;
        }
        made += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        upper = false;
    }
    return made;
}

Upgradeable judge_upgrade(const std::vector<KernelVerdict>& verdicts) {
    Upgradeable made;
    std::set<std::string> reasons, kernels;
    std::vector<std::string> told;
    for (const auto& one : verdicts) {
        kernels.insert(one.kernel);
        if (one.ready) { continue; }
        made.blocking.push_back(one);
        reasons.insert(one.reason);
        const std::string text = fmt::format("{} is not ready for kernel {}: {}", one.subject, one.kernel,
                                             one.message.empty() ? one.reason : one.message);
        if (std::find(told.begin(), told.end(), text) == told.end()) { told.push_back(text); }
    }
    made.status = made.blocking.empty() && !verdicts.empty();
    if (verdicts.empty()) {
        made.reason = "NothingChecked";
        made.message = "no driver was checked";
    } else if (made.status) {
        made.reason = "AsExpected";
        made.message = fmt::format("every driver is ready for {}{}",
                                   base::join(std::vector<std::string>(kernels.begin(), kernels.end()), ", "),
                                   extent(verdicts));
    } else {
        made.reason = reasons.size() == 1 ? condition_reason(*reasons.begin()) : "MultipleReasons";
        const std::size_t more = told.size() > k_told_max ? told.size() - k_told_max : 0;
        told.resize(told.size() - more);
        made.message = base::join(told, "; ") + (more == 0 ? "" : fmt::format("; and {} more", more));
    }
    return made;
}

std::optional<StatusTarget> parse_status_target(std::string_view text) {
    const auto parts = base::split(text, '/');
    StatusTarget target;
    if (std::any_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); })) {
        return std::nullopt;
    }
    target.is_operator_condition = parts[0] == "operatorcondition";
    if (!target.is_operator_condition && parts[0] != "clusteroperator") { return std::nullopt; }
    if (parts.size() > (target.is_operator_condition ? 3U : 2U)) { return std::nullopt; }
    // OLM names it like the ClusterServiceVersion: no name is likely.
    if (target.is_operator_condition && parts.size() == 1) { return std::nullopt; }
    target.name = parts.size() > 1 ? parts.back() : k_default_name;
    if (parts.size() == 3) { target.name_space = parts[1]; }
    return target;
}

Node status_patch(const StatusTarget& target, const Upgradeable& upgradeable, const std::string& time) {
    Node metadata = Node::mapping({{"name", target.name}});
    if (!target.name_space.empty()) { metadata.set("namespace", target.name_space); }
    const Node condition = Node::mapping({{"type", "Upgradeable"},
                                          {"status", upgradeable.status ? "True" : "False"},
                                          {"reason", upgradeable.reason},
                                          {"message", upgradeable.message},
                                          {"lastTransitionTime", time}});
    const Node conditions = Node::mapping({{"conditions", Node::sequence({condition})}});
    if (target.is_operator_condition) {
        return Node::mapping({{"apiVersion", "operators.coreos.com/v2"},
                              {"kind", "OperatorCondition"},
                              {"metadata", std::move(metadata)},
                              {"spec", conditions}});
    }
    return Node::mapping({{"apiVersion", "config.openshift.io/v1"},
                          {"kind", "ClusterOperator"},
                          {"metadata", std::move(metadata)},
                          {"status", conditions}});
}

}  // namespace kmm::recipe::decide
