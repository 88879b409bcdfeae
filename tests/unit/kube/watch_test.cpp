// SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"
#include "kube/watch.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

std::string event(const std::string& type, const std::string& name, const std::string& version) {
    return R"({"type":")" + type + R"(","object":{"kind":"Node","metadata":{"name":")" + name +
           R"(","resourceVersion":")" + version + "\"}}}\n";
}

const std::string k_expired_event =
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 5"}})"
    "\n";

FakeReply stream(std::vector<std::string> chunks, unsigned hang_ms = 0) {
    FakeReply result;
    result.chunks = std::move(chunks);
    result.hang_ms = hang_ms;
    return result;
}

/// Writes down what it sees; has finished after `events_max` events.
class Notes final : public WatchReceiver {
public:
    explicit Notes(std::size_t events_max) : events_max_(events_max) {}
    void listed(std::vector<value::Node> objects) override {
        std::string line = "list";
        for (const auto& name : names_of(objects)) { line += " " + name; }
        lines.push_back(line);
    }
    void changed(const WatchEvent& seen) override {
        const char* what = seen.type == EventType::added ? "+" : seen.type == EventType::deleted ? "-" : "~";
        lines.push_back(what + seen.object.get_string({"metadata", "name"}));
        ++events_;
    }
    bool finished() override { return events_ >= events_max_; }
    Texts lines;

private:
    std::size_t events_max_, events_ = 0;
};

Texts follow_script(Scripted& scripted, std::size_t events) {
    Notes notes(events);
    follow(*scripted.client, resources::k_nodes, {}, notes);
    return notes.lines;
}

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("WATCH: from the list's version on, with bookmarks") {
    Scripted scripted({reply(200, node_list({"a"}, "5")),
                       stream({event("ADDED", "b", "6"), event("MODIFIED", "b", "7"), event("DELETED", "a", "8")})});
    CHECK(follow_script(scripted, 3) == Texts{"list a", "+b", "~b", "-a"});
    CHECK(scripted.targets()[1] ==
          "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=25&resourceVersion=5");
}

TEST_CASE("WATCH: closed every time, it goes on from the last version seen, bookmarks count") {
    Scripted scripted({reply(200, node_list({}, "5")), stream({event("ADDED", "a", "6")}),
                       stream({event("BOOKMARK", "", "60")}), stream({event("ADDED", "b", "61")})});
    CHECK(follow_script(scripted, 2) == Texts{"list", "+a", "+b"});
    const auto targets = scripted.targets();
    CHECK(targets[2].ends_with("resourceVersion=6"));
    CHECK(targets[3].ends_with("resourceVersion=60"));
}

/// Half a minute passes whenever somebody asks whether the watch is still wanted; has finished with the second list.
class Patient final : public WatchReceiver {
public:
    explicit Patient(SleepyClock& clock) : clock_(clock) {}
    void listed(std::vector<value::Node> objects) override {
        for (const auto& name : names_of(objects)) { lists.push_back(name); }
    }
    void changed(const WatchEvent& /*event*/) override {}
    bool finished() override {
        clock_.elapsed += seconds(30);
        return lists.size() == 2;
    }
    Texts lists;

private:
    SleepyClock& clock_;
};

TEST_CASE("WATCH: one that says nothing for all of its time is not believed, and listed again") {
    Scripted scripted({reply(200, node_list({"a"}, "5")), stream({event("BOOKMARK", "", "7")}), reply(200, ""),
                       reply(200, node_list({"b"}, "9"))});
    Patient patient(scripted.clock);
    follow(*scripted.client, resources::k_nodes, {}, patient);
    CHECK(patient.lists == Texts{"a", "b"});
    CHECK(scripted.targets()[2].ends_with("resourceVersion=7"));
}

TEST_CASE("WATCH: 410 as HTTP status: listed again") {
    Scripted scripted({reply(200, node_list({"a"}, "5")), status_reply(410, "Gone", "too old"),
                       reply(200, node_list({"b"}, "9")), stream({event("ADDED", "c", "10")})});
    CHECK(follow_script(scripted, 1) == Texts{"list a", "list b", "+c"});
    CHECK(scripted.targets()[3].ends_with("resourceVersion=9"));
}

TEST_CASE("WATCH: 410 as an ERROR event of a 200: listed again") {
    Scripted scripted({reply(200, node_list({"a"}, "5")), stream({k_expired_event}), reply(200, node_list({"b"}, "9")),
                       stream({event("ADDED", "c", "10")})});
    CHECK(follow_script(scripted, 1) == Texts{"list a", "list b", "+c"});
}

TEST_CASE("WATCH: 410 for ever does not become a busy loop") {
    std::vector<FakeReply> script;
    for (int i = 0; i < 6; ++i) {
        script.push_back(reply(200, node_list({}, "5")));
        script.push_back(stream({k_expired_event}));
    }
    script.push_back(reply(200, node_list({}, "5")));
    script.push_back(stream({event("ADDED", "c", "10")}));
    Scripted scripted(std::move(script));
    follow_script(scripted, 1);
    REQUIRE(scripted.clock.sleeps.size() == 6);
    CHECK(scripted.clock.sleeps[0] == milliseconds(500));
    CHECK(scripted.clock.sleeps[5] == milliseconds(15'000));
}

TEST_CASE("WATCH: 504 Too large resource version is tried again") {
    Scripted scripted({reply(200, node_list({}, "5")),
                       status_reply(504, "Timeout", "Too large resource version: 9, current: 5"),
                       stream({event("ADDED", "c", "10")})});
    CHECK(follow_script(scripted, 1) == Texts{"list", "+c"});
}

TEST_CASE("WATCH: the network cuts where it likes, in the middle of a character too") {
    const std::string line = event("ADDED", "n\xc3\xa4me", "6");
    std::vector<std::string> bytes;
    for (const char byte : line) { bytes.emplace_back(1, byte); }
    Scripted scripted({reply(200, node_list({}, "5")), stream(bytes)});
    CHECK(follow_script(scripted, 1) == Texts{"list", "+n\xc3\xa4me"});
}

TEST_CASE("WATCH: two events in one piece, blank lines, events of unknown types") {
    Scripted scripted(
        {reply(200, node_list({}, "5")),
         stream({event("ADDED", "a", "6") + "\n" + event("STRANGE", "x", "6") + event("ADDED", "b", "7")})});
    CHECK(follow_script(scripted, 2) == Texts{"list", "+a", "+b"});
}

TEST_CASE("WATCH: a dead connection is given up") {
    Scripted scripted({stream({event("ADDED", "a", "6")}, 1500), stream({event("ADDED", "b", "7")})});
    std::string version = "5";
    Texts seen;
    const auto receive = [&](const WatchEvent& found) {
        seen.push_back(found.object.get_string({"metadata", "name"}));
        return true;
    };
    // Half-open: no data and no end. The receiver's own check is what ends it here.
    const auto start = std::chrono::steady_clock::now();
    const auto stop = [&] { return std::chrono::steady_clock::now() - start > milliseconds(100); };
    CHECK(watch_once(*scripted.client, resources::k_nodes, {}, version, seconds(5), receive, stop) ==
          WatchEnd::stopped);
    CHECK(version == "6");
    CHECK(watch_once(*scripted.client, resources::k_nodes, {}, version, seconds(-9), receive) == WatchEnd::silent);
    CHECK(scripted.outages.empty());
}

TEST_CASE("WATCH: broken off in the middle of an event, the event comes with the next connection") {
    FakeReply broken = reply(200, event("ADDED", "a", "6") + event("ADDED", "b", "7"));
    broken.announced_length = 10'000;
    broken.reset_after = broken.body.size() - 20;
    Scripted scripted({reply(200, node_list({}, "5")), broken, stream({event("ADDED", "b", "7")})});
    CHECK(follow_script(scripted, 2) == Texts{"list", "+a", "+b"});
    CHECK(scripted.targets()[2].ends_with("resourceVersion=6"));
}

TEST_CASE("wait_for: there at the first look, by an event, by the next look, or never") {
    const auto is_ready = [](const std::optional<value::Node>& node) {
        return node && node->get_string({"metadata", "resourceVersion"}) == "8";
    };
    const std::string ready = R"({"kind":"Node","metadata":{"name":"node-a","resourceVersion":"8"}})";
    SUBCASE("first look") {
        Scripted scripted({reply(200, ready)});
        CHECK(wait_for(*scripted.client, resources::k_nodes, k_node, is_ready, seconds(60)));
    }
    SUBCASE("event") {
        Scripted scripted({reply(200, k_node_json), stream({event("MODIFIED", "node-a", "8")})});
        CHECK(wait_for(*scripted.client, resources::k_nodes, k_node, is_ready, seconds(60)));
        CHECK(scripted.targets()[1].find("resourceVersion=7&fieldSelector=metadata.name%3Dnode-a") !=
              std::string::npos);
        CHECK(scripted.targets()[1].find("timeoutSeconds=10&") != std::string::npos);
    }
    SUBCASE("no event ever comes: the next look finds it") {
        Scripted scripted({reply(200, k_node_json), stream({"\n"}), reply(200, ready)});
        CHECK(wait_for(*scripted.client, resources::k_nodes, k_node, is_ready, seconds(60)));
    }
    SUBCASE("the object goes") {
        Scripted scripted({reply(200, k_node_json), stream({event("DELETED", "node-a", "9")})});
        CHECK(wait_for(
            *scripted.client, resources::k_nodes, k_node, [](const auto& node) { return !node; }, seconds(60)));
    }
    SUBCASE("never") {
        std::vector<FakeReply> script;
        for (int i = 0; i < 100; ++i) {
            script.push_back(reply(200, k_node_json));
            script.push_back(stream({"\n"}));
        }
        Scripted scripted(std::move(script));
        CHECK_FALSE(wait_for(*scripted.client, resources::k_nodes, k_node, is_ready, seconds(20)));
        CHECK(scripted.clock.elapsed == seconds(20));
        CHECK(scripted.server.requests().size() < 20);
    }
}

}
