// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include <doctest/doctest.h>

#include "plan/fleet/drain.hpp"

using namespace kmm;
using namespace kmm::plan;

namespace {

api::WorkloadPod pod_of(const std::string& name, const std::string& controller) {
    api::WorkloadPod pod;
    pod.namespace_ = "shop";
    pod.name = name;
    pod.phase = "Running";
    pod.labels = {{"app", "web"}};
    pod.controller_kind = controller;
    return pod;
}

}  // namespace

TEST_SUITE("plan::unit") {

TEST_CASE("the filters of kubectl drain") {
    struct Row {
        const char* what;
        std::function<void(api::WorkloadPod&)> change;
        bool is_evicted, is_evicted_by_force;
        const char *refusal, *warning;  ///< without and with all options
    };
    const char* unmanaged = "cannot delete Pods that declare no controller (use --force to override): shop/a";
    const char* local = "cannot delete Pods with local storage (use --delete-emptydir-data to override): shop/a";
    const char* orphan = "cannot delete Pods whose DaemonSet is gone (use --force to override): shop/a";
    for (const auto& row : std::vector<Row>{
             {"managed", [](auto&) {}, true, true, "", ""},
             {"of a DaemonSet", [](auto& pod) { pod.controller_kind = "DaemonSet"; }, false, false, "",
              "ignoring DaemonSet-managed Pods: shop/a"},
             {"of a DaemonSet that is gone",
              [](auto& pod) {
                  pod.controller_kind = "DaemonSet";
                  pod.is_controller_gone = true;
              },
              true, true, orphan, "deleting Pods whose DaemonSet is gone: shop/a"},
             {"of a DaemonSet, finished",
              [](auto& pod) {
                  pod.controller_kind = "DaemonSet";
                  pod.phase = "Failed";
              },
              true, true, "", ""},
             {"mirror", [](auto& pod) { pod.is_mirror = true; }, false, false, "", ""},
             {"a worker of KMM", [](auto& pod) { pod.is_worker = true; }, false, false, "", ""},
             {"that of this process",
              [](auto& pod) {
                  pod.is_self = pod.has_empty_dir = true;
                  pod.controller_kind.clear();
              },
              false, false, "", "ignoring the Pod that this runs in: shop/a"},
             {"unmanaged", [](auto& pod) { pod.controller_kind.clear(); }, true, true, unmanaged,
              "deleting Pods that declare no controller: shop/a"},
             {"unmanaged, finished",
              [](auto& pod) {
                  pod.controller_kind.clear();
                  pod.phase = "Succeeded";
              },
              true, true, "", ""},
             {"unmanaged, ending",
              [](auto& pod) {
                  pod.controller_kind.clear();
                  pod.is_ending = true;
              },
              true, true, "", ""},
             {"local storage", [](auto& pod) { pod.has_empty_dir = true; }, true, true, local,
              "deleting Pods with local storage: shop/a"},
             {"local storage, finished",
              [](auto& pod) {
                  pod.has_empty_dir = true;
                  pod.phase = "Succeeded";
              },
              true, true, "", ""}}) {
        CAPTURE(row.what);
        auto pod = pod_of("a", "ReplicaSet");
        row.change(pod);
        const auto strict = plan_drain({pod}, {});
        CHECK(strict.evict.size() == (row.is_evicted ? 1 : 0));
        CHECK(strict.refusals ==
              (*row.refusal == 0 ? std::vector<std::string>() : std::vector<std::string>{row.refusal}));
        const auto forced = plan_drain({pod}, {OnLoss::evict, OnLoss::evict, std::nullopt});
        CHECK(forced.evict.size() == (row.is_evicted_by_force ? 1 : 0));
        CHECK(forced.refusals.empty());
        CHECK(forced.warnings ==
              (*row.warning == 0 ? std::vector<std::string>() : std::vector<std::string>{row.warning}));
    }
}

TEST_CASE("one refusal for each reason, with all its Pods") {
    auto local = pod_of("c", "ReplicaSet");
    local.has_empty_dir = true;
    const auto drain = plan_drain({pod_of("a", ""), local, pod_of("b", "")}, {});
    CHECK(drain.refusals ==
          std::vector<std::string>{
              "cannot delete Pods that declare no controller (use --force to override): shop/a, shop/b",
              "cannot delete Pods with local storage (use --delete-emptydir-data to override): shop/c"});
}

TEST_CASE("only users of the device, if that is asked for") {
    auto by_resource = pod_of("a", "ReplicaSet");
    by_resource.resources = {"example.com/gpu"};
    auto by_claim = pod_of("b", "ReplicaSet");
    by_claim.claims = {"b-gpu"};
    DrainRules rules;
    rules.users = DrainRules::Users{{"example.com/gpu"}, {"shop/b-gpu"}};
    const auto drain = plan_drain({by_resource, by_claim, pod_of("c", ""), pod_of("d", "ReplicaSet")}, rules);
    REQUIRE(drain.evict.size() == 2);
    CHECK(drain.evict[0].name == "a");
    CHECK(drain.evict[1].name == "b");
    CHECK(drain.refusals.empty());
}

TEST_CASE("budgets that never allow an eviction") {
    struct Row {
        const char *min_available, *max_unavailable;
        std::optional<std::int64_t> expected;
        const char* reason;
    };
    for (const auto& row : {Row{"", "0", 3, "maxUnavailable 0"},
                            Row{"", "0%", 3, "maxUnavailable 0%"},
                            Row{"", "1", 3, ""},
                            Row{"", "1%", 3, ""},
                            Row{"100%", "", std::nullopt, "minAvailable 100%"},
                            Row{"1", "", 1, "minAvailable 1 of 1"},
                            Row{"3", "", 2, "minAvailable 3 of 2"},
                            Row{"67%", "", 3, "minAvailable 67% of 3"},
                            Row{"66%", "", 3, ""},
                            Row{"1", "", 2, ""},
                            Row{"1", "", std::nullopt, ""},
                            Row{"1", "", 0, ""},
                            Row{"", "", 3, ""},
                            Row{"many", "", 3, ""}}) {
        CAPTURE(row.min_available);
        CAPTURE(row.max_unavailable);
        api::DisruptionBudget budget;
        budget.namespace_ = "shop";
        budget.name = "web";
        budget.selector = selector::LabelSelector{{"app", "In", {"web"}}};
        budget.min_available = row.min_available;
        budget.max_unavailable = row.max_unavailable;
        budget.expected_pods = row.expected;
        const auto texts = hopeless_budgets({budget}, {pod_of("a", "ReplicaSet"), pod_of("b", "ReplicaSet")});
        if (*row.reason == 0) {
            CHECK(texts.empty());
        } else {
            CHECK(texts == std::vector<std::string>{"PodDisruptionBudget shop/web never allows an eviction (" +
                                                    std::string(row.reason) + "): shop/a, shop/b"});
        }
        auto elsewhere = pod_of("a", "ReplicaSet");
        elsewhere.namespace_ = "other";
        auto done = pod_of("b", "ReplicaSet");
        done.phase = "Succeeded";
        CHECK(hopeless_budgets({budget}, {elsewhere, done}).empty());
        budget.selector.reset();
        CHECK(hopeless_budgets({budget}, {pod_of("a", "ReplicaSet")}).empty());
    }
}

TEST_CASE("who uses the devices of a Module") {
    api::Module module;
    module.meta.namespace_ = "drivers";
    module.meta.name = "gpu";
    const auto code_of = [&](const std::vector<std::string>& resources) {
        try {
            static_cast<void>(users_of(module, resources, {}));
            return std::string();
        } catch (const Error& error) {
            return error.code();
        }
    };
    CHECK(code_of({}) == "no-users");
    CHECK(code_of({"example.com/gpu"}).empty());
    module.device_plugin = value::Node::mapping();
    CHECK(code_of({}) == "resources-unknown");
    CHECK(code_of({"example.com/gpu"}).empty());
    module.device_plugin.reset();
    module.dra =
        value::Node::mapping({{"driverName", "gpu.example.com"},
                              {"deviceClasses", value::Node::sequence({value::Node::mapping({{"name", "gpus"}}),
                                                                       value::Node::mapping({{"name", "parts"}})})}});
    const std::vector<api::DeviceClaim> claims = {{"a", "asks", {"other", "parts"}, {}},
                                                  {"a", "asks-others", {"other"}, {"nic.example.com"}},
                                                  {"b", "has", {"other"}, {"gpu.example.com"}},
                                                  {"b", "nothing", {}, {}}};
    const auto users = users_of(module, {"example.com/gpu"}, claims);
    CHECK(users.resources == std::set<std::string>{"example.com/gpu"});
    CHECK(users.claims == std::set<std::string>{"a/asks", "b/has"});
}
}
