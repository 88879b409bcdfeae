// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plan/version_labels.hpp"

using namespace kmm::plan;

TEST_SUITE("plan::unit") {
    TEST_CASE("KMM's label table, every combination") {
        struct Row {
            VersionLabels labels;
            LabelStep step;
        };
        for (const Row& row : {
                 Row{{"", "", ""}, LabelStep::none},
                 Row{{"", "v1", "v1"}, LabelStep::delete_schedule},
                 Row{{"", "v1", ""}, LabelStep::delete_worker},
                 Row{{"", "", "v1"}, LabelStep::stuck},
                 Row{{"v1", "", ""}, LabelStep::add_worker},
                 Row{{"v1", "v1", ""}, LabelStep::add_schedule},
                 Row{{"v1", "v1", "v1"}, LabelStep::none},
                 Row{{"v2", "v1", "v1"}, LabelStep::delete_schedule},
                 Row{{"v2", "v1", ""}, LabelStep::delete_worker},
                 Row{{"v1", "", "v1"}, LabelStep::stuck},
                 Row{{"v2", "", "v1"}, LabelStep::stuck},
                 Row{{"v2", "v2", "v1"}, LabelStep::stuck},
                 Row{{"v2", "v1", "v2"}, LabelStep::stuck},
             }) {
            CAPTURE(row.labels.module);
            CAPTURE(row.labels.worker);
            CAPTURE(row.labels.schedule);
            CHECK(next_step(row.labels) == row.step);
        }
    }

    TEST_CASE("an upgrade walks through all four steps") {
        const SettledLabels settled = settle({"v2", "v1", "v1"});
        CHECK(settled.labels == VersionLabels{"v2", "v2", "v2"});
        CHECK(settled.steps == std::vector<LabelStep>{LabelStep::delete_schedule, LabelStep::delete_worker,
                                                      LabelStep::add_worker, LabelStep::add_schedule});
        CHECK(settled.worker_removed);
        CHECK_FALSE(settled.stuck);
    }

    TEST_CASE("a first install and a removal") {
        CHECK(settle({"v1", "", ""}).labels == VersionLabels{"v1", "v1", "v1"});
        CHECK_FALSE(settle({"v1", "", ""}).worker_removed);
        CHECK(settle({"", "v1", "v1"}).labels == VersionLabels{"", "", ""});
        CHECK(settle({"", "v1", "v1"}).worker_removed);
        CHECK(settle({"v2", "v1", "v2"}).stuck);
    }

    TEST_CASE("labels are read by key; the schedule label of released KMM counts when the new one is absent") {
        kmm::api::Labels labels{{"kmm.node.kubernetes.io/version-module.n.m", "v2"},
                                {"beta.kmm.node.kubernetes.io/version-worker-pod.n.m", "v1"},
                                {"beta.kmm.node.kubernetes.io/version-device-plugin.n.m", "v0"}};
        CHECK(version_labels(labels, "n", "m") == VersionLabels{"v2", "v1", "v0"});
        labels["beta.kmm.node.kubernetes.io/version-schedule-pod.n.m"] = "v1";
        CHECK(version_labels(labels, "n", "m") == VersionLabels{"v2", "v1", "v1"});
        CHECK(version_labels(labels, "n", "other") == VersionLabels{});
    }
}
