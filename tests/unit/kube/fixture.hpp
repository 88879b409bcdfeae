// SPDX-License-Identifier: Apache-2.0
// A client whose server answers by a script and whose clock never really waits.
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.hpp"
#include "support/fake_server.hpp"
#include "value/reader.hpp"

namespace kmm::kube::test {

using kmm::test::FakeReply;
using kmm::test::FakeRequest;
using kmm::test::FakeServer;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Time goes on only by sleeping.
class SleepyClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return start_unix + elapsed.count() / 1000; }
    [[nodiscard]] milliseconds monotonic() const override { return elapsed; }
    [[nodiscard]] milliseconds with_suspend() const override { return elapsed + suspended; }
    bool sleep_for(milliseconds duration) override {
        sleeps.push_back(duration);
        elapsed += duration;
        if (on_sleep) { on_sleep(); }
        return !interrupted;
    }
    std::int64_t start_unix = 1'800'000'000;
    milliseconds elapsed{}, suspended{};
    std::vector<milliseconds> sleeps;
    std::function<void()> on_sleep;
    bool interrupted = false;
};

/// Always the middle: no wait is changed by chance.
class EvenRandom final : public sys::Random {
public:
    void fill(std::span<std::uint8_t> bytes) override {
        for (auto& byte : bytes) { byte = 0; }
        if (!bytes.empty()) { bytes.back() = 0x80; }
    }
};

inline FakeReply reply(int status, std::string body, std::vector<std::pair<std::string, std::string>> headers = {}) {
    FakeReply result;
    result.status = status;
    result.body = std::move(body);
    result.headers = std::move(headers);
    result.headers.emplace_back("Content-Type", "application/json");
    return result;
}

inline FakeReply status_reply(int status, const std::string& reason, const std::string& message,
                              const std::string& causes = "[]") {
    return reply(status, R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":")" + reason +
                             R"(","message":")" + message + R"(","details":{"causes":)" + causes + R"(},"code":)" +
                             std::to_string(status) + "}");
}

inline FakeReply no_answer() {
    FakeReply result;
    result.no_answer = true;
    return result;
}

/// A server that answers one request after the other by the script, and a client that talks to it.
class Scripted {
public:
    explicit Scripted(std::vector<FakeReply> script, ClientOptions options = {})
        : script_(std::make_move_iterator(script.begin()), std::make_move_iterator(script.end())),
          server([this](const FakeRequest&) { return next(); }) {
        Connection connection;
        connection.server = "http://127.0.0.1:" + std::to_string(server.port());
        connect(std::move(connection), std::move(options));
    }

    void connect(Connection connection, ClientOptions options) {
        options.observer.on_outage = [this](const Outage& outage) { outages.push_back(outage); };
        options.observer.on_return = [this](milliseconds) { ++returns; };
        options.observer.on_warning = [this](std::string_view text) { warnings.emplace_back(text); };
        client = std::make_unique<Client>(std::move(connection),
                                          Seams{[] { return std::make_unique<net::CurlHttpClient>(); }, clock, random},
                                          std::move(options));
    }

    [[nodiscard]] std::vector<std::string> targets() const {
        std::vector<std::string> result;
        for (const auto& request : server.requests()) { result.push_back(request.method + " " + request.target); }
        return result;
    }

    SleepyClock clock;
    EvenRandom random;
    std::vector<Outage> outages;
    std::vector<std::string> warnings;
    int returns = 0;

private:
    FakeReply next() {
        if (script_.empty()) { return reply(599, "the script has ended"); }
        FakeReply result = std::move(script_.front());
        script_.pop_front();
        return result;
    }

    std::deque<FakeReply> script_;

public:
    FakeServer server;
    std::unique_ptr<Client> client;
};

inline value::Node tree(const std::string& json) {
    Diagnostics faults;
    auto documents = value::read_any(json, "test", faults);
    REQUIRE(documents.size() == 1);
    return documents.front().root;
}

/// Runs and returns the error, or fails.
template <typename Body>
Error error_of(Body&& body) {
    try {
        static_cast<void>(body());
    } catch (const Error& error) {
        return error;
    }
    FAIL("expected an error");
    return bug("unreachable");
}

inline const Key k_node{"", "node-a"};
inline const std::string k_node_json =
    R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"node-a","resourceVersion":"7","uid":"u1"}})";

/// A NodeList of `names`.
inline std::string node_list(const std::vector<std::string>& names, const std::string& version,
                             const std::string& token = "") {
    std::string items;
    for (const auto& name : names) {
        items += (items.empty() ? "" : ",") + std::string(R"({"metadata":{"name":")") + name + R"("}})";
    }
    return R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":")" + version + R"(","continue":")" +
           token + R"("},"items":[)" + items + "]}";
}

inline std::vector<std::string> names_of(const std::vector<value::Node>& objects) {
    std::vector<std::string> names;
    for (const auto& object : objects) { names.push_back(object.get_string({"metadata", "name"})); }
    return names;
}

using Texts = std::vector<std::string>;

}  // namespace kmm::kube::test
