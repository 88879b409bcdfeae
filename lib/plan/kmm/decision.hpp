// SPDX-License-Identifier: Apache-2.0
// KMM's decision per node and Module, as a table. Source: module_reconciler.go; facts: KMM 4.2.
#pragma once

#include <span>
#include <string_view>

namespace kmm::plan {

enum class Eligibility { any, eligible, not_eligible };
enum class MappingState { any, fault, none, found };
enum class Configured { any, yes, no };
/// `unversioned`: the Module has no version. The others compare the label version-worker-pod with the version.
enum class WorkerLabel { any, unversioned, equal, differs, missing };

/// What happens to the Module's entry in the node's NodeModulesConfig.
enum class Want { leave, remove, put };

/// One row; `any` matches everything. As a question, all fields are set to something else than `any`.
struct Situation {
    Eligibility eligibility = Eligibility::any;
    MappingState mapping = MappingState::any;
    Configured configured = Configured::any;
    WorkerLabel worker = WorkerLabel::any;
};

struct DecisionRow {
    int number;  ///< of the table in KMM's facts; 0: the node is not looked at
    Situation when;
    Want want;
    std::string_view text;
};

/// All rows in the order in which they are tried. Static storage.
[[nodiscard]] std::span<const DecisionRow> decision_table() noexcept;

/// The first row that matches. Total: every situation has one.
[[nodiscard]] const DecisionRow& decide(const Situation& situation);

}  // namespace kmm::plan
