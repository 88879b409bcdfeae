// SPDX-License-Identifier: Apache-2.0
// What a live store remembers must not outlive what is true.
#include "cluster/live/kube_mirror.hpp"
#include "cluster/live/pull_secrets.hpp"
#include "unit/kube/fixture.hpp"

using namespace kmm;
using namespace kmm::kube::test;
using cluster::Mirror;
using cluster::MirrorReceiver;
using value::Node;

namespace {

Node node_of(const std::string& uid, const std::string& version, const std::string& role) {
    return tree(R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"node-a","uid":")" + uid +
                R"(","resourceVersion":")" + version + R"(","labels":{"role":")" + role + R"("}}})");
}

std::string secret_json(const std::string& token) {
    return R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"pull","namespace":"drivers"},"type":"Opaque","data":{"token":")" +
           token + R"("}})";
}

struct Watched {
    Mirror mirror;
    std::mutex mutex;
    std::condition_variable news;
    std::atomic<bool> stopping{false};
    MirrorReceiver receiver{mirror, mutex, news, stopping};
    Watched() { mirror.resource = kube::resources::k_nodes; }
    [[nodiscard]] std::string role() const {
        const auto found = mirror.entries.find("node-a");
        return found == mirror.entries.end() ? "none" : found->second.objects.nodes.at(0).meta.labels.at("role");
    }
};

}  // namespace

TEST_SUITE("cluster::unit") {

TEST_CASE("a mirror: what the watch still brings of a deleted object does not touch the one that was made after it") {
    for (const bool has_been_seen : {true, false}) {
        CAPTURE(has_been_seen);
        Watched watched;
        if (has_been_seen) { watched.receiver.listed({node_of("old", "5", "old")}); }
        cluster::put_answer(watched.mirror, node_of("new", "9", "new"), seconds(1));
        watched.receiver.changed({kube::EventType::modified, node_of("old", "6", "older")});
        CHECK(watched.role() == "new");
        watched.receiver.changed({kube::EventType::deleted, node_of("old", "8", "older")});
        CHECK(watched.role() == "new");
        cluster::end_waiting(watched.mirror, seconds(60));
        CHECK(watched.role() == "new");
        watched.receiver.changed({kube::EventType::added, node_of("new", "9", "new")});
        watched.receiver.changed({kube::EventType::modified, node_of("new", "10", "newer")});
        CHECK(watched.role() == "newer");
        watched.receiver.changed({kube::EventType::deleted, node_of("new", "11", "newer")});
        CHECK(watched.role() == "none");
    }
}

TEST_CASE("a mirror: our own object that is deleted while its last version is awaited is gone") {
    Watched watched;
    watched.receiver.listed({node_of("one", "5", "old")});
    cluster::put_answer(watched.mirror, node_of("one", "9", "new"), seconds(1));
    watched.receiver.changed({kube::EventType::deleted, node_of("one", "10", "new")});
    CHECK(watched.role() == "none");
}

TEST_CASE("a pull Secret is read again, so that a renewed token is seen, but not for each of many nodes") {
    Scripted scripted({reply(200, secret_json("b25l")), reply(200, secret_json("dHdv")),
                       status_reply(404, "NotFound", "no such secret"), reply(200, secret_json("Zm91cg=="))});
    cluster::PullSecrets secrets;
    Diagnostics faults;
    const auto token = [&] {
        const auto objects = secrets.get(*scripted.client, {"drivers", "pull"}, faults);
        return objects.secrets.empty() ? std::string("none") : objects.secrets.at(0).data.at("token");
    };
    CHECK(token() == "one");
    CHECK(token() == "one");
    CHECK(scripted.targets().size() == 1);
    scripted.clock.elapsed += seconds(6);
    CHECK(token() == "two");
    scripted.clock.elapsed += seconds(6);
    CHECK(token() == "none");
    CHECK(token() == "four");  // one that is missing is asked for each time
}
}
