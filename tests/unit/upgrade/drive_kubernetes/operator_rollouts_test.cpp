// SPDX-License-Identifier: Apache-2.0
// Workloads that an operator changes some time after manifests of networking were applied.
#include "upgrade/drive_cluster/operator_rollouts.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "net/http.hpp"
#include "support/idle_clock.hpp"
#include "sys/random.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::drive::test {
namespace {

using namespace std::chrono_literals;

std::vector<value::Document> rollout_documents(const std::string& text) {
    Diagnostics faults;
    return value::read_yaml(text, "test", faults);
}

/// Answers a GET of a path with what `reply` makes of it: YAML, or "" for forbidden.
class RolloutHttp final : public net::HttpClient {
public:
    explicit RolloutHttp(const std::function<std::string(const std::string&)>& reply) : reply_(reply) {}
    [[nodiscard]] net::Response send(const net::Request& request, const net::BodySink& sink) override {
        auto path = request.url.substr(request.url.find('/', 8));
        path.resize(std::min(path.find('?'), path.size()));
        const auto text = reply_(path);
        net::Response response;
        response.status = text.empty() ? 403 : 200;
        response.headers.emplace_back("content-type", "application/json");
        const auto body = text.empty() ? std::string(R"({"kind": "Status", "code": 403, "reason": "Forbidden"})")
                                       : value::to_json(rollout_documents(text).front().root);
        static_cast<void>(sink(response, body));
        return response;
    }

private:
    const std::function<std::string(const std::string&)>& reply_;
};

class RolloutRandom final : public sys::Random {
public:
    void fill(std::span<std::uint8_t> bytes) override {
        for (auto& byte : bytes) byte = 1;
    }
};

/// calico-node is changed by its operator a while after the set was applied, and rolled out a while later.
struct RolloutServer {
    IdleClock clock;
    RolloutRandom random;
    std::chrono::milliseconds changed_at{5s}, complete_at{60s};
    std::string group = "operator.tigera.io", installation = "{metadata: {name: default, generation: 2}}";
    bool may_list = true, may_list_deployments = true, has_rights = true;
    std::string spec = "{}";
    std::int64_t began = 0;
    int lists = 0;
    std::chrono::seconds limit{900};
    std::vector<std::string> said;
    std::function<std::string(const std::string&)> reply = [this](const std::string& path) { return answer(path); };
    kube::Connection connection = [] {
        kube::Connection made;
        made.server = "http://127.0.0.1:1";
        return made;
    }();
    kube::Client client{connection,
                        kube::Seams{[this] { return std::make_unique<RolloutHttp>(reply); }, clock, random}};

    std::string answer(const std::string& path) {
        const auto now = clock.monotonic();
        if (path == "/apis/operator.tigera.io/v1/installations/default") return installation;
        if (path == "/apis/apps/v1")
            return "{kind: APIResourceList, resources: [{name: daemonsets, kind: DaemonSet, namespaced: true}, {name: "
                   "deployments, kind: Deployment, namespaced: true}]}";
        if (path.ends_with("/selfsubjectaccessreviews"))
            return fmt::format("{{kind: SelfSubjectAccessReview, status: {{allowed: {}}}}}", has_rights);
        if (!may_list) return {};
        if (path == "/apis/apps/v1/deployments" && !may_list_deployments) return {};
        if (path == "/apis/apps/v1/deployments") return "{kind: DeploymentList, apiVersion: apps/v1, items: []}";
        ++lists;
        const int generation = now < changed_at ? 1 : 2;
        // Its controller sees a change after two seconds.
        const int observed = now < changed_at + 2s ? 1 : 2;
        return fmt::format("{{kind: DaemonSetList, apiVersion: apps/v1, items: [{{metadata: {{name: calico-node, "
                           "namespace: calico-system, generation: {}, ownerReferences: [{{apiVersion: {}/v1, kind: "
                           "Installation, name: default}}]}}, spec: {}, status: {{observedGeneration: {}, "
                           "desiredNumberScheduled: 2, updatedNumberScheduled: {}, numberAvailable: 2}}}}]}}",
                           generation, group, spec, observed, now < changed_at || now >= complete_at ? 2 : 1);
    }

    std::string await(const std::string& set, const OperatorRollouts::Applied& applied = {}) {
        const Deadline deadline(clock, limit);
        return OperatorRollouts(client, clock)
            .await(rollout_documents(set), applied, began, deadline, [] { return false; },
                   [this](const std::string& text) { said.push_back(text); });
    }
};

constexpr const char* k_definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: "
                                     "{name: installations.operator.tigera.io}, spec: {group: operator.tigera.io}}";
/// What is said where the group is that of k_definition.
const std::string k_unowned = "workloads without an ownerReference to operator.tigera.io were not awaited";
const std::string k_rolled_out =
    "operators have nothing more to roll out: DaemonSet calico-system/calico-node; " + k_unowned;
constexpr const char* k_installation = "{apiVersion: operator.tigera.io/v1, kind: Installation, metadata: {name: a}}";
const OperatorRollouts::Applied k_applied = {
    {{"operator.tigera.io", "v1", "installations", "Installation", kube::Scope::cluster}, {"", "default"}}};

value::Node custom(const std::string& status) {
    return rollout_documents("{kind: Installation, metadata: {name: default, generation: 2}, status: " + status + "}")
        .front()
        .root;
}

TEST_CASE("a rollout that an operator begins after the manifests are applied is waited for") {
    for (const auto* set : {k_definition, k_installation}) {
        CAPTURE(set);
        RolloutServer server;
        CHECK(server.await(set) == k_rolled_out);
        CHECK(server.clock.monotonic() >= server.complete_at);
        REQUIRE_FALSE(server.said.empty());
        CHECK(server.said.front().starts_with(
            "waits: DaemonSet calico-system/calico-node: 1 of 2 Pods are updated and available; "));
    }
}

TEST_CASE("an operator that changes nothing is given half a minute") {
    RolloutServer server;
    server.changed_at = server.complete_at = 0s;
    server.clock.sleep_for(10s);
    static_cast<void>(server.await(k_definition));
    REQUIRE_FALSE(server.said.empty());
    CHECK(server.said.front().starts_with("waits: operators are watched for 30 s after the last change of a workload"));
    CHECK(server.clock.monotonic() >= 40s);
    CHECK(server.clock.monotonic() < 60s);
    // All workloads of the cluster are not listed with every poll.
    CHECK(server.lists <= 5);
}

TEST_CASE("the half minute goes beyond the time limit") {
    RolloutServer server;
    server.changed_at = server.complete_at = 0s;
    server.clock.sleep_for(10s);
    server.limit = 20s;
    CHECK(server.await(k_definition) == k_rolled_out);
    CHECK(server.clock.monotonic() >= 40s);
    // Changed again in its last seconds.
    RolloutServer late;
    late.limit = 20s;
    late.changed_at = late.complete_at = 25s;
    CHECK(late.await(k_definition) ==
          "operators have changed workloads in the last 30 s before the time limit; " + k_unowned);
}

TEST_CASE("a rollout that goes on only by hand is said, not waited for") {
    for (const auto* spec : {"{updateStrategy: {type: OnDelete}}", "{paused: true}"}) {
        CAPTURE(spec);
        RolloutServer server;
        server.changed_at = 0s;
        server.complete_at = 10000s;
        server.spec = spec;
        server.clock.sleep_for(10s);
        CHECK(server.await(k_definition).starts_with("DaemonSet calico-system/calico-node: 1 of 2 Pods are updated"));
        CHECK(server.clock.monotonic() < 60s);
    }
}

TEST_CASE("what is against a custom resource since before the upgrade is said, not waited for") {
    RolloutServer server;
    server.changed_at = server.complete_at = 0s;
    server.clock.sleep_for(10s);
    server.installation = "{kind: Installation, metadata: {name: default, generation: 2}, status: {conditions: [{type: "
                          "Ready, status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}";
    server.began = 1767229200;  // an hour later
    CHECK(server.await(k_installation, k_applied) ==
          "Installation default: Ready is False since before the upgrade; " + k_unowned);
    // A clock of the cluster that is behind may make it look so.
    server.began = 1767225660;
    CHECK_THROWS_AS(static_cast<void>(server.await(k_installation, k_applied)), Error);
}

TEST_CASE("rights are needed where a set brings kinds of its own") {
    CHECK(OperatorRollouts::rules(rollout_documents("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}"))
              .empty());
    const std::vector<kube::Rule> expected{{"list", "apps", "daemonsets", "", "", ""},
                                           {"list", "apps", "deployments", "", "", ""}};
    for (const auto* set : {k_definition, k_installation})
        CHECK(OperatorRollouts::rules(rollout_documents(set)) == expected);
}

TEST_CASE("rights that are missing are said before anything is applied") {
    RolloutServer server;
    OperatorRollouts::require_rights(server.client, rollout_documents("{apiVersion: v1, kind: ConfigMap}"));
    OperatorRollouts::require_rights(server.client, rollout_documents(k_definition));
    server.has_rights = false;
    OperatorRollouts::require_rights(server.client, rollout_documents("{apiVersion: v1, kind: ConfigMap}"));
    CHECK_THROWS_AS(OperatorRollouts::require_rights(server.client, rollout_documents(k_definition)), Error);
}

TEST_CASE("manifests without an operator are not waited for") {
    RolloutServer server;
    CHECK(server.await("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: kube-flannel}}") == "");
    CHECK(server.await("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}") == "");
    server.group = "other.io";
    CHECK(server.await(k_definition) == k_unowned);
    CHECK(server.clock.monotonic() == 0s);
}

TEST_CASE("a custom resource that is Degraded is what the time limit names") {
    RolloutServer server;
    server.installation = "{kind: Installation, metadata: {name: default, generation: 2}, status: {conditions: [{type: "
                          "Degraded, status: 'True', message: no such image}]}}";
    try {
        static_cast<void>(server.await(k_installation, k_applied));
        FAIL("it was waited for");
    } catch (const Error& error) {
        CHECK(error.code() == "not-verified");
        CHECK(std::string(error.what()).find("Installation default: Degraded is True: no such image after the time "
                                             "limit") != std::string::npos);
    }
}

TEST_CASE("a generation that an operator does not observe is named with its object and what to look at") {
    RolloutServer server;
    server.installation = "{kind: Installation, metadata: {name: default, generation: 2}, status: {observedGeneration: "
                          "1}}";
    const auto error_of = [&](const OperatorRollouts::Applied& applied) {
        try {
            static_cast<void>(server.await(k_installation, applied));
        } catch (const Error& error) {
            return error.message() + "\n" + error.hint();
        }
        return std::string();
    };
    CHECK(error_of(k_applied) ==
          "Installation default: status.observedGeneration is 1, metadata.generation is 2 after the time limit\n"
          "kubectl describe installations.operator.tigera.io default; see whether its operator runs, and its log; take "
          "the object out of --networking if it is to stay so, or if its operator does not keep observedGeneration");
    server.installation = "{kind: Installation, metadata: {name: default, generation: 2}, status: {conditions: [{type: "
                          "Degraded, status: 'True'}]}}";
    CHECK(error_of(k_applied).find("\nkubectl describe installations.operator.tigera.io default; ") !=
          std::string::npos);
}

TEST_CASE("a user who may not list workloads is told so") {
    RolloutServer server;
    server.may_list = false;
    CHECK(server.await(k_definition) ==
          "rollouts of operators are not known: this user may not list DaemonSets and Deployments; " + k_unowned);
    // What custom resources say is watched.
    CHECK(server.await(k_installation, k_applied).starts_with("rollouts of operators are not known"));
    CHECK(server.clock.monotonic() >= 30s);
    // One kind is none of the other.
    RolloutServer half;
    half.may_list_deployments = false;
    CHECK(half.await(k_definition) ==
          "rollouts of operators are not known: this user may not list Deployments; " + k_unowned);
    CHECK(half.clock.monotonic() >= half.complete_at);
}

TEST_CASE("what the status of a custom resource says against it") {
    CHECK(custom_problem(custom("{}")) == "");
    CHECK(custom_problem(custom("{observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}")) == "");
    CHECK(custom_problem(custom("{observedGeneration: 1}")) ==
          "Installation default: status.observedGeneration is 1, metadata.generation is 2");
    CHECK(custom_problem(custom("{conditions: [{type: Ready, status: 'False'}]}")) ==
          "Installation default: Ready is False");
    // Of what it was before.
    for (const auto* status : {"True", "False"}) {
        const auto old = fmt::format("{{conditions: [{{type: Ready, status: '{}', observedGeneration: 1}}]}}", status);
        CHECK(custom_problem(custom(old)) ==
              "Installation default: observedGeneration of Ready is 1, metadata.generation is 2");
    }
    CHECK(custom_problem(custom("{conditions: [{type: Degraded, status: 'True', observedGeneration: 1}]}")) == "");
    // Of another object, as a status that an operator writes of its own resource.
    CHECK(custom_problem(custom("{conditions: [{type: Available, status: 'True', observedGeneration: 7}]}")) == "");
    // As a Deployment has it this is what is right.
    CHECK(custom_problem(custom("{conditions: [{type: Progressing, status: 'True'}]}")) == "");
    CHECK(custom_problem(custom("{conditions: [{type: Progressing, status: 'True'}, {type: Degraded, status: "
                                "'False'}]}")) == "Installation default: Progressing is True");
    CHECK(custom_problem(custom("{conditions: text}")) == "");
}

}  // namespace
}  // namespace kmm::drive::test
