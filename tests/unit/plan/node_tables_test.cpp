// SPDX-License-Identifier: Apache-2.0
// One line per row of the tables of KMM's NodeModulesConfig reconciler, and that every situation has a row.
#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "plan/kmm/node_tables.hpp"

using namespace kmm::plan;

namespace {

constexpr auto yes = Answer::yes;
constexpr auto no = Answer::no;
const std::vector<PodState> k_pod_states{PodState::none,         PodState::loader,   PodState::loader_restarted,
                                         PodState::loader_stale, PodState::unloader, PodState::unloader_restarted,
                                         PodState::unloader_stale};

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("an entry in spec, row by row") {
        const std::vector<SpecRow> situations{
            {PodState::none, no, no, no, no, PodStep::create_loader, ""},
            {PodState::none, yes, no, yes, no, PodStep::create_unloader, ""},
            {PodState::none, yes, no, yes, yes, PodStep::create_unloader, ""},  // a reboot is not looked at
            {PodState::none, yes, no, no, no, PodStep::create_loader, ""},
            {PodState::none, yes, no, no, yes, PodStep::create_loader, ""},
            {PodState::none, yes, yes, yes, yes, PodStep::create_loader, ""},
            {PodState::none, yes, yes, yes, no, PodStep::nothing, ""},
            {PodState::unloader, yes, yes, yes, no, PodStep::nothing, ""},
            {PodState::unloader_restarted, yes, yes, yes, no, PodStep::nothing, ""},
            {PodState::unloader_stale, no, no, no, no, PodStep::nothing, ""},
            {PodState::loader, no, no, no, no, PodStep::nothing, ""},
            {PodState::loader, yes, no, yes, yes, PodStep::nothing, ""},
            {PodState::loader_stale, no, no, no, no, PodStep::delete_pod, ""},
            {PodState::loader_restarted, no, no, no, no, PodStep::nothing, ""},
        };
        std::set<const SpecRow*> seen;
        for (const auto& situation : situations) {
            const SpecRow& row = decide(situation);
            CAPTURE(row.text);
            CHECK(row.step == situation.step);
            seen.insert(&row);
        }
        CHECK(seen.size() == spec_table().size());
    }

    TEST_CASE("an entry only in status, row by row") {
        const std::vector<OrphanRow> situations{
            {yes, PodState::none, PodStep::forget, ""},
            {yes, PodState::unloader, PodStep::forget, ""},
            {no, PodState::none, PodStep::create_unloader, ""},
            {no, PodState::loader, PodStep::delete_pod, ""},
            {no, PodState::loader_restarted, PodStep::delete_pod, ""},
            {no, PodState::loader_stale, PodStep::delete_pod, ""},
            {no, PodState::unloader, PodStep::nothing, ""},
            {no, PodState::unloader_stale, PodStep::delete_pod, ""},
            {no, PodState::unloader_restarted, PodStep::nothing, ""},
        };
        std::set<const OrphanRow*> seen;
        for (const auto& situation : situations) {
            const OrphanRow& row = decide(situation);
            CAPTURE(row.text);
            CHECK(row.step == situation.step);
            seen.insert(&row);
        }
        CHECK(seen.size() == orphan_table().size());
    }

    TEST_CASE("a worker Pod by its phase, row by row") {
        const std::vector<SyncRow> situations{
            {Phase::pending, yes, no, PodStep::nothing, ""},
            {Phase::running, yes, no, PodStep::delete_pod, ""},
            {Phase::running, no, yes, PodStep::nothing, ""},
            {Phase::failed, yes, yes, PodStep::delete_pod, ""},
            {Phase::succeeded, no, no, PodStep::record_unload, ""},
            {Phase::succeeded, yes, yes, PodStep::record_load, ""},
        };
        std::set<const SyncRow*> seen;
        for (const auto& situation : situations) {
            const SyncRow& row = decide(situation);
            CAPTURE(row.text);
            CHECK(row.step == situation.step);
            seen.insert(&row);
        }
        CHECK(seen.size() == sync_table().size());
    }

    TEST_CASE("the tables are total") {
        for (const auto pod : k_pod_states) {
            for (const auto a : {yes, no}) {
                CHECK_NOTHROW(static_cast<void>(decide(OrphanRow{a, pod, PodStep::nothing, ""})));
                for (const auto b : {yes, no}) {
                    for (const auto c : {yes, no}) {
                        for (const auto d : {yes, no}) {
                            CHECK_NOTHROW(static_cast<void>(decide(SpecRow{pod, a, b, c, d, PodStep::nothing, ""})));
                        }
                    }
                }
            }
        }
        for (const auto phase : {Phase::pending, Phase::running, Phase::failed, Phase::succeeded}) {
            for (const auto a : {yes, no}) {
                for (const auto b : {yes, no}) {
                    CHECK_NOTHROW(static_cast<void>(decide(SyncRow{phase, a, b, PodStep::nothing, ""})));
                }
            }
        }
    }
}
