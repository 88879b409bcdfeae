// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/node_tables.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace kmm::plan {

namespace {

using P = PodState;
using A = Answer;

constexpr std::array k_spec_rows{
    SpecRow{P::none, A::no, A::any, A::any, A::any, PodStep::create_loader, "not loaded: a loader is created"},
    SpecRow{P::none, A::yes, A::no, A::yes, A::any, PodStep::create_unloader,
            "loaded with another configuration: an unloader is created, the load follows in a later pass"},
    SpecRow{P::none, A::yes, A::no, A::no, A::any, PodStep::create_loader,
            "loaded for another kernel, which is gone with its modules: a loader is created"},
    SpecRow{P::none, A::yes, A::yes, A::any, A::yes, PodStep::create_loader,
            "the node has rebooted: a loader is created"},
    SpecRow{P::none, A::yes, A::yes, A::any, A::no, PodStep::nothing, "loaded as configured: nothing to do"},
    SpecRow{P::unloader, A::any, A::any, A::any, A::any, PodStep::nothing,
            "an unloader is running and is never cancelled"},
    SpecRow{P::unloader_restarted, A::any, A::any, A::any, A::any, PodStep::nothing,
            "an unloader is running and is never cancelled"},
    SpecRow{P::unloader_stale, A::any, A::any, A::any, A::any, PodStep::nothing,
            "an unloader is running and is never cancelled"},
    SpecRow{P::loader, A::any, A::any, A::any, A::any, PodStep::nothing, "a loader is running"},
    SpecRow{P::loader_stale, A::any, A::any, A::any, A::any, PodStep::delete_pod,
            "a failing loader has an old configuration: it is deleted and made again"},
    SpecRow{P::loader_restarted, A::any, A::any, A::any, A::any, PodStep::nothing,
            "a failing loader is left to the kubelet's back-off"},
};

constexpr std::array k_orphan_rows{
    OrphanRow{A::yes, P::any, PodStep::forget, "the node has rebooted: the status entry is removed"},
    OrphanRow{A::no, P::none, PodStep::create_unloader, "loaded but not configured: an unloader is created"},
    OrphanRow{A::no, P::loader, PodStep::delete_pod, "a loader of a module that is not configured is deleted"},
    OrphanRow{A::no, P::loader_restarted, PodStep::delete_pod,
              "a loader of a module that is not configured is deleted"},
    OrphanRow{A::no, P::loader_stale, PodStep::delete_pod, "a loader of a module that is not configured is deleted"},
    OrphanRow{A::no, P::unloader, PodStep::nothing, "an unloader is running"},
    OrphanRow{A::no, P::unloader_stale, PodStep::delete_pod,
              "a failing unloader has an old configuration: it is deleted and made again"},
    OrphanRow{A::no, P::unloader_restarted, PodStep::nothing, "a failing unloader is left to the kubelet's back-off"},
};

constexpr std::array k_sync_rows{
    SyncRow{Phase::pending, A::any, A::any, PodStep::nothing, "the worker Pod has not started"},
    SyncRow{Phase::running, A::any, A::no, PodStep::delete_pod,
            "a worker Pod of a module that nobody knows is deleted"},
    SyncRow{Phase::running, A::any, A::yes, PodStep::nothing, "the worker Pod is running"},
    SyncRow{Phase::failed, A::any, A::any, PodStep::delete_pod, "a failed worker Pod is deleted and made again"},
    SyncRow{Phase::succeeded, A::no, A::any, PodStep::record_unload, "unloaded: the status entry is removed"},
    SyncRow{Phase::succeeded, A::yes, A::any, PodStep::record_load, "loaded: the status entry is written"},
};

template <typename T>
bool allows(T row, T asked) {
    return row == T::any || row == asked;
}

template <typename Rows, typename Fits>
const auto& first_row(const Rows& rows, const Fits& fits) {
    const auto* row = std::find_if(rows.begin(), rows.end(), fits);
    if (row == rows.end()) { throw bug("no row of a node table fits"); }
    return *row;
}

}  // namespace

std::span<const SpecRow> spec_table() noexcept { return k_spec_rows; }
std::span<const OrphanRow> orphan_table() noexcept { return k_orphan_rows; }
std::span<const SyncRow> sync_table() noexcept { return k_sync_rows; }

const SpecRow& decide(const SpecRow& situation) {
    return first_row(k_spec_rows, [&](const SpecRow& row) {
        return allows(row.pod, situation.pod) && allows(row.loaded, situation.loaded) &&
               allows(row.same_config, situation.same_config) && allows(row.same_kernel, situation.same_kernel) &&
               allows(row.rebooted, situation.rebooted);
    });
}

const OrphanRow& decide(const OrphanRow& situation) {
    return first_row(k_orphan_rows, [&](const OrphanRow& row) {
        return allows(row.rebooted, situation.rebooted) && allows(row.pod, situation.pod);
    });
}

const SyncRow& decide(const SyncRow& situation) {
    return first_row(k_sync_rows, [&](const SyncRow& row) {
        return allows(row.phase, situation.phase) && allows(row.loader, situation.loader) &&
               allows(row.known, situation.known);
    });
}

}  // namespace kmm::plan
