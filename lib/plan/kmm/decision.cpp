// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/decision.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace kmm::plan {

namespace {

using E = Eligibility;
using M = MappingState;
using C = Configured;
using W = WorkerLabel;

constexpr std::array k_rows{
    DecisionRow{8, {E::not_eligible, M::any, C::yes, W::any}, Want::remove,
                "the node is not eligible and its configuration has the module: the entry is removed"},
    DecisionRow{0, {E::not_eligible, M::any, C::no, W::any}, Want::leave, "the node is not eligible: nothing to do"},
    DecisionRow{1, {E::eligible, M::fault, C::any, W::any}, Want::leave,
                "the kernel mapping has a fault: the configuration stays as it is"},
    DecisionRow{2, {E::eligible, M::none, C::yes, W::any}, Want::remove,
                "no kernel mapping matches and the configuration has the module: the entry is removed"},
    DecisionRow{3, {E::eligible, M::none, C::no, W::any}, Want::leave, "no kernel mapping matches: nothing to do"},
    DecisionRow{4, {E::eligible, M::found, C::any, W::unversioned}, Want::put,
                "the Module has no version: the entry is written"},
    DecisionRow{5, {E::eligible, M::found, C::any, W::equal}, Want::put,
                "the worker label equals the Module's version: the entry is written"},
    DecisionRow{6, {E::eligible, M::found, C::any, W::differs}, Want::leave,
                "the worker label is another version: the configuration stays as it is"},
    DecisionRow{7, {E::eligible, M::found, C::any, W::missing}, Want::remove,
                "the Module has a version and the node has no worker label: the entry is removed"},
};

template <typename T>
bool fits(T row, T asked) {
    return row == T::any || row == asked;
}

}  // namespace

std::span<const DecisionRow> decision_table() noexcept { return k_rows; }

const DecisionRow& decide(const Situation& situation) {
    const auto* row = std::find_if(k_rows.begin(), k_rows.end(), [&](const DecisionRow& candidate) {
        return fits(candidate.when.eligibility, situation.eligibility) &&
               fits(candidate.when.mapping, situation.mapping) &&
               fits(candidate.when.configured, situation.configured) && fits(candidate.when.worker, situation.worker);
    });
    if (row == k_rows.end()) { throw bug("no row of the decision table fits"); }
    return *row;
}

}  // namespace kmm::plan
