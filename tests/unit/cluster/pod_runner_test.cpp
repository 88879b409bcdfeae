// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "unit/cluster/pod_server.hpp"

using namespace kmm;
using namespace kmm::kube::test;
using namespace kmm::worker_pods;
using cluster::CallEnd;
using cluster::PodOutcome;
using cluster::PodRunner;
using cluster::WorkerCall;
using value::Node;

TEST_SUITE("cluster::unit") {

TEST_CASE("a worker Pod: what its status says of the worker") {
    struct Row {
        const char* status;
        const char* end;  ///< "" while it goes on
        int exit_code;
        const char* text;  ///< in the document's message or kind, or in the transport
    };
    const Row rows[] = {
        {"{}", "", 0, ""},
        {k_creating, "", 0, ""},
        {k_running, "", 0, ""},
        {k_done, "completed", 0, "WorkerResult"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":13,"message":"{\"kind\":\"Error\",\"message\":\"refused\"}"}}}]})",
         "completed", 13, "refused"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":2,"reason":"Error","message":"usage: nginx"}}}]})",
         "completed", 2, "usage: nginx"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]})",
         "completed", 137, "OOMKilled"},
        {R"({"phase":"Failed","reason":"Evicted","message":"low on memory","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":137,"reason":"Error"}}}]})",
         "unknown", 0, "the worker was killed: Evicted: low on memory"},
        {R"({"phase":"Failed","reason":"Evicted","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":137,"message":"{\"kind\":\"Error\",\"message\":\"in time\"}"}}}]})",
         "completed", 137, "in time"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":13,"message":"a line {\n{\"apiVersion\":\"kmmtools/v1\",\"kind\":\"Error\",\"message\":\"in a log\"}\nbye"}}}]})",
         "completed", 13, "in a log"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":137,"reason":"ContainerStatusUnknown"}}}]})",
         "unknown", 0, "killed"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":255,"reason":"Unknown"}}}]})",
         "unknown", 0, "killed"},
        {R"({"phase":"Failed","reason":"NodeShutdown","message":"Pod was terminated"})", "unknown", 0,
         "NodeShutdown: Pod was terminated"},
        {R"({"phase":"Failed","reason":"DeadlineExceeded"})", "unknown", 0, "DeadlineExceeded"},
        {R"({"phase":"Failed","reason":"OutOfcpu","message":"Node didn't have enough resource: cpu"})", "completed", 69,
         "was not started: OutOfcpu: Node didn't have enough resource: cpu"},
        {R"({"phase":"Failed","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":128,"reason":"StartError","message":"no such file"}}}]})",
         "completed", 69, "was not started: StartError: no such file"},
        {R"({"phase":"Pending","containerStatuses":[{"name":"worker","state":{"waiting":{"reason":"ErrImagePull","message":"not found"}}}]})",
         "", 0, ""},
        {R"({"phase":"Pending","containerStatuses":[{"name":"worker","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off: ErrImagePull: not found"}}}]})",
         "completed", 69, "was not started: ErrImagePull: not found"},
        {R"({"phase":"Pending","containerStatuses":[{"name":"worker","state":{"waiting":{"reason":"InvalidImageName"}}}]})",
         "completed", 69, "InvalidImageName"},
        {R"({"phase":"Pending","containerStatuses":[{"name":"other","state":{"waiting":{"reason":"InvalidImageName"}}}]})",
         "", 0, ""},
    };
    for (const auto& row : rows) {
        CAPTURE(row.status);
        Node pod = tree(R"({"metadata":{"namespace":"drivers","name":"p"}})");
        pod.set("status", tree(row.status));
        const auto reply = PodOutcome().take(pod);
        if (std::string(row.end).empty()) {
            CHECK_FALSE(reply);
            continue;
        }
        REQUIRE(reply);
        CHECK((reply->end == CallEnd::unknown) == (std::string(row.end) == "unknown"));
        CHECK(reply->end != CallEnd::unreachable);
        CHECK(reply->exit_code == row.exit_code);
        const std::string said = reply->document.get_string({"kind"}) + " " + reply->document.get_string({"message"}) +
                                 " " + reply->transport;
        CHECK_MESSAGE(said.find(row.text) != std::string::npos, said);
    }
}

TEST_CASE("a worker Pod: the first failed pull tells why, however the back-off puts it") {
    const auto pod_of = [](const char* reason, const char* message) {
        Node pod = tree(R"({"metadata":{"namespace":"drivers","name":"p"},"status":{"phase":"Pending"}})");
        const Node waiting = Node::mapping({{"waiting", Node::mapping({{"reason", reason}, {"message", message}})}});
        pod.find("status")->set("containerStatuses",
                                Node::sequence({Node::mapping({{"name", "worker"}, {"state", waiting}})}));
        return pod;
    };
    PodOutcome outcome;
    CHECK_FALSE(outcome.take(pod_of("ErrImagePull", "unauthorized")));
    const auto reply = outcome.take(pod_of("ImagePullBackOff", "Back-off pulling image"));
    REQUIRE(reply);
    CHECK(reply->document.get_string({"code"}) == "worker-not-started");
    CHECK(reply->document.get_string({"message"}) ==
          "worker Pod drivers/p was not started: ErrImagePull: unauthorized");
}

TEST_CASE("worker Pods: one Pod a call, its result from the termination message, deleted by its uid") {
    PodServer server({k_creating, k_running, k_done});
    auto runner = server.runner();
    const auto reply = runner.run(load_call());
    CHECK(reply.end == CallEnd::completed);
    CHECK(reply.exit_code == 0);
    CHECK(reply.document.get_string({"outcome"}) == "loaded");
    const Node pod = tree(server.body_of("POST"));
    const std::string name = pod.get_string({"metadata", "name"});
    CHECK(server.changes() == std::vector<std::string>{"POST " + k_pods, "DELETE " + k_pods + "/" + name});
    CHECK(tree(server.body_of("DELETE")).get_string({"preconditions", "uid"}) == "new");
    CHECK(name.starts_with("kmm-upgrade-load-node-a-hello-"));
    CHECK(pod.get_string({"metadata", "labels", "kmmtools.dev/run"}) == "run-1");
    CHECK(pod.get_string({"spec", "nodeName"}) == "node-a");
    CHECK(pod.get_string({"spec", "restartPolicy"}) == "Never");
    CHECK(pod.get_string({"spec", "serviceAccountName"}) == "loader");
    CHECK(value::to_json(*pod.find_path({"spec", "tolerations"})) == R"([{"operator":"Exists"}])");
    const auto& container = pod.find_path({"spec", "containers"})->items().front();
    CHECK(value::to_json(*container.find("args")) == R"(["load","/etc/kmm-worker/config.yaml","-o","json"])");
    const Node config = tree(pod.get_string({"metadata", "annotations", "kmmtools.dev/worker-config"}));
    CHECK(config.get_string({"containerImage"}) == "registry.example/hello:v1");
    CHECK(config.find("kind") == nullptr);
    // The Secret's login is mounted by its name; what is in it is nowhere. KMM finds worker Pods by a label that is not
    // there.
    CHECK(server.body_of("POST").find("e30=") == std::string::npos);
    CHECK(server.body_of("POST").find(
              R"("secret":{"items":[{"key":".dockerconfigjson","path":".dockerconfigjson"}],"secretName":"pull"})") !=
          std::string::npos);
    CHECK(server.body_of("POST").find("worker-action") == std::string::npos);
}

TEST_CASE("worker Pods: how calls end that bring no result") {
    struct Row {
        std::vector<std::string> script;
        CallEnd end;
        const char* text;
        std::size_t deletions;
    };
    const std::vector<Row> rows = {
        {{k_running, k_gone}, CallEnd::unknown, "vanished before its result was read", 0},
        {{k_running}, CallEnd::unknown, "has not ended within the time limit: Running", 0},
        {{k_creating},
         CallEnd::unreachable,
         "Pending (ContainerCreating); node node-a is not ready: NodeStatusUnknown: Kubelet stopped",
         1},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        PodServer server(row.script);
        const auto reply = server.runner().run(load_call());
        CHECK(reply.end == row.end);
        CHECK_MESSAGE(reply.transport.find(row.text) != std::string::npos, reply.transport);
        CHECK(server.changes().size() == 1 + row.deletions);
    }
}

TEST_CASE(
    "worker Pods: the first pull of the worker's image may take longer than the question, on a node that is ready") {
    constexpr std::size_t k_looks = 25;
    std::vector<std::string> slow(k_looks,
                                  k_creating);  // longer than the question's 30 s, as the node that is lost shows
    slow.emplace_back(k_done);
    PodServer ready(slow);
    ready.node_ready = "True";
    CHECK(ready.runner().run(status_call()).end == CallEnd::completed);
    CHECK(tree(ready.body_of("POST")).find_path({"spec", "activeDeadlineSeconds"})->as_int() == 360);
    PodServer lost(slow);
    CHECK(lost.runner().run(status_call()).end == CallEnd::unreachable);
    PodServer for_ever({k_creating});
    for_ever.node_ready = "True";
    const auto reply = for_ever.runner().run(status_call());
    CHECK(reply.end == CallEnd::unreachable);
    CHECK_MESSAGE(reply.transport.ends_with("Pending (ContainerCreating)"), reply.transport);
}

TEST_CASE("worker Pods: a question that was started late has all of its time, and no more") {
    constexpr std::size_t k_looks = 8;  // more than half of the question's 30 s;
    std::vector<std::string> late(k_looks, k_creating);
    late.insert(late.end(), k_looks, k_running);
    late.emplace_back(k_done);
    PodServer busy(late);
    busy.node_ready = "True";
    CHECK(busy.runner().run(status_call()).end == CallEnd::completed);
    std::vector<std::string> silent(k_looks, k_creating);
    silent.emplace_back(k_running);
    PodServer server(silent);
    server.node_ready = "True";
    const auto reply = server.runner().run(status_call());
    CHECK(reply.end == CallEnd::unknown);
    CHECK_MESSAGE(reply.transport.find("has not ended within the time limit: Running") != std::string::npos,
                  reply.transport);
    // What changes the node ends when it was told to: it is looked for before anything else is done there.
    CHECK(PodServer(late).runner().run(load_call(seconds(30))).end == CallEnd::unknown);
}

TEST_CASE("worker Pods: a question to a node whose kubelet is silent ends early, and says so") {
    const auto seconds_of = [](const std::string& ready, const WorkerCall& call) {
        PodServer server({k_creating});
        server.node_ready = ready;
        const auto before = server.client().clock().monotonic();
        const auto reply = server.runner().run(call);
        CHECK(reply.end == CallEnd::unreachable);
        if (ready == "Unknown")
            CHECK_MESSAGE(reply.transport.find("Kubelet stopped posting") != std::string::npos, reply.transport);
        return std::chrono::duration_cast<seconds>(server.client().clock().monotonic() - before).count();
    };
    CHECK(seconds_of("Unknown", status_call()) < 20);
    CHECK(seconds_of("False", status_call()) >= 30);
    CHECK(seconds_of("Unknown", load_call(seconds(30))) >= 30);
    // It may come back as long as its Pod can start.
    PodServer back({k_creating, k_creating, k_creating, k_done});
    CHECK(back.runner().run(status_call()).end == CallEnd::completed);
}

TEST_CASE("worker Pods: a load that an earlier process began is waited for, its Pod removed before another is made") {
    PodServer server({k_done});
    server.leave("hello", "run-1", "load", {k_running, k_running, k_done});
    CHECK(server.runner().run(status_call()).end == CallEnd::completed);
    REQUIRE(server.changes().size() == 3);
    CHECK(server.changes()[0] == "DELETE " + k_pods + "/" + server.left);
    CHECK(server.changes()[1] == "POST " + k_pods);
}

TEST_CASE("worker Pods: what only asks, or has not begun, is deleted at once") {
    for (const auto& [verb, status] : {std::pair{"status", k_running}, std::pair{"load", k_creating}}) {
        PodServer server({k_done});
        server.leave("hello", "run-1", verb, {status});
        CHECK(server.runner().run(status_call()).end == CallEnd::completed);
        CHECK(server.changes().front() == "DELETE " + k_pods + "/" + server.left);
    }
}

TEST_CASE("worker Pods: another upgrade's worker is waited for and never touched") {
    PodServer busy({k_done});
    busy.leave("theirs", "run-2", "check", {k_running});
    const auto reply = busy.runner().run(status_call());
    CHECK(reply.end == CallEnd::unreachable);
    CHECK(reply.transport == "worker Pod drivers/" + busy.left + " of another upgrade is still there: Running");
    CHECK(reply.hint.find("kubectl delete pod -n drivers " + busy.left + " --force --grace-period=0") !=
          std::string::npos);
    CHECK(reply.hint.starts_with("only if node "));
    CHECK(busy.changes().empty());
    PodServer over({k_done});
    over.leave("theirs", "run-2", "check", {k_running, k_ended});
    CHECK(over.runner().run(status_call()).end == CallEnd::completed);
    CHECK(over.changes().front() == "POST " + k_pods);
}

TEST_CASE("worker Pods: one of another run that only reads the node holds nothing up, and goes once it is abandoned") {
    const WorkerCall question{"node-a", {"kubernetes", "facts"}, "", seconds(30)};
    for (const auto* status : {k_creating, k_running}) {
        PodServer server({k_done});  // whose node is not ready
        const auto now = server.client().clock().now_unix();
        server.leave("hello", "run-2", "kubernetes-facts", {status}, "", base::format_rfc3339(now - 1100));
        CHECK(server.runner().run(question).end == CallEnd::completed);
        CHECK(server.changes().front() == "POST " + k_pods);
        PodServer ready({k_done});
        ready.node_ready = "True";
        ready.leave("hello", "run-2", "kubernetes-facts", {status, k_running, k_ended});
        CHECK(ready.runner().run(question).end == CallEnd::completed);
        CHECK(ready.changes()[0] == "DELETE " + k_pods + "/" + ready.left);
        PodServer endless({k_done});
        endless.node_ready = "True";
        endless.leave("hello", "run-2", "kubernetes-facts", {status});
        CHECK(endless.runner().run(question).end == CallEnd::completed);
        CHECK(endless.changes().front() == "POST " + k_pods);
        PodServer later({k_done});
        later.leave("hello", "run-2", "kubernetes-facts", {status}, "", base::format_rfc3339(now - 1300));
        CHECK(later.runner().run(question).end == CallEnd::completed);
        CHECK(later.changes()[0] == "DELETE " + k_pods + "/" + later.left);
        CHECK(later.changes()[1] == "POST " + k_pods);
        CHECK(tree(later.body_of("POST")).get_string({"metadata", "name"}) != later.left);
    }
    // What changes the node is waited for by questions, too.
    PodServer busy({k_done});
    busy.leave("hello", "run-2", "kubernetes-kubelet", {k_running});
    CHECK(busy.runner().run(question).end == CallEnd::unreachable);
}

TEST_CASE("worker Pods: a Pod that no kmm-upgrade can have made holds nothing up, whatever its labels say") {
    for (const char* name : {"mine", "kmm-upgrade-load-node-a-hello-99999", "kmm-upgrade-"}) {
        PodServer server({k_done});
        server.leave("hello", "run-1", "load", {k_running}, name);
        CHECK(server.runner().run(status_call()).end == CallEnd::completed);
        CHECK(server.changes().front() == "POST " + k_pods);
    }
}

TEST_CASE("worker Pods: what only looks has no rights, what changes the kernel has those it needs") {
    PodServer looks({k_done});
    static_cast<void>(looks.runner().run(status_call()));
    const Node pod = tree(looks.body_of("POST"));
    const Node& container = pod.find_path({"spec", "containers"})->items().front();
    const Node* context = container.find("securityContext");
    CHECK(context->find("privileged") == nullptr);
    CHECK(context->find("allowPrivilegeEscalation")->as_bool() == false);
    CHECK(context->find("readOnlyRootFilesystem")->as_bool() == true);
    CHECK(value::to_json(*context->find("capabilities")) == R"({"drop":["ALL"]})");
    CHECK(context->get_string({"seccompProfile", "type"}) == "RuntimeDefault");
    CHECK(pod.find_path({"spec", "hostNetwork"})->as_bool() == false);
    CHECK(pod.find_path({"spec", "automountServiceAccountToken"})->as_bool() == false);
    CHECK(container.get_string({"imagePullPolicy"}) == "Always");
    for (const auto& mount : container.find("volumeMounts")->items()) {
        const std::string path = mount.get_string({"mountPath"});
        if (path == "/host/proc" || path == "/host/sys" || path == "/host/lib/modules") {
            CHECK(mount.find("readOnly")->as_bool() == true);
        }
        CHECK(mount.get_string({"name"}) != "pull-secret");
    }
    PodServer loads({k_done});
    static_cast<void>(loads.runner().run(load_call()));
    const Node loader = tree(loads.body_of("POST"));
    CHECK(loader.find_path({"spec", "containers"})
              ->items()
              .front()
              .find_path({"securityContext", "privileged"})
              ->as_bool() == true);
    CHECK(loader.find_path({"spec", "hostNetwork"})->as_bool() == true);
}

TEST_CASE("worker Pods: a node that was left clear is not looked at again") {
    for (const char* end : {k_done, k_ended}) {
        CAPTURE(end);
        PodServer server({end});
        auto runner = server.runner();
        CHECK(runner.run(status_call()).end == CallEnd::completed);
        server.leave("theirs", "run-2", "check", {k_running});  // would be in the way
        CHECK(runner.run(load_call()).end == CallEnd::completed);
    }
}

TEST_CASE(
    "worker Pods: somebody who wants to stop is heard at once; what changes the node goes on, nothing else is left "
    "behind") {
    struct Row {
        WorkerCall call;
        const char* status;
        const char* text;
        std::size_t changes;
    };
    const Row rows[] = {
        {load_call(seconds(600)), k_running, "interrupted; worker Pod drivers/kmm-upgrade-load-node-a-hello-", 1},
        {load_call(seconds(600)), k_creating, "timed out while waiting for Pod drivers/kmm-upgrade-load-node-a-hello-",
         2},
        {status_call(), k_running, "timed out while waiting for Pod drivers/kmm-upgrade-status-node-a-hello-", 2},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        PodServer server({row.status});
        server.looks_left = 3;
        auto runner = server.runner();
        const auto error = error_of([&] { static_cast<void>(runner.run(row.call)); });
        CHECK(error.code() == "interrupted");
        CHECK(error.exit() == Exit::timeout);  // no signal came
        CHECK_MESSAGE(error.message().starts_with(row.text), error.message());
        CHECK(server.changes().size() == row.changes);
        CHECK((server.changes().back().starts_with("DELETE") == (row.changes == 2)));
        CHECK(error_of([&] { static_cast<void>(runner.run(row.call)); }).code() == "interrupted");
        CHECK(server.changes().size() == row.changes);  // and nothing is begun
    }
    PodServer server({k_done});
    server.leave("hello", "run-1", "load", {k_running});
    server.looks_left = 2;
    CHECK(error_of([&] { static_cast<void>(server.runner().run(status_call())); }).message() ==
          "timed out while waiting for Pod drivers/" + server.left);
    CHECK(server.changes().empty());
}

TEST_CASE("worker Pods: what the server refuses is a result") {
    PodServer server({k_done});
    server.refusal =
        status_reply(403, "Forbidden", "pods is forbidden: violates PodSecurity restricted:latest: privileged");
    const auto reply = server.runner().run(status_call());
    CHECK(reply.end == CallEnd::completed);
    CHECK(reply.exit_code == static_cast<int>(Exit::no_permission));
    CHECK(reply.document.get_string({"code"}) == "worker-refused");
    CHECK(reply.document.get_string({"hint"}) ==
          "kubectl label namespace drivers pod-security.kubernetes.io/enforce=privileged --overwrite");
    server.refusal = status_reply(422, "Invalid", "spec.nodeName: bad");
    CHECK(server.runner().run(status_call()).document.get_string({"code"}) == "rejected");
    server.refusal = status_reply(403, "Forbidden", R"(pods \"p\" is forbidden: exceeded quota: small)");
    CHECK(server.runner().run(status_call()).document.get_string({"hint"}) ==
          "make room: kubectl describe resourcequota -n drivers");
    server.refusal = status_reply(400, "", R"(admission webhook \"no.example\" denied the request: no)");
    CHECK(server.runner().run(status_call()).document.get_string({"code"}) == "worker-refused");
    server.refusal = status_reply(500, "", "no");
    CHECK(server.runner().run(status_call()).end == CallEnd::unknown);
}

TEST_CASE("worker Pods: one that cannot be deleted is told, and no fault of the call") {
    PodServer server({k_done});
    server.removal = status_reply(403, "Forbidden", "pods is forbidden: no");
    CHECK(server.runner().run(status_call()).end == CallEnd::completed);
    REQUIRE(server.warnings.size() == 1);
    CHECK(server.warnings.front().starts_with("worker Pod drivers/"));
    CHECK(server.warnings.front().find("is left behind, it could not be deleted: ") != std::string::npos);
}

TEST_CASE("worker Pods: a name that somebody else's Pod has is no unreachable node") {
    struct Row {
        const char* metadata;
        const char* whose;
    };
    const Row rows[] = {
        {R"({"name":"p","ownerReferences":[{"kind":"Node","name":"n"},{"kind":"StatefulSet","name":"shop","controller":true}]})",
         "of StatefulSet shop"},
        {R"({"name":"p","managedFields":[{"manager":"kubectl-create"}]})", "made by kubectl-create"},
        {R"({"name":"p"})", "that kmm-upgrade has not made"},
    };
    for (const auto& row : rows) {
        PodServer server({k_done});
        server.squatter = row.metadata;
        const auto reply = server.runner().run(status_call());
        CHECK(reply.end == CallEnd::completed);
        CHECK(reply.document.get_string({"code"}) == "worker-name-taken");
        const auto said = reply.document.get_string({"message"});
        CHECK_MESSAGE(said.starts_with("worker Pod drivers/kmm-upgrade-status-node-a-hello-"), said);
        CHECK_MESSAGE(said.ends_with(std::string(" cannot be made: a Pod ") + row.whose + " has its name"), said);
        CHECK(reply.document.get_string({"hint"}).starts_with(
            "if nobody needs it: kubectl delete pod -n drivers kmm-upgrade-status-"));
        CHECK(server.changes() == std::vector<std::string>{"POST " + k_pods});
    }
    PodServer rival({k_done});  // ours by its label: another process was quicker, again and again
    rival.squatter = R"({"name":"p","labels":{"app.kubernetes.io/managed-by":"kmm-upgrade"}})";
    CHECK(rival.runner().run(status_call()).end == CallEnd::unreachable);
}

TEST_CASE("worker Pods: a server that is away, or does not know us any more, is no node's fault") {
    PodServer server({k_done});
    server.refusal = status_reply(503, "", "no");
    CHECK(error_of([&] { return server.runner().run(status_call()); }).code() == "api-error");
    server.refusal = status_reply(401, "Unauthorized", "Unauthorized");
    CHECK(error_of([&] { return server.runner().run(status_call()); }).code() == "unauthorized");
}

TEST_CASE("worker Pods: names are the same again, and differ where it matters") {
    render::WorkerTask task;
    task.namespace_ = "drivers";
    task.node = "a-b";
    task.module = "c";
    task.args = {"load"};
    const auto name = render::worker_task_name(task);
    CHECK(render::worker_task_name(task) == name);
    task.node = "a";
    task.module = "b-c";
    CHECK(render::worker_task_name(task) != name);
    task.node = std::string(253, 'n');
    CHECK(render::worker_task_name(task).size() <= 253);
}

}
