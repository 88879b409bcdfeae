// SPDX-License-Identifier: Apache-2.0
// A process that reads layers and is taken over, or dies: what the pull makes of it.
#include <doctest/doctest.h>

#include <csignal>
#include <functional>
#include <map>
#include <string>

#include "registry/layer_service.hpp"
#include "sys/confined.hpp"
#include "sys/message.hpp"
#include "sys/shared_ring.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Serve = std::function<void(const std::string& message, sys::Channel& channel, sys::Channel& answers)>;

/// The service of layers, with `instead` in place of what it does.
sys::Service spoilt(const std::function<void(const Serve& real, const std::string& message, sys::Channel& channel,
                                             sys::Channel& answers)>& instead) {
    sys::Service service = registry::layer_service();
    service.serve = [instead, real = service.serve](const std::string& message, sys::Channel& channel,
                                                    sys::Channel& answers) {
        instead(real, message, channel, answers);
    };
    return service;
}

/// Whether this process has served before; only children of the objects below call it.
bool is_second_request() {
    static int requests = 0;
    return ++requests > 1;
}

// Begun before there are threads.
sys::Confined g_once({spoilt([](const Serve& real, const std::string& message, sys::Channel& channel,
                                sys::Channel& answers) {
    if (is_second_request()) static_cast<void>(::raise(SIGABRT));
    real(message, channel, answers);
})});
sys::Confined g_dying({spoilt([](const Serve&, const std::string&, sys::Channel&, sys::Channel&) {
    static_cast<void>(::raise(SIGABRT));
})});
sys::Confined g_killed({spoilt([](const Serve&, const std::string&, sys::Channel&, sys::Channel&) {
    static_cast<void>(::raise(SIGKILL));
})});
sys::Confined g_babbling({spoilt([](const Serve&, const std::string&, sys::Channel& channel, sys::Channel&) {
    sys::MessageWriter nonsense;
    nonsense.number(0);          // an entry
    nonsense.number(~0ULL / 2);  // with a name that long
    static_cast<void>(channel.send(nonsense.bytes()));
})});
sys::Confined g_lying({spoilt([](const Serve&, const std::string&, sys::Channel& channel, sys::Channel&) {
    std::string piece;
    while (channel.receive(piece, 1U << 20U) && piece.front() == 'b') {}
    sys::MessageWriter lie;
    lie.number(0);  // an entry
    lie.text("../../victim");
    lie.number(static_cast<std::uint64_t>(registry::EntryKind::file));
    lie.text("");
    lie.number(1);
    lie.flag(false);
    lie.flag(false);
    lie.number(1);  // whose content follows
    lie.number(1);
    lie.text("x");
    lie.number(3);
    static_cast<void>(channel.send(lie.bytes()));
    static_cast<void>(channel.receive(piece, 1U << 20U));
})});

sys::Confined g_real({registry::layer_service()});
sys::Confined g_overstating({spoilt([](const Serve&, const std::string&, sys::Channel& channel, sys::Channel&) {
    sys::MessageWriter lie;
    lie.number(0);  // an entry
    lie.text("opt/lib/modules/" + k_kernel + "/a.ko");
    lie.number(static_cast<std::uint64_t>(registry::EntryKind::file));
    lie.text("");
    lie.number(4 * sys::k_ring_bytes);
    lie.flag(false);
    lie.flag(false);
    lie.number(1);  // whose content follows
    lie.number(2);  // in the ring
    lie.number(2 * sys::k_ring_bytes);
    static_cast<void>(channel.send(lie.bytes()));
    std::string piece;
    while (channel.receive(piece, 1U << 20U)) {}
})});

/// Bytes that no compression makes shorter.
std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 1;
    for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
    return bytes;
}

Outcome pull_with(sys::Confined& parser, const FakeRegistry& registry) {
    return pull_from(registry, [&](registry::PullRequest& request) { request.parser = &parser; });
}

TestLayer small_layer() {
    return gzip_layer(TarBuilder().file(k_modules + "/a.ko", std::string(100'000, 'a')).finish());
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("confined: a layer that arrives again is read by another process than its wrong bytes") {
    const TestLayer layer = small_layer();
    FakeRegistry registry;
    registry.add_image("v1", {layer});
    int tries = 0;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(sha256(layer.bytes)) == std::string::npos) return std::nullopt;
        FakeReply reply = registry.usual(request);
        if (++tries == 1) reply.body[layer.bytes.size() / 2] ^= 1;
        return reply;
    };
    const Outcome outcome = pull_with(g_once, registry);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(tries == 2);
    CHECK(outcome.files.at(k_modules + "/a.ko").size() == 100'000);
}

TEST_CASE("confined: a process that dies or babbles ends the pull, and nothing is left") {
    FakeRegistry registry;
    registry.add_image("v1", {small_layer()});
    const Outcome dead = pull_with(g_dying, registry);
    CHECK(dead.code() == "parser-crashed");
    CHECK(dead.exit() == Exit::unsafe);
    CHECK(dead.message().find("SIGABRT") != std::string::npos);
    const Outcome killed = pull_with(g_killed, registry);
    CHECK(killed.code() == "parser-killed");
    CHECK(killed.exit() == Exit::io);
    CHECK(pull_with(g_babbling, registry).code() == "parser-crashed");
}

TEST_CASE("confined: large files come as they are, however long they are, and whether they are wanted or not") {
    std::map<std::string, std::string> contents{{"a.ko", noise(2 * sys::k_ring_bytes + 4097)},
                                                {"b.ko", "b"},
                                                {"c.ko", noise(700'000)},
                                                {"d.ko", ""},
                                                {"e.ko", noise(sys::k_ring_bytes)},
                                                {"f.ko", noise(16'385)}};
    TarBuilder tar;
    for (const auto& [name, bytes] : contents) {
        tar.file(k_modules + "/" + name, bytes);
        tar.file("usr/share/" + name, bytes);
    }
    FakeRegistry registry;
    registry.add_image("v1", {gzip_layer(tar.finish())});
    const Outcome outcome = pull_with(g_real, registry);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.size() == contents.size());
    for (const auto& [name, bytes] : contents) CHECK(outcome.files.at(k_modules + "/" + name) == bytes);
}

TEST_CASE("confined: more bytes than shared memory holds are an answer that is not one") {
    FakeRegistry registry;
    registry.add_image("v1", {gzip_layer(TarBuilder().file(k_modules + "/a.ko", noise(400'000)).finish())});
    CHECK(pull_with(g_overstating, registry).code() == "parser-crashed");
    FakeRegistry small;  // nothing is shared
    small.add_image("v1", {small_layer()});
    CHECK(pull_with(g_overstating, small).code() == "parser-crashed");
}

TEST_CASE("confined: what a process says of entries is held to the rules for paths") {
    FakeRegistry registry;
    registry.add_image("v1", {small_layer()});
    CHECK(pull_with(g_lying, registry).code() == "image-unsafe");
}

}  // TEST_SUITE
