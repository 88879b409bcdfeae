// SPDX-License-Identifier: Apache-2.0
// What KMM's NodeModulesConfig reconciler does with one module of one node, as three tables. Source: nmc_reconciler.go;
// facts: KMM 5.2, 5.3, 5.4.
#pragma once

#include <span>
#include <string_view>

namespace kmm::plan {

/// A worker Pod as the reconciler sees it. `restarted`: its container has been restarted at least once; `stale`:
/// restarted, and made from another template than the one of today.
enum class PodState { any, none, loader, loader_restarted, loader_stale, unloader, unloader_restarted, unloader_stale };
/// A question that a row can leave open.
enum class Answer { any, yes, no };
enum class Phase { any, pending, running, failed, succeeded };

/// What is done. `record_load` writes status from the loader and deletes the Pod, `record_unload` removes the status
/// entry and deletes the Pod, `forget` removes the status entry alone.
enum class PodStep { nothing, create_loader, create_unloader, delete_pod, record_load, record_unload, forget };

/// 5.2: the entry is in spec.
struct SpecRow {
    PodState pod = PodState::any;
    Answer loaded = Answer::any;       ///< there is a status entry
    Answer same_config = Answer::any;  ///< spec and status configs are equal
    Answer same_kernel = Answer::any;  ///< their kernel versions are
    Answer rebooted = Answer::any;     ///< Ready, and the boot id is not that of status
    PodStep step = PodStep::nothing;
    std::string_view text;
};

/// 5.3: the entry is only in status.
struct OrphanRow {
    Answer rebooted = Answer::any;
    PodState pod = PodState::any;
    PodStep step = PodStep::nothing;
    std::string_view text;
};

/// 5.4: a worker Pod of the node, before the other two tables.
struct SyncRow {
    Phase phase = Phase::any;
    Answer loader = Answer::any;
    Answer known = Answer::any;  ///< the module is in spec or status
    PodStep step = PodStep::nothing;
    std::string_view text;
};

/// The rows in the order in which they are tried. Static storage.
[[nodiscard]] std::span<const SpecRow> spec_table() noexcept;
[[nodiscard]] std::span<const OrphanRow> orphan_table() noexcept;
[[nodiscard]] std::span<const SyncRow> sync_table() noexcept;

/// The first row that fits a situation in which nothing is `any`. Total. `step` and `text` of the situation do not
/// count.
[[nodiscard]] const SpecRow& decide(const SpecRow& situation);
[[nodiscard]] const OrphanRow& decide(const OrphanRow& situation);
[[nodiscard]] const SyncRow& decide(const SyncRow& situation);

}  // namespace kmm::plan
