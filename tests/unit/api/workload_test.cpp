// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "api/workload.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::api;

namespace {

value::Node tree_of(const std::string& text) {
    Diagnostics faults;
    const auto documents = value::read_yaml(text, "-", faults);
    REQUIRE(faults.empty());
    return documents.at(0).root;
}

}  // namespace

TEST_SUITE("api::unit") {

TEST_CASE("a Pod as a drain sees it") {
    const auto pod = decode_workload_pod(tree_of(R"(
metadata:
  name: job-1
  namespace: shop
  uid: u
  labels: {app: job}
  deletionTimestamp: "2026-01-01T00:00:30Z"
  deletionGracePeriodSeconds: 30
  finalizers: [example.com/keep]
  annotations: {kubernetes.io/config.mirror: x}
  ownerReferences:
  - {kind: Node, name: other}
  - {kind: Job, name: job, controller: true}
spec:
  volumes: [{name: a, configMap: {}}, {name: b, emptyDir: {}}]
  containers:
  - resources: {requests: {cpu: 1, example.com/gpu: 1}, limits: {example.com/gpu: 1, hugepages-2Mi: 1Mi}}
  - resources: {limits: {example.com/nic: "2", example.com/none: "0"}}
  resourceClaims: [{name: a, resourceClaimName: mine}, {name: b, resourceClaimTemplateName: t}]
status:
  phase: Running
  resourceClaimStatuses: [{name: b, resourceClaimName: job-1-b-x}]
)"));
    CHECK(pod.full_name() == "shop/job-1");
    CHECK(pod.uid == "u");
    CHECK(pod.phase == "Running");
    CHECK(pod.controller_kind == "Job");
    CHECK(pod.controller_name == "job");
    CHECK(pod.is_mirror);
    CHECK(pod.has_empty_dir);
    CHECK(pod.is_ending);
    CHECK(pod.ending_since == base::parse_rfc3339("2026-01-01T00:00:00Z"));
    CHECK(pod.ending_grace == 30);
    CHECK(pod.finalizers == std::vector<std::string>{"example.com/keep"});
    CHECK_FALSE(pod.is_worker);
    CHECK(pod.resources == std::vector<std::string>{"example.com/gpu", "example.com/nic"});
    CHECK(pod.claims == std::vector<std::string>{"job-1-b-x", "mine"});
}

TEST_CASE("what a ResourceClaim asks for and was given, in every version") {
    const auto claim = decode_device_claim(tree_of(R"(
metadata: {name: c, namespace: shop}
spec:
  devices:
    requests:
    - {name: a, exactly: {deviceClassName: v1}}
    - {name: b, deviceClassName: beta}
    - {name: c, firstAvailable: [{name: x, deviceClassName: first}, {name: y, deviceClassName: second}]}
status: {allocation: {devices: {results: [{driver: gpu.example.com, pool: p, device: d}]}}}
)"));
    CHECK(claim.namespace_ == "shop");
    CHECK(claim.name == "c");
    CHECK(claim.classes == std::vector<std::string>{"v1", "beta", "first", "second"});
    CHECK(claim.drivers == std::vector<std::string>{"gpu.example.com"});
    CHECK(decode_device_claim(tree_of("{spec: {devices: 3}}")).classes.empty());
}

TEST_CASE("fields that are missing or of another kind count as absent") {
    const auto pod = decode_workload_pod(
        tree_of("{metadata: {name: a, labels: 3, ownerReferences: x}, spec: {volumes: null, containers: 7}}"));
    CHECK(pod.controller_kind.empty());
    CHECK_FALSE(pod.has_empty_dir);
    CHECK(decode_workload_pod(tree_of("[]")).name.empty());
    const auto budget =
        decode_disruption_budget(tree_of("{metadata: {name: b}, spec: {selector: 3, minAvailable: [1]}}"));
    CHECK_FALSE(budget.selector.has_value());
    CHECK(budget.min_available.empty());
}

TEST_CASE("label selectors match as Kubernetes says, and lists take them") {
    struct Row {
        const char* selector;
        bool matches;
        const char* text;
    };
    const Labels labels = {{"app", "web"}, {"tier", ""}};
    for (const auto& row :
         {Row{"{}", true, ""}, Row{"{matchLabels: {app: web}}", true, "app=web"},
          Row{"{matchLabels: {app: db}}", false, "app=db"}, Row{"{matchLabels: {tier: ''}}", true, "tier="},
          Row{"{matchExpressions: [{key: app, operator: In, values: [db, web]}]}", true, "app in (db,web)"},
          Row{"{matchExpressions: [{key: app, operator: In, values: [web]}]}", true, "app=web"},
          Row{"{matchExpressions: [{key: app, operator: NotIn, values: [db]}]}", true, "app notin (db)"},
          Row{"{matchExpressions: [{key: none, operator: NotIn, values: [db]}]}", true, "none notin (db)"},
          Row{"{matchExpressions: [{key: tier, operator: Exists}]}", true, "tier"},
          Row{"{matchExpressions: [{key: tier, operator: DoesNotExist}]}", false, "!tier"},
          Row{"{matchExpressions: [{key: none, operator: DoesNotExist}]}", true, "!none"},
          Row{"{matchLabels: {app: web}, matchExpressions: [{key: app, operator: NotIn, values: [web]}]}", false,
              "app=web,app notin (web)"},
          Row{"{matchExpressions: [{key: app, operator: Like, values: [web]}]}", false, "app like (web)"},
          Row{"{matchLabels: [app], matchExpressions: 3}", true, ""}}) {
        CAPTURE(row.selector);
        const auto selector = selector::decode_label_selector(tree_of(row.selector));
        CHECK(matches(selector, labels) == row.matches);
        CHECK(selector::to_text(selector) == row.text);
    }
}
}
