// SPDX-License-Identifier: Apache-2.0
// What gates and removals make of an API server that has more, less or other objects than the recipe brought.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "unit/upgrade/drive_recipe/memory_api.hpp"
#include "upgrade/drive_recipe/gates.hpp"
#include "upgrade/drive_recipe/own_objects.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace rc = kmm::upgrade::recipe;

namespace {

constexpr const char* k_fixed = "/apis/batch/v1/namespaces/demo/jobs/fixed";  ///< cannot be changed

/// Answers a request with what its method and path are in `replies` for; anything else does not exist. What is deleted
/// is gone.
class ScriptedHttp final : public net::HttpClient {
public:
    ScriptedHttp(std::map<std::string, std::string>& replies, std::vector<std::string>& requests,
                 const std::string& forbidden)
        : replies_(replies), requests_(requests), forbidden_(forbidden) {}
    [[nodiscard]] net::Response send(const net::Request& request, const net::BodySink& sink) override {
        auto path = request.url.substr(request.url.find('/', 8));
        requests_.push_back(request.method + " " + path);
        path.resize(std::min(path.find('?'), path.size()));
        const auto found = replies_.find(path);
        net::Response response;
        response.status = path == forbidden_ ? 403 : found == replies_.end() ? 404 : 200;
        const bool is_fixed = request.method == "PATCH" && found != replies_.end() && path == k_fixed;
        if (is_fixed) response.status = 422;
        if (request.method == "PATCH" && found == replies_.end()) response.status = 201;
        response.headers.emplace_back("content-type", "application/json");
        auto body = fmt::format(R"({{"kind": "Status", "apiVersion": "v1", "code": {}, "reason": "{}"}})",
                                response.status, response.status == 403 ? "Forbidden" : "NotFound");
        if (is_fixed) body = R"({"kind": "Status", "code": 422, "message": "spec.template: field is immutable"})";
        else if (found != replies_.end())
            body = path.ends_with("/log") ? found->second : value::to_json(json(found->second));
        if (request.method == "DELETE" && found != replies_.end()) replies_.erase(found);
        static_cast<void>(sink(response, body));
        return response;
    }

private:
    std::map<std::string, std::string>& replies_;
    std::vector<std::string>& requests_;
    const std::string& forbidden_;
};

struct Server {
    std::map<std::string, std::string> replies;
    std::vector<std::string> requests, said;
    std::string forbidden;  ///< the path that the account may not read
    IdleClock clock;
    FixedRandom random;
    kube::Connection connection = [] {
        kube::Connection made;
        made.server = "http://127.0.0.1:1";
        return made;
    }();
    kube::Client client{
        connection,
        kube::Seams{[this] { return std::make_unique<ScriptedHttp>(replies, requests, forbidden); }, clock, random}};
    Objects objects{client};
    Gates gates{client, objects};
    OwnObjects own{client, objects, clock, [] { return false; },
                   [this](const std::string& text) { said.push_back(text); }, "demo", {}};

    Server() {
        replies["/apis/apps/v1"] =
            "{kind: APIResourceList, resources: [{name: daemonsets, kind: DaemonSet, namespaced: true}, "
            "{name: deployments, kind: Deployment, namespaced: true}]}";
    }
    Removed remove(const Node& object) {
        return own.remove({{"", object}}, Deadline(clock, std::chrono::milliseconds(10'000)));
    }
    [[nodiscard]] bool was_asked(const std::string& request) const {
        return std::any_of(requests.begin(), requests.end(),
                           [&](const std::string& each) { return each.starts_with(request); });
    }
};

constexpr const char* k_gated = "annotations: {specialresource.openshift.io/wait: 'true'}";

Node deployment(const std::string& selector) {
    return json("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: demo, uid: u1, annotations: "
                "{specialresource.openshift.io/wait-for-logs: loaded}}, spec: {replicas: 1, selector: " +
                selector + "}, status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}");
}

std::string pod(const std::string& name, const std::string& phase) {
    return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: demo}, status: {phase: " + phase +
           "}}";
}

}  // namespace

TEST_SUITE("upgrade::drive_recipe live objects") {

TEST_CASE("logs are those of the Pods that the whole selector selects") {
    Server server;
    const auto object = deployment(
        "{matchLabels: {app: d}, matchExpressions: [{key: tier, operator: In, values: [a, b]}, "
        "{key: old, operator: DoesNotExist}, {key: zone, operator: Exists}, {key: x, operator: NotIn, values: [z]}]}");
    server.replies["/apis/apps/v1/namespaces/demo/deployments/d"] = value::to_json(object);
    server.replies["/api/v1/namespaces/demo/pods"] = "{kind: PodList, items: [" + pod("a", "Running") + "]}";
    server.replies["/api/v1/namespaces/demo/pods/a/log"] = "modules loaded";
    CHECK(server.gates.problem({"", object}) == "");
    const auto asked = std::find_if(server.requests.begin(), server.requests.end(), [](const std::string& each) {
        return each.starts_with("GET /api/v1/namespaces/demo/pods?");
    });
    REQUIRE(asked != server.requests.end());
    std::string text;
    for (std::size_t i = 0; i < asked->size(); ++i) {
        if ((*asked)[i] != '%') text += (*asked)[i];
        else text += static_cast<char>(std::stoi(asked->substr(i + 1, 2), nullptr, 16)), i += 2;
    }
    CAPTURE(text);
    CHECK(text.find("labelSelector=app=d,tier in (a,b),!old,zone,x notin (z)") != std::string::npos);
}

TEST_CASE("an evicted Pod that nobody has deleted is not waited for") {
    Server server;
    const auto object = deployment("{matchLabels: {app: d}}");
    server.replies["/apis/apps/v1/namespaces/demo/deployments/d"] = value::to_json(object);
    server.replies["/api/v1/namespaces/demo/pods"] =
        "{kind: PodList, items: [" + pod("a", "Failed") + ", " + pod("b", "Running") + "]}";
    server.replies["/api/v1/namespaces/demo/pods/b/log"] = "modules loaded";
    CHECK(server.gates.problem({"", object}) == "");
}

TEST_CASE("a quota that refuses Pods is named") {
    Server server;
    const auto object = json(std::string("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: demo, "
                                         "uid: u1, ") +
                             k_gated +
                             "}, status: {desiredNumberScheduled: 2, currentNumberScheduled: 1, "
                             "updatedNumberScheduled: 1, numberAvailable: 1}}");
    server.replies["/apis/apps/v1/namespaces/demo/daemonsets/d"] = value::to_json(object);
    const std::string lacks = "DaemonSet demo/d: 1 of 2 Pods are updated and available";
    CHECK(server.gates.problem({"", object}) == lacks);
    server.replies["/api/v1/namespaces/demo/events"] =
        "{kind: EventList, items: [{kind: Event, lastTimestamp: '2026-01-01T00:00:02Z', message: 'exceeded quota: q'}, "
        "{kind: Event, lastTimestamp: '2026-01-01T00:00:01Z', message: older}]}";
    CHECK(server.gates.problem({"", object}) == lacks + "; Pods are refused: exceeded quota: q");
    CHECK(server.was_asked("GET /api/v1/namespaces/demo/events?"));

    const auto other = json(std::string("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: demo, "
                                        "uid: u1, ") +
                            k_gated +
                            "}, spec: {replicas: 1}, status: {replicas: 0, conditions: [{type: ReplicaFailure, status: "
                            "'True', message: 'exceeded quota: q'}]}}");
    server.replies["/apis/apps/v1/namespaces/demo/deployments/d"] = value::to_json(other);
    CHECK(server.gates.problem({"", other}) ==
          "Deployment demo/d: 0 of 1 Pods are updated and available; Pods are refused: exceeded quota: q");
}

TEST_CASE("a claim waits for its volume, unless its class waits for a Pod") {
    Server server;
    const auto claim = json(std::string("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: "
                                        "demo, ") +
                            k_gated + "}, spec: {storageClassName: fast}, status: {phase: Pending}}");
    server.replies["/api/v1"] =
        "{resources: [{name: persistentvolumeclaims, kind: PersistentVolumeClaim, namespaced: true}]}";
    server.replies["/api/v1/namespaces/demo/persistentvolumeclaims/c"] = value::to_json(claim);
    const std::string pending = "PersistentVolumeClaim demo/c is in phase Pending, expected Bound";
    const std::string storage = "/apis/storage.k8s.io/v1/storageclasses/fast";
    CHECK(server.gates.problem({"", claim}) == pending);
    server.replies[storage] = "{metadata: {name: fast}, volumeBindingMode: Immediate}";
    CHECK(server.gates.problem({"", claim}) == pending);
    server.replies[storage] = "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer}";
    CHECK(server.gates.problem({"", claim}).empty());
}

TEST_CASE("a Job that was complete, and that Kubernetes has removed since, is still complete") {
    Server server;
    const auto job = json(std::string("{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: demo, ") +
                          k_gated + "}, spec: {ttlSecondsAfterFinished: 0}}");
    server.replies["/apis/batch/v1"] = "{resources: [{name: jobs, kind: Job, namespaced: true}]}";
    CHECK(server.gates.problem({"", job}) ==
          "Job demo/j does not exist (ttlSecondsAfterFinished 0: removed before its end was seen, or by someone; "
          "leave it out or make it longer)");
    auto done = job;
    done.set("status", json("{conditions: [{type: Complete, status: 'True'}]}"));
    server.replies["/apis/batch/v1/namespaces/demo/jobs/j"] = value::to_json(done);
    CHECK(server.gates.problem({"", job}).empty());
    server.replies.erase("/apis/batch/v1/namespaces/demo/jobs/j");
    CHECK(server.gates.problem({"", job}).empty());
}

TEST_CASE("a definition whose first version is not served is not deleted with objects of others") {
    Server server;
    const auto definition = [](const char* versions) {
        return json(std::string("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: "
                                "{name: parts.x.test, uid: u1, labels: {kmmtools.dev/recipe: demo}}, spec: {group: "
                                "x.test, scope: Namespaced, names: {plural: parts, kind: Part}, versions: ") +
                    versions + "}}");
    };
    const std::string path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/parts.x.test";
    server.replies["/apis/apiextensions.k8s.io/v1"] =
        "{resources: [{name: customresourcedefinitions, kind: CustomResourceDefinition, namespaced: false}]}";
    server.replies["/apis/x.test/v1"] = "{resources: [{name: parts, kind: Part, namespaced: true}]}";
    server.replies["/apis/x.test/v1/parts"] =
        "{kind: PartList, items: [{kind: Part, metadata: {name: theirs, namespace: other}}]}";
    const auto refused = [&](const Node& object) {
        server.replies[path] = value::to_json(object);
        try {
            static_cast<void>(server.remove(object));
        } catch (const Error& error) { return error.code() + ": " + error.message(); }
        return std::string();
    };
    CHECK(refused(definition("[{name: v1alpha1, served: false}, {name: v1, served: true}]")) ==
          "definition-in-use: CustomResourceDefinition parts.x.test has objects that would be deleted with it: Part "
          "other/theirs");
    CHECK(refused(definition("[{name: v1alpha1, served: false}]")) ==
          "definition-in-use: CustomResourceDefinition parts.x.test serves no version: its objects cannot be seen");
    CHECK_FALSE(server.was_asked("DELETE"));
}

TEST_CASE("a Namespace is not deleted with configuration, idle workloads or custom resources of others") {
    Server server;
    const auto space = json("{apiVersion: v1, kind: Namespace, metadata: {name: base, uid: u1, labels: "
                            "{kmmtools.dev/recipe: demo}}}");
    server.replies["/api/v1"] =
        "{resources: [{name: namespaces, kind: Namespace, namespaced: false}, {name: configmaps, kind: ConfigMap, "
        "namespaced: true}, {name: secrets, kind: Secret, namespaced: true}]}";
    server.replies["/apis/apiextensions.k8s.io/v1"] =
        "{resources: [{name: customresourcedefinitions, kind: CustomResourceDefinition, namespaced: false}]}";
    server.replies["/apis/apiextensions.k8s.io/v1/customresourcedefinitions"] =
        "{kind: CustomResourceDefinitionList, items: [{metadata: {name: parts.x.test}, spec: {group: x.test, scope: "
        "Namespaced, names: {plural: parts, kind: Part}, versions: [{name: v1, served: true, schema: {}}]}}, "
        "{metadata: {name: hiddens.y.test}, spec: {group: y.test, scope: Namespaced, names: {plural: hiddens, kind: "
        "Hidden}, versions: [{name: v1, served: true}]}}]}";
    server.replies["/apis/x.test/v1"] = "{resources: [{name: parts, kind: Part, namespaced: true}]}";
    server.replies["/apis/y.test/v1"] = "{resources: [{name: hiddens, kind: Hidden, namespaced: true}]}";
    const auto list = [&](const std::string& path, const std::string& items) {
        server.replies[path] = "{kind: List, items: [" + items + "]}";
    };
    const auto refused = [&] {
        server.replies["/api/v1/namespaces/base"] = value::to_json(space);
        try {
            static_cast<void>(server.remove(space));
        } catch (const Error& error) { return error.code() + ": " + error.message(); }
        return std::string();
    };
    const std::string owned = "ownerReferences: [{kind: Build, name: b, uid: u9}]";
    const std::string maps = "{metadata: {name: kube-root-ca.crt}}, {metadata: {name: openshift-service-ca.crt}}, "
                             "{metadata: {name: istio-ca-root-cert}}, {metadata: {name: b-ca, " + owned + "}}, "
                             "{metadata: {name: lock, annotations: {control-plane.alpha.kubernetes.io/leader: '{}'}}}, "
                             "{metadata: {name: going, deletionTimestamp: '2026-01-01T00:00:00Z'}}";
    const std::string secrets = "{metadata: {name: default-token-x, annotations: {kubernetes.io/service-account.name: "
                                "default}}}, {metadata: {name: builder-dockercfg-x, annotations: "
                                "{openshift.io/internal-registry-auth-token.service-account: builder}}}";
    const std::string copied = "{metadata: {name: operator.v1, labels: {olm.copiedFrom: operators}}}";
    const std::string config = "/api/v1/namespaces/base/configmaps", secret = "/api/v1/namespaces/base/secrets",
                      daemon_sets = "/apis/apps/v1/namespaces/base/daemonsets",
                      deployments = "/apis/apps/v1/namespaces/base/deployments",
                      parts = "/apis/x.test/v1/namespaces/base/parts";
    list(config, maps + ", {metadata: {name: settings}}");
    list(secret, secrets + ", {metadata: {name: key}}");
    list(daemon_sets, "");
    list(deployments, "{metadata: {name: idle}}");
    list(parts, copied + ", {metadata: {name: p}}");
    server.forbidden = "/apis/y.test/v1/namespaces/base/hiddens";
    CHECK(refused() == "namespace-in-use: Namespace base holds objects of others: Deployment base/idle, ConfigMap "
                       "base/settings, Secret base/key, Part base/p");
    CHECK_FALSE(server.was_asked("DELETE"));
    CHECK(server.said.empty());
    try {
        static_cast<void>(server.remove(space));
    } catch (const Error& error) {
        CHECK(error.hint() == "move or delete them, or let the Namespace stay: kubectl annotate namespace base "
                              "helm.sh/resource-policy=keep; then kmm-upgrade resume");
    }
    list(config, maps);
    list(secret, secrets);
    list(deployments, "");
    list(parts, copied);
    CHECK(refused().empty());
    CHECK(server.was_asked("DELETE"));
    CHECK(server.said == std::vector<std::string>{"Namespace base is deleted without a look at kinds that the account "
                                                  "may not list: hiddens.y.test"});
}

TEST_CASE("a Namespace that was deleted and created by someone else stays") {
    Server server;
    const auto space = json("{apiVersion: v1, kind: Namespace, metadata: {name: base, uid: u1}}");
    server.replies["/api/v1"] = "{resources: [{name: namespaces, kind: Namespace, namespaced: false}]}";
    server.replies["/api/v1/namespaces/base"] = value::to_json(space);
    CHECK(server.remove(space).stays ==
          std::vector<std::string>{"Namespace base: no label kmmtools.dev/recipe: it was there before, or someone "
                                   "removed the label"});
}

TEST_CASE("a Namespace is not deleted with releases of recipes or with drivers") {
    Server server;
    const auto space = json("{apiVersion: v1, kind: Namespace, metadata: {name: base, uid: u1, labels: "
                            "{kmmtools.dev/recipe: demo}}}");
    const auto refused = [&] {
        server.replies["/api/v1/namespaces/base"] = value::to_json(space);
        try {
            static_cast<void>(server.remove(space));
        } catch (const Error& error) { return error.code() + ": " + error.message(); }
        return std::string();
    };
    for (const auto* kind : {"pods", "persistentvolumeclaims", "secrets"})
        server.replies[std::string("/api/v1/namespaces/base/") + kind] = "{kind: List, items: []}";
    for (const auto* kind : {"deployments", "daemonsets"})
        server.replies[std::string("/apis/apps/v1/namespaces/base/") + kind] = "{kind: List, items: []}";
    server.replies["/api/v1"] =
        "{resources: [{name: namespaces, kind: Namespace, namespaced: false}, {name: pods, kind: Pod, namespaced: "
        "true}, {name: persistentvolumeclaims, kind: PersistentVolumeClaim, namespaced: true}, {name: secrets, kind: "
        "Secret, namespaced: true}]}";
    server.replies["/apis/kmm.sigs.x-k8s.io/v1beta1"] =
        "{resources: [{name: modules, kind: Module, namespaced: true}]}";
    server.replies["/apis/kmm.sigs.x-k8s.io/v1beta1/namespaces/base/modules"] =
        "{kind: ModuleList, items: [{kind: Module, metadata: {name: nic, namespace: base}}]}";
    CHECK(refused() == "namespace-in-use: Namespace base holds objects of others: Module base/nic");
    server.replies.erase("/apis/kmm.sigs.x-k8s.io/v1beta1/namespaces/base/modules");
    server.replies.erase("/apis/kmm.sigs.x-k8s.io/v1beta1");
    server.client.forget_served();
    server.replies["/api/v1/namespaces/base/secrets"] =
        "{kind: SecretList, items: [{kind: Secret, metadata: {name: kmm-upgrade.recipe.other.v1, namespace: base}}]}";
    CHECK(refused() ==
          "namespace-in-use: Namespace base holds objects of others: Secret base/kmm-upgrade.recipe.other.v1");
    CHECK_FALSE(server.was_asked("DELETE"));
    server.replies["/api/v1/namespaces/base/secrets"] = "{kind: SecretList, items: []}";
    CHECK(refused().empty());
    CHECK(server.was_asked("DELETE"));
}

namespace {

const kube::Resource k_jobs{"batch", "v1", "jobs", "Job", kube::Scope::namespaced};

/// At k_fixed, of the recipe demo.
value::Node fixed_job(const std::string& annotations, const std::string& status) {
    return json("{apiVersion: batch/v1, kind: Job, metadata: {name: fixed, namespace: demo, uid: u1, labels: "
                "{kmmtools.dev/recipe: demo}, annotations: {" +
                annotations + "}}, status: {" + status + "}}");
}

}  // namespace

TEST_CASE("a hook that cannot be changed is deleted and created again, other Jobs are refused") {
    Server server;
    const auto job = [](const std::string& annotations) { return fixed_job(annotations, ""); };
    std::string wait;
    const auto applied = [&](const std::string& annotations, kube::DryRun dry) {
        server.replies[k_fixed] = value::to_json(job(annotations));
        server.requests.clear();
        try {
            return std::string(to_string(server.own.apply(k_jobs, job(annotations), kube::Force::no, dry, wait)));
        } catch (const Error& error) { return error.code(); }
    };
    CHECK(applied("", kube::DryRun::no) == "rejected");
    CHECK(applied("helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-failed", kube::DryRun::no) ==
          "rejected");
    CHECK_FALSE(server.was_asked("DELETE"));
    CHECK(applied("helm.sh/hook: pre-install", kube::DryRun::all) == "change");
    CHECK(wait.empty());
    CHECK_FALSE(server.was_asked("DELETE"));
    CHECK(applied("helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: hook-succeeded",
                  kube::DryRun::no) == "unchanged");
    CHECK(wait == "Job demo/fixed, a hook, is deleted and created again");
    CHECK(server.was_asked(std::string("DELETE ") + k_fixed));
    CHECK(server.own.apply(k_jobs, job("helm.sh/hook: pre-install"), kube::Force::no, kube::DryRun::no, wait) ==
          Change::create);
    CHECK(wait.empty());
}

TEST_CASE("a hook runs once for each rollout, as Helm runs it") {
    Server server;
    const std::string path = "/apis/batch/v1/namespaces/demo/jobs/move";
    const auto job = [](const std::string& hook, const std::string& meta) {
        return json("{apiVersion: batch/v1, kind: Job, metadata: {name: move, namespace: demo, uid: u1, "
                    "annotations: {" +
                    hook + "}" + meta + "}, status: {conditions: [{type: Complete, status: 'True'}]}}");
    };
    const std::string ours = ", labels: {kmmtools.dev/recipe: demo}";
    const std::string both = "helm.sh/hook: 'pre-install, pre-upgrade'";
    std::string wait;
    // What becomes of a hook that is there: "again", or how it is applied.
    const auto applied = [&](const std::string& hook, const std::string& live, const std::string& meta,
                             const HookRun& run) {
        server.replies[path] = value::to_json(job(live, meta));
        server.requests.clear();
        try {
            const auto change = server.own.apply(k_jobs, job(hook, ""), kube::Force::no, kube::DryRun::no, wait, run);
            CHECK(wait.empty() != server.was_asked("DELETE " + path));
            return std::string(wait.empty() ? to_string(change) : "again");
        } catch (const Error& error) { return error.code() + ": " + error.message(); }
    };
    const HookRun upgrade{"run-b", true}, install{"run-b", false};
    const std::string before = ", kmmtools.dev/hook-run: run-a", now = ", kmmtools.dev/hook-run: run-b";
    CHECK(applied(both, both + before, ours, upgrade) == "again");
    CHECK(applied(both, both, ours, upgrade) == "again");
    CHECK(applied(both, both + now, ours, upgrade) == "unchanged");
    CHECK(applied(both, both + before, ours, install) == "again");
    CHECK(applied(both, both + before, ours, {}) == "unchanged");  // while a rollout is rolled back
    // Left by Helm.
    CHECK(applied(both, both, "", install) == "again");
    CHECK(applied(both, "", "", install) == "unchanged");
    CHECK(applied(both, both, ", labels: {kmmtools.dev/recipe: other}", install).starts_with("object-shared"));
    // Of an installation alone.
    const std::string first = "helm.sh/hook: post-install";
    CHECK(applied(first, first + before, ours, upgrade) == "unchanged");
    CHECK(applied(first, first + before, ours, install) == "again");
    const std::string kept = both + ", helm.sh/hook-delete-policy: hook-failed";
    CHECK(applied(kept, kept + before, ours, upgrade) ==
          "hook-exists: Job demo/move, a hook, is there from before, and its helm.sh/hook-delete-policy keeps it: it "
          "would not run again");
    CHECK(applied(kept, kept + now, ours, upgrade) == "unchanged");
    server.replies.erase(path);
    server.requests.clear();
    CHECK(server.own.apply(k_jobs, job(both, ""), kube::Force::no, kube::DryRun::no, wait, upgrade) == Change::create);
}

TEST_CASE("a hook of an installation alone is not run by an upgrade, whatever became of it") {
    Server server;
    const auto job = [](const std::string& status) { return fixed_job("helm.sh/hook: pre-install", status); };
    std::string wait;
    const auto applied = [&](const std::string& status, const HookRun& run) {
        server.replies[k_fixed] = value::to_json(job(status));
        const auto change = server.own.apply(k_jobs, job(""), kube::Force::no, kube::DryRun::no, wait, run);
        return std::string(wait.empty() ? to_string(change) : "again");
    };
    const std::string complete = "conditions: [{type: Complete, status: 'True'}]";
    CHECK(applied(complete, {"run-b", true}) == "unchanged");
    CHECK(applied("conditions: [{type: Failed, status: 'True'}]", {"run-b", true}) == "unchanged");
    CHECK(applied(complete, {"run-b", false}) == "again");
    server.replies.clear();
    server.requests.clear();
    CHECK(server.own.apply(k_jobs, job(""), kube::Force::no, kube::DryRun::no, wait, {"", true}) == Change::none);
    CHECK(server.requests.empty());
}

TEST_CASE("a hook that has failed is run again by the next try, unless its policy keeps it") {
    Server server;
    const std::string path = "/apis/batch/v1/namespaces/demo/jobs/move";
    std::string wait;
    const auto applied = [&](const std::string& policy, const std::string& condition) {
        const auto job = json(
            "{apiVersion: batch/v1, kind: Job, metadata: {name: move, namespace: demo, uid: u1, labels: "
            "{kmmtools.dev/recipe: demo}, annotations: {kmmtools.dev/hook-run: run-a, helm.sh/hook: pre-install" +
            policy + "}}, status: {conditions: [{type: " + condition + ", status: 'True'}]}}");
        server.replies[path] = value::to_json(job);
        const auto change = server.own.apply(k_jobs, job, kube::Force::no, kube::DryRun::no, wait, {"run-a", false});
        return std::string(wait.empty() ? to_string(change) : "again");
    };
    CHECK(applied("", "Failed") == "again");
    CHECK(applied(", helm.sh/hook-delete-policy: hook-failed", "Failed") == "again");
    CHECK(applied(", helm.sh/hook-delete-policy: hook-succeeded", "Failed") == "unchanged");
    CHECK(applied("", "Complete") == "unchanged");
    CHECK(applied("", "Suspended") == "unchanged");
}

TEST_CASE("an object is not obsolete that the release has in another namespace or group") {
    Server server;
    server.replies["/apis/x.test/v1"] = "{resources: [{name: roles, kind: Role, namespaced: false}]}";
    server.replies["/apis/y.test/v1"] =
        "{resources: [{name: roles, kind: Role, namespaced: false}, {name: parts, kind: Part, namespaced: true}]}";
    for (const auto* group : {"x.test", "y.test"})
        server.replies[fmt::format("/apis/{}/v1/roles/a", group)] = "{metadata: {name: a, uid: u1}}";
    server.replies["/apis/y.test/v1/namespaces/b/parts/a"] = "{metadata: {name: a, uid: u2}}";
    server.replies["/apis/y.test/v1/namespaces/c/parts/a"] = "{metadata: {name: a, uid: u3}}";
    const auto object = [](const std::string& group, const std::string& kind, const std::string& space) {
        return rc::ReleaseObject{"", json("{apiVersion: " + group + "/v1, kind: " + kind +
                                          ", metadata: {name: a, namespace: " + space + "}}")};
    };
    rc::Release stays;
    stays.kept = {object("x.test", "Role", "c"), object("y.test", "Part", "c")};
    std::vector objects{object("x.test", "Role", "b"), object("y.test", "Role", "b"), object("y.test", "Part", "b")};
    server.own.leave_those_of(stays, objects);
    REQUIRE(objects.size() == 1);
    CHECK(object_text(objects.front().object) == "Part b/a");
}

TEST_CASE("an object whose version the API server serves no more is removed in another version, and not forgotten") {
    Server server;
    const auto object = json("{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: c, namespace: demo}}");
    server.replies["/apis/batch"] = "{kind: APIGroup, name: batch, versions: [{groupVersion: batch/v1, version: v1}]}";
    server.replies["/apis/batch/v1"] = "{resources: [{name: cronjobs, kind: CronJob, namespaced: true}]}";
    const std::string live =
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c, namespace: demo, uid: u1, labels: "
        "{kmmtools.dev/recipe: demo}}}";
    server.replies["/apis/batch/v1/namespaces/demo/cronjobs/c"] = live;
    server.replies["/apis/batch/v1/cronjobs"] = "{kind: CronJobList, items: [" + live + "]}";
    rc::Release release;
    release.states.push_back({"demo/1000", "demo", "", {}, {{"", object}}});
    CHECK(server.own.labelled(release) == std::vector<std::string>{"CronJob demo/c"});
    CHECK(server.remove(object).count == 1);
    CHECK(server.was_asked("DELETE /apis/batch/v1/namespaces/demo/cronjobs/c"));
}

}
