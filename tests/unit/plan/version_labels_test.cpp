// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "plan/kmm/version_labels.hpp"

using namespace kmm::plan;
using kmm::api::ScheduleKey;

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

    TEST_CASE("all 13 combinations are in the table once; the five dead ones are named") {
        const auto table = label_table();
        CHECK(table.size() == 13);
        std::set<std::string> states;
        std::map<std::string, std::string> dead;
        for (const auto& row : table) {
            CHECK(states.insert(to_string(row)).second);
            CHECK((row.step == LabelStep::stuck) == !row.name.empty());
            CHECK(row.name.empty() == row.text.empty());
            if (!row.name.empty()) { dead.emplace(to_string(row), row.name); }
        }
        CHECK(dead == std::map<std::string, std::string>{{"(-,-,P)", "schedule-orphaned"},
                                                         {"(P,-,P)", "worker-lost"},
                                                         {"(P,-,D)", "worker-lost-in-move"},
                                                         {"(P,P,D)", "schedule-behind"},
                                                         {"(P,D,P)", "schedule-ahead"}});
    }

    TEST_CASE("the way out of every dead state is to remove the schedule label") {
        for (const VersionLabels& labels : {VersionLabels{"", "", "v1"}, VersionLabels{"v1", "", "v1"},
                                            VersionLabels{"v2", "", "v1"}, VersionLabels{"v2", "v2", "v1"},
                                            VersionLabels{"v2", "v1", "v2"}}) {
            CAPTURE(to_string(label_row(labels)));
            REQUIRE(next_step(labels) == LabelStep::stuck);
            VersionLabels freed = after(LabelStep::delete_schedule, labels);
            for (int i = 0; i < 8; ++i) { freed = after(next_step(freed), freed); }
            CHECK(freed == VersionLabels{labels.module, labels.module, labels.module});
        }
    }

    TEST_CASE("the schedule label is read by the key of the cluster's KMM alone") {
        kmm::api::Labels labels{{"kmm.node.kubernetes.io/version-module.n.m", "v2"},
                                {"beta.kmm.node.kubernetes.io/version-worker-pod.n.m", "v1"},
                                {"beta.kmm.node.kubernetes.io/version-device-plugin.n.m", "v0"}};
        CHECK(version_labels(labels, "n", "m", ScheduleKey::device_plugin) == VersionLabels{"v2", "v1", "v0"});
        CHECK(version_labels(labels, "n", "m", ScheduleKey::schedule_pod) == VersionLabels{"v2", "v1", ""});
        labels["beta.kmm.node.kubernetes.io/version-schedule-pod.n.m"] = "v1";
        CHECK(version_labels(labels, "n", "m", ScheduleKey::schedule_pod) == VersionLabels{"v2", "v1", "v1"});
        CHECK(version_labels(labels, "n", "other", ScheduleKey::schedule_pod) == VersionLabels{});
    }

    TEST_CASE("the key is detected from labels, then from the Module's definition") {
        kmm::api::Objects objects;
        CHECK(detect_schedule_key(objects) == ScheduleKey::schedule_pod);
        objects.custom_resource_definitions.emplace_back();
        auto& definition = objects.custom_resource_definitions[0];
        definition.meta.name = "modules.kmm.sigs.x-k8s.io";
        CHECK(detect_schedule_key(objects) == ScheduleKey::schedule_pod);
        definition.spec_fields = {"devicePlugin", "moduleLoader", "selector"};
        CHECK(detect_schedule_key(objects) == ScheduleKey::device_plugin);
        definition.spec_fields = {"devicePlugin", "dra", "moduleLoader", "selector"};
        CHECK(detect_schedule_key(objects) == ScheduleKey::schedule_pod);
        objects.nodes.resize(2);
        objects.nodes[1].meta.labels["beta.kmm.node.kubernetes.io/version-device-plugin.n.m"] = "v1";
        CHECK(detect_schedule_key(objects) == ScheduleKey::device_plugin);
        objects.nodes[0].meta.labels["beta.kmm.node.kubernetes.io/version-schedule-pod.n.m"] = "v1";
        CHECK(detect_schedule_key(objects) == ScheduleKey::schedule_pod);
    }

    TEST_CASE("the key of a KMM version") {
        for (const auto* version : {"v2.0.0", "2.6", "v2.6.9"}) {
            CAPTURE(version);
            CHECK(schedule_key_of(version) == ScheduleKey::device_plugin);
        }
        for (const auto* version : {"main", "v2.7.0", "3.0"}) {
            CAPTURE(version);
            CHECK(schedule_key_of(version) == ScheduleKey::schedule_pod);
        }
        for (const auto* version : {"", "v", "2", "v1.1.0", "v2.x", "2.6.0.1", "2.6-rc1", "-2.6"}) {
            CAPTURE(version);
            CHECK_FALSE(schedule_key_of(version).has_value());
        }
    }
}
