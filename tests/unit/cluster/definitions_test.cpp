// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include "cluster/live/definitions.hpp"
#include "cluster/live/operator_signs.hpp"
#include "unit/kube/fixture.hpp"

using namespace kmm;
using namespace kmm::kube::test;
using kube::resources::k_modules;
using kube::resources::k_node_modules_configs;

namespace {

const std::string k_served = R"({"resources":[{"name":"modules"},{"name":"nodemodulesconfigs"}]})";
const std::string k_yes = R"({"status":{"allowed":true}})";

FakeReply not_found() { return status_reply(404, "NotFound", "the server could not find the requested resource"); }

FakeReply definition(const std::string& versions, const std::string& conditions = "[]") {
    return reply(200, R"({"kind":"CustomResourceDefinition","metadata":{"name":"x"},"spec":{"versions":)" + versions +
                          R"(},"status":{"conditions":)" + conditions + "}}");
}

FakeReply pods(const std::string& items) {
    return reply(200, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[)" + items + "]}");
}

std::string pod(const std::string& name, const std::string& image, const std::string& labels = "{}",
                const std::string& phase = "Running") {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"there","labels":)" + labels +
           R"(},"spec":{"containers":[{"image":")" + image + R"("}]},"status":{"phase":")" + phase + R"("}})";
}

std::string text_of(const std::string& file) {
    std::ifstream stream(std::string(KMM_SOURCE_DIR) + "/manifests/crd/" + file);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

}  // namespace

TEST_SUITE("cluster::unit") {

TEST_CASE("the definitions are the files of manifests/crd") {
    CHECK(cluster::k_module_definition == text_of("module.yaml"));
    CHECK(cluster::k_node_modules_config_definition == text_of("nodemodulesconfig.yaml"));
}

TEST_CASE("a definition is created once, and waited for until the kind is served") {
    Scripted server({not_found(), not_found(), reply(201, "{}"), not_found(), reply(200, k_served)});
    REQUIRE(cluster::lacking_kinds(*server.client).size() == 2);
    CHECK(cluster::create_definition(*server.client, k_node_modules_configs));
    CHECK(server.clock.sleeps.size() == 1);
    const auto requests = server.server.requests();
    REQUIRE(requests.size() == 5);
    CHECK(requests[2].method == "POST");
    CHECK(requests[2].target.starts_with("/apis/apiextensions.k8s.io/v1/customresourcedefinitions?"));
    const auto body = tree(requests[2].body);
    CHECK(body.get_string({"metadata", "name"}) == k_node_modules_configs.full_name());
    CHECK(body.find_path({"spec", "versions"})->items().front().get_string({"name"}) == k_node_modules_configs.version);
    CHECK(cluster::lacking_kinds(*server.client).empty());
}

TEST_CASE("a definition that is there, or that somebody makes meanwhile, stays as it is") {
    SUBCASE("there") {
        Scripted server({definition("[]"), reply(200, k_served)});
        CHECK_FALSE(cluster::create_definition(*server.client, k_modules));
        CHECK(server.server.requests().size() == 2);
    }
    SUBCASE("meanwhile") {
        Scripted server({not_found(), status_reply(409, "AlreadyExists", "exists"), reply(200, k_served)});
        CHECK_FALSE(cluster::create_definition(*server.client, k_modules));
    }
}

TEST_CASE("a kind that is never served ends with what the server says of it") {
    const std::string refused =
        R"([{"type":"NamesAccepted","status":"False","reason":"PluralConflict","message":"modules is in use"}])";
    Scripted server({definition("[]"), not_found(), not_found(), definition("[]", refused)});
    const auto error =
        error_of([&] { return cluster::create_definition(*server.client, k_modules, milliseconds(200)); });
    CHECK(error.code() == "kind-not-served");
    CHECK(error.exit() == Exit::unavailable);
    REQUIRE(error.details().size() == 1);
    CHECK(error.details().front().second == "NamesAccepted: PluralConflict: modules is in use");
}

TEST_CASE("what keeps a kind from being created is said before anything is") {
    const auto refusal = [](std::vector<FakeReply> script, const std::vector<kube::Resource>& kinds) {
        Scripted server(std::move(script));
        return error_of([&] {
            cluster::require_creatable(*server.client, "cluster main", kinds, {});
            return 0;
        });
    };
    SUBCASE("another version") {
        const auto error =
            refusal({reply(201, k_yes), reply(201, k_yes),
                     definition(R"([{"name":"v1alpha1","served":true},{"name":"v1beta1","served":false}])")},
                    {k_modules});
        CHECK(error.code() == "kmm-other-version");
        CHECK(error.message() ==
              "CustomResourceDefinition modules.kmm.sigs.x-k8s.io serves v1alpha1, expected v1beta1; it is left as it "
              "is");
    }
    SUBCASE("loaded Modules would be unloaded") {
        const std::string list =
            R"({"kind":"NodeModulesConfigList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"status":{"modules":[)"
            R"({"name":"hello","namespace":"drivers"}]}}]})";
        const auto error = refusal({reply(201, k_yes), reply(201, k_yes), not_found(), reply(200, list)}, {k_modules});
        CHECK(error.code() == "modules-lost");
        CHECK(error.message().find("NodeModulesConfig b names drivers/hello") != std::string::npos);
    }
    SUBCASE("nothing") {
        Scripted server({reply(201, k_yes), reply(201, k_yes), reply(201, k_yes), not_found(),
                         definition(R"([{"name":"v1beta1","served":true}])")});
        cluster::require_creatable(*server.client, "cluster main", {k_modules, k_node_modules_configs}, {});
        CHECK(server.server.requests().size() == 5);
    }
}

TEST_CASE("KMM's operator is known by a label, else by the name or the image of its controller") {
    const auto others = pod("gpu-operator-controller-manager-0", "registry.example/gpu-operator:v1");
    const auto find = [](std::vector<FakeReply> script) {
        Scripted server(std::move(script));
        return cluster::look_for_operator(*server.client);
    };
    SUBCASE("label") {
        const auto signs = find({pods(pod("b", "x", R"({"app.kubernetes.io/component":"worker"})") + "," +
                                      pod("old", "x", "{}", "Failed") + "," + pod("a", "x"))});
        REQUIRE(signs.pods.size() == 1);
        CHECK(signs.pods.front().name == "there/a");
        CHECK(signs.pods.front().sign == "label app.kubernetes.io/part-of=kmm");
    }
    SUBCASE("name") {
        const auto signs =
            find({pods(""), pods(others + "," + pod("kmm-operator-controller-manager-5d-x", "mirror.example/kmm:v2"))});
        REQUIRE(signs.pods.size() == 1);
        CHECK(signs.pods.front().sign == "name kmm-operator-controller-manager-5d-x");
    }
    SUBCASE("image, under another label") {
        const std::string image = "registry.example:5000/kmm/kernel-module-management-rhel9-operator@sha256:00";
        const auto signs = find({pods(""), pods(others), pods(pod("kmm-0", image))});
        REQUIRE(signs.pods.size() == 1);
        CHECK(signs.pods.front().sign == "image " + image);
    }
    SUBCASE("a hub, a webhook server and other operators are not") {
        const auto signs = find(
            {pods(""),
             pods(others + "," +
                  pod("kmm-operator-hub-controller-0", "quay.example/kernel-module-management-hub-operator:v2") + "," +
                  pod("kmm-operator-webhook-server-0", "quay.example/kernel-module-management-webhook-server:v2")),
             pods(""), not_found()});
        CHECK_FALSE(signs.any());
    }
    SUBCASE("a NodeModulesConfig tells by who has written it; its owner alone, where the server does not say") {
        const auto config_of = [&](const std::string& more) {
            const std::string kinds = R"({"resources":[{"name":"nodemodulesconfigs"}]})";
            const std::string list =
                R"({"kind":"NodeModulesConfigList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"node-a",)"
                R"("ownerReferences":[{"kind":"Node","name":"node-a"}])" +
                more + "}}]}";
            return find({pods(""), pods(""), pods(""), reply(200, kinds), reply(200, list)}).config;
        };
        CHECK(config_of("") == "node-a");
        CHECK(config_of(R"(,"managedFields":[{"manager":"kmm-tools"}])").empty());
        CHECK(config_of(R"(,"managedFields":[{"manager":"kmm-tools"},{"manager":"manager"}])") == "node-a");
    }
}

}  // TEST_SUITE
