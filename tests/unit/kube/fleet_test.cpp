// SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"
#include "kube/fleet.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

/// A server that has what a fleet is made of, by path.
class FleetServer {
public:
    explicit FleetServer(std::map<std::string, FakeReply> replies)
        : replies_(std::move(replies)), server([this](const FakeRequest& request) { return answer(request); }) {
        Connection connection;
        connection.server = "http://127.0.0.1:" + std::to_string(server.port());
        scripted.connect(connection, {});
    }

    [[nodiscard]] Fleet read(const FleetQuery& query = {}) { return read_fleet(*scripted.client, query); }

private:
    FakeReply answer(const FakeRequest& request) {
        const std::string path = request.target.substr(0, request.target.find('?'));
        const auto found = replies_.find(path);
        return found == replies_.end() ? status_reply(404, "NotFound", "nothing here") : found->second;
    }

    std::map<std::string, FakeReply> replies_;

public:
    FakeServer server;
    Scripted scripted{{}};
};

const std::string k_kmm = "/apis/kmm.sigs.x-k8s.io/v1beta1";

std::map<std::string, FakeReply> usual_replies() {
    return {
        {k_kmm,
         reply(200, R"({"kind":"APIResourceList","resources":[{"name":"modules"},{"name":"nodemodulesconfigs"}]})")},
        {"/api/v1/nodes", reply(200, R"({"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[
            {"metadata":{"name":"b","labels":{"x":"y"}},"status":{"nodeInfo":{"kernelVersion":"6.1"}}},{"metadata":{"name":"a"}}]})")},
        {"/api/v1/pods", reply(200, R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]})")},
        // CustomResources come with the items first, and name their kind themselves.
        {k_kmm + "/modules",
         reply(200, R"({"apiVersion":"kmm.sigs.x-k8s.io/v1beta1","items":[{"apiVersion":"kmm.sigs.x-k8s.io/v1beta1",
            "kind":"Module","metadata":{"name":"m","namespace":"ns"},"spec":{"selector":{"a":"b"},"fromTheFuture":1,"imageRepoSecret":{"name":"pull"},
            "moduleLoader":{"container":{"containerImage":"i","modprobe":{"moduleName":"m"},"kernelMappings":[{"regexp":".*","containerImage":""}]}}}}],
            "kind":"ModuleList","metadata":{"resourceVersion":"1"}})")},
        {k_kmm + "/nodemodulesconfigs",
         reply(
             200,
             R"({"apiVersion":"kmm.sigs.x-k8s.io/v1beta1","items":[],"kind":"NodeModulesConfigList","metadata":{}})")},
        {"/api/v1/namespaces/ns/secrets/pull",
         reply(200, R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"pull","namespace":"ns"},"data":{}})")},
    };
}

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("a fleet: sorted, placed by name, new fields of a newer server are no faults") {
    FleetServer fleet(usual_replies());
    const Fleet found = fleet.read();
    REQUIRE(found.objects.nodes.size() == 2);
    CHECK(found.objects.nodes[0].meta.name == "a");
    CHECK(found.objects.nodes[1].kernel_version == "6.1");
    CHECK(found.objects.nodes[1].meta.origin.to_string() == "nodes/b");
    REQUIRE(found.objects.modules.size() == 1);
    CHECK(found.objects.modules[0].meta.origin.to_string() == "modules/ns/m");
    CHECK(found.objects.secrets.empty());
    CHECK(found.has_kmm);
    CHECK_FALSE(has_errors(found.diagnostics));
    REQUIRE(found.diagnostics.size() == 1);
    CHECK(found.diagnostics[0].code == "unknown-field");
    CHECK(found.diagnostics[0].severity == Severity::note);
}

TEST_CASE("a fleet: Secrets that Modules name are read only when asked for") {
    FleetServer fleet(usual_replies());
    FleetQuery query;
    query.referenced = FleetQuery::Referenced::secrets;
    CHECK(fleet.read(query).objects.secrets.size() == 1);
    auto replies = usual_replies();
    replies["/api/v1/namespaces/ns/secrets/pull"] = status_reply(403, "Forbidden", "no");
    FleetServer closed(replies);
    CHECK(closed.read(query).objects.secrets.empty());
    CHECK(closed.read(query).absent_secrets.empty());
    CHECK(closed.read(query).diagnostics.size() == 1);  // the field from the future
    replies.erase("/api/v1/namespaces/ns/secrets/pull");
    FleetServer bare(replies);
    const auto found = bare.read(query);
    CHECK(found.diagnostics.size() == 1);
    CHECK(found.absent_secrets == std::set<std::pair<std::string, std::string>>{{"ns", "pull"}});
}

TEST_CASE("a fleet: what Modules' plugins run as is read only when asked for, by the label of the Module's name") {
    auto replies = usual_replies();
    replies["/apis/apps/v1"] = reply(200, R"({"kind":"APIResourceList","resources":[{"name":"daemonsets"}]})");
    replies["/apis/apps/v1/daemonsets"] =
        reply(200, R"({"kind":"DaemonSetList","apiVersion":"apps/v1","metadata":{},"items":[
        {"metadata":{"name":"d","namespace":"ns","labels":{"kmm.node.kubernetes.io/module.name":"m"}},"spec":{"selector":{"a":"b"}}}]})");
    FleetServer fleet(replies);
    CHECK(fleet.read().objects.daemon_sets.empty());
    CHECK(fleet.server.count("daemonsets") == 0);
    FleetQuery query;
    query.plugins = FleetQuery::Plugins::yes;
    const Fleet found = fleet.read(query);
    REQUIRE(found.objects.daemon_sets.size() == 1);
    CHECK(found.objects.daemon_sets[0].spec.get_string({"selector", "a"}) == "b");
    CHECK(found.objects.device_classes.empty());  // this server has none
    CHECK(fleet.server.count("labelSelector=kmm.node.kubernetes.io%2Fmodule.name") == 1);
}

TEST_CASE("a fleet: what KMM says of images is read where it may be") {
    auto replies = usual_replies();
    replies[k_kmm] = reply(200, R"({"kind":"APIResourceList","resources":[{"name":"modules"},
        {"name":"nodemodulesconfigs"},{"name":"moduleimagesconfigs"},{"name":"modulebuildsignconfigs"}]})");
    replies[k_kmm + "/moduleimagesconfigs"] =
        reply(200, R"({"apiVersion":"kmm.sigs.x-k8s.io/v1beta1","kind":"ModuleImagesConfigList","metadata":{},"items":[
        {"apiVersion":"kmm.sigs.x-k8s.io/v1beta1","kind":"ModuleImagesConfig","metadata":{"name":"m","namespace":"ns"},
         "status":{"imagesStates":[{"image":"i","status":"DoesNotExist"}]}}]})");
    replies["/api/v1/configmaps"] =
        reply(200, R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]})");
    replies[k_kmm + "/modulebuildsignconfigs"] = status_reply(403, "Forbidden", "no");
    FleetServer fleet(replies);
    const Fleet found = fleet.read();
    REQUIRE(found.objects.module_images_configs.size() == 1);
    CHECK(found.objects.module_images_configs[0].states.at("i") == "DoesNotExist");
    CHECK(found.objects.module_build_sign_configs.empty());
    CHECK(fleet.server.count("image-owner") == 0);
    FleetQuery query;
    query.image_pods = FleetQuery::ImagePods::yes;
    query.surroundings = FleetQuery::Surroundings::yes;
    static_cast<void>(fleet.read(query));
    CHECK(fleet.server.count("labelSelector=kmm.node.kubernetes.io%2Fimage-owner") == 1);
    CHECK(fleet.server.count("labelSelector=kmm.node.kubernetes.io%2Fresource-type") == 1);
    CHECK(fleet.server.count("fieldSelector=metadata.name%3Dkmm-operator-manager-config") == 1);
    CHECK(fleet.server.count("/api/v1/namespaces/ns") == 1);
    auto closed_replies = replies;
    closed_replies["/api/v1/pods"] = status_reply(403, "Forbidden", "no");
    closed_replies["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] =
        reply(201, R"({"status":{"allowed":false}})");
    FleetServer closed(closed_replies);
    CHECK(error_of([&] { return closed.read(query); }).code() == "forbidden");  // Pods are no wish
}

TEST_CASE("a fleet without KMM has Nodes only") {
    auto replies = usual_replies();
    replies.erase(k_kmm);
    FleetServer fleet(replies);
    const Fleet found = fleet.read();
    CHECK_FALSE(found.has_kmm);
    CHECK(found.objects.nodes.size() == 2);
    CHECK(fleet.server.count("modules") == 0);
}

TEST_CASE("a fleet that may not be read: all missing rights at once") {
    auto replies = usual_replies();
    replies["/api/v1/nodes"] = status_reply(403, "Forbidden", "no");
    replies["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = reply(201, R"({"status":{"allowed":false}})");
    FleetServer fleet(replies);
    const Error error = error_of([&] { return fleet.read(); });
    CHECK(error.code() == "forbidden");
    CHECK(error.details().size() == 6);
    CHECK(error.details()[1] == std::pair<std::string, std::string>("right", "list modules.kmm.sigs.x-k8s.io"));
    CHECK(error.hint().find("name: kmm-plan-") != std::string::npos);
}

}
