// SPDX-License-Identifier: Apache-2.0
// A process that reads layers and documents and is taken over, or dies: what the pull makes of it.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "registry/client/document_service.hpp"
#include "registry/client/request.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sandbox/confined.hpp"
#include "sandbox/message.hpp"
#include "sys/shared_ring.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Serve = std::function<void(const std::string& message, sandbox::Channel& channel, sandbox::Channel& answers)>;

/// The services of an image, with `instead` in place of what that of layers does.
using Spoilt = std::function<void(const Serve& real, const std::string& message, sandbox::Channel& channel,
                                  sandbox::Channel& answers)>;
std::vector<sandbox::Service> spoilt(const Spoilt& instead) {
    sandbox::Service service = registry::layer_service();
    service.serve = [instead, real = service.serve](const std::string& message, sandbox::Channel& channel,
                                                    sandbox::Channel& answers) {
        instead(real, message, channel, answers);
    };
    return {service, registry::document_service()};
}

/// The same of documents.
std::vector<sandbox::Service> spoilt_documents(const Serve& instead) {
    sandbox::Service service = registry::document_service();
    service.serve = instead;
    return {registry::layer_service(), service};
}

/// Whether this process has served before; only children of the objects below call it.
bool is_second_request() {
    static int requests = 0;
    return ++requests > 1;
}

// Begun before there are threads.
sandbox::Confined g_once(spoilt([](const Serve& real, const std::string& message, sandbox::Channel& channel,
                                sandbox::Channel& answers) {
    if (is_second_request()) static_cast<void>(::raise(SIGABRT));
    real(message, channel, answers);
}));
sandbox::Confined g_dying(spoilt([](const Serve&, const std::string&, sandbox::Channel&, sandbox::Channel&) {
    static_cast<void>(::raise(SIGABRT));
}));
sandbox::Confined g_killed(spoilt([](const Serve&, const std::string&, sandbox::Channel&, sandbox::Channel&) {
    static_cast<void>(::raise(SIGKILL));
}));
sandbox::Confined g_babbling(spoilt([](const Serve&, const std::string&, auto& channel, auto&) {
    sandbox::MessageWriter nonsense;
    nonsense.number(0);          // an entry
    nonsense.number(~0ULL / 2);  // with a name that long
    static_cast<void>(channel.send(nonsense.bytes()));
}));
/// Says that a file lies beside the directory.
void send_lie(sandbox::Channel& channel) {
    sandbox::MessageWriter lie;
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
    std::string piece;
    static_cast<void>(channel.receive(piece, 1U << 20U));
}
sandbox::Confined g_lying(spoilt([](const Serve&, const std::string&, auto& channel, auto&) {
    std::string piece;
    while (channel.receive(piece, 1U << 20U) && piece.front() == 'b') {}
    send_lie(channel);
}));
sandbox::Confined g_lying_of_archives(spoilt([](const Serve&, const std::string&, auto& channel, auto&) {
    send_lie(channel);
}));

sandbox::Confined g_dying_of_documents(spoilt_documents([](const std::string&, sandbox::Channel&, sandbox::Channel&) {
    static_cast<void>(::raise(SIGABRT));
}));
sandbox::Confined g_babbling_of_documents(spoilt_documents([](const std::string&, auto& channel, auto&) {
    sandbox::MessageWriter nonsense;
    nonsense.number(0);    // a tree
    nonsense.number(6);    // a mapping
    nonsense.number(~0U);  // of so many members
    static_cast<void>(channel.send(nonsense.bytes()));
}));
sandbox::Confined g_deep_in_documents(spoilt_documents([](const std::string&, auto& channel, auto&) {
    sandbox::MessageWriter nonsense;
    nonsense.number(0);
    for (int i = 0; i < 10'000; ++i) {  // lists in lists
        nonsense.number(5);
        nonsense.number(1);
    }
    nonsense.number(0);
    static_cast<void>(channel.send(nonsense.bytes()));
}));
/// Dies of a payload where it has read another document before.
sandbox::Confined g_single_minded(spoilt_documents(
    [real = registry::document_service().serve](const std::string& message, sandbox::Channel& channel,
                                                sandbox::Channel& answers) {
        const bool is_payload = message.find("cosign container image signature") != std::string::npos;
        if (is_second_request() && is_payload) static_cast<void>(::raise(SIGABRT));
        real(message, channel, answers);
    }));

sandbox::Confined g_real({registry::layer_service(), registry::document_service()});
sandbox::Confined g_overstating(spoilt([](const Serve&, const std::string&, auto& channel, auto&) {
    sandbox::MessageWriter lie;
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
}));

/// Bytes that no compression makes shorter.
std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 1;
    for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
    return bytes;
}

Outcome pull_with(sandbox::Confined& parser, const FakeRegistry& registry) {
    return pull_from(registry, [&](registry::PullRequest& request) { request.parser = &parser; });
}

Outcome pull_archive(sandbox::Confined& parser, const std::string& path) {
    return pull_from(FakeRegistry(), [&](registry::PullRequest& request) {
        request.reference = "docker-archive:" + path;
        request.parser = &parser;
    });
}

/// What docker save writes; the layers stand in the archive in reverse, so that each is found only from its start.
std::string saved_archive(const std::vector<TestLayer>& layers) {
    TarBuilder archive;
    std::string ids, names;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const char* comma = i == 0 ? "" : ",";
        ids += fmt::format("{}\"{}\"", comma, layers[i].diff_id);
        names += fmt::format("{}\"{}.tar\"", comma, i);
        const auto place = layers.size() - 1 - i;
        archive.file(fmt::format("{}.tar", place), layers[place].bytes);
    }
    archive.file("c.json", fmt::format(R"({{"architecture":"amd64","os":"linux",)"
                                       R"("rootfs":{{"type":"layers","diff_ids":[{}]}}}})", ids));
    archive.file("manifest.json", fmt::format(R"([{{"Config":"c.json","Layers":[{}]}}])", names));
    return archive.finish();
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

TEST_CASE("confined: an archive is taken apart there, in whatever order its files are wanted") {
    const sys::TempDir top("kmm-test-");
    std::vector<TestLayer> layers;
    std::map<std::string, std::string> contents;
    for (int i = 0; i < 5; ++i) {
        const std::string file = fmt::format("{}/{}.ko", k_modules, i);
        contents[file] = noise(i == 3 ? 2 * sys::k_ring_bytes : 20'000U * static_cast<unsigned>(i) + 1);
        const auto tar = TarBuilder().file(file, contents[file]).finish();
        layers.push_back(i % 2 == 0 ? gzip_layer(tar) : plain_layer(tar));
    }
    const std::string archive = saved_archive(layers);
    for (const std::string& bytes : {archive, gzip(archive), zstd(archive)}) {
        std::ofstream(top.path() + "/image.tar", std::ios::binary) << bytes;
        const Outcome outcome = pull_archive(g_real, top.path() + "/image.tar");
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files == contents);
        // Cut off within the first layer's bytes, and in a name.
        for (const std::size_t size : {bytes.size() / 2, std::size_t{300}}) {
            std::ofstream(top.path() + "/cut.tar", std::ios::binary) << bytes.substr(0, size);
            const Outcome cut = pull_archive(g_real, top.path() + "/cut.tar");
            CHECK(cut.code() == "bad-layout");
            CHECK(cut.message().starts_with("the image's archive cannot be read: "));
        }
    }
}

TEST_CASE("confined: a process that dies, babbles or lies of an archive ends the pull") {
    const sys::TempDir top("kmm-test-");
    const std::string path = top.path() + "/image.tar";
    std::ofstream(path, std::ios::binary) << saved_archive({small_layer()});
    const Outcome dead = pull_archive(g_dying, path);
    CHECK(dead.code() == "parser-crashed");
    CHECK(dead.message().find("SIGABRT") != std::string::npos);
    CHECK(pull_archive(g_killed, path).code() == "parser-killed");
    CHECK(pull_archive(g_babbling, path).code() == "parser-crashed");
    CHECK(pull_archive(g_overstating, path).code() == "parser-crashed");
    CHECK(pull_archive(g_lying_of_archives, path).code() == "image-unsafe");
    CHECK(pull_archive(g_real, path).code() == "ok");
}

TEST_CASE("confined: a manifest is read there, and a process that dies or babbles of it ends the pull") {
    FakeRegistry registry;
    registry.add_image("v1", {small_layer()});
    const Outcome dead = pull_with(g_dying_of_documents, registry);
    CHECK(dead.code() == "parser-crashed");
    CHECK(dead.exit() == Exit::unsafe);
    CHECK(dead.message().find("SIGABRT") != std::string::npos);
    CHECK(dead.files.empty());
    CHECK(pull_with(g_babbling_of_documents, registry).code() == "parser-crashed");
    CHECK(pull_with(g_deep_in_documents, registry).code() == "parser-crashed");
}

TEST_CASE("confined: documents are what they are when they are read here, and so are their faults") {
    const auto outcome = [](sandbox::Confined* parser, const std::string& text) {
        try {
            return "ok " + value::to_json(registry::read_image_document(parser, text, "manifest", "bad-manifest"));
        } catch (const Error& error) {
            std::string said = fmt::format("{} {} {} {}", static_cast<int>(error.exit()), error.code(),
                                           error.message(), error.hint());
            for (const auto& [key, value] : error.details()) said += fmt::format(" {}={}", key, value);
            return said;
        }
    };
    std::string large = "[";
    for (int i = 0; i < 60'000; ++i) large += fmt::format("{{\"number\":{}}},", i);
    const std::string deep(99, '[');
    for (const std::string& text :
         {std::string(
              R"({"a":[1,-2,18446744073709551615,99999999999999999999,1.50,1e300,-0.0,true,false,null],"":""})"),
          std::string(R"(["\u0000\u001f\ud83d\ude00",{},[],{"a":{"b":["c"]}}])"), large + "0]", large, deep,
          deep + std::string(99, ']'), std::string(300, '['), std::string("[" + std::string(200'000, ' ') + "1]"),
          "\"" + std::string(700'000, 'x') + "\"", std::string(), std::string("\xef\xbb\xbf{}"), std::string("{} {}"),
          std::string("{\"a\":1,\"a\":2}"), std::string("\xff"), std::string("nonsense"), std::string("1e999")}) {
        CAPTURE(text.substr(0, 60));
        CHECK(outcome(&g_real, text) == outcome(nullptr, text));
    }
}

TEST_CASE("confined: what a key has signed is read by a process that has read nothing else") {
    const std::string payload =
        R"({"critical":{"type":"cosign container image signature","image":{"docker-manifest-digest":"x"}}})";
    for (int i = 0; i < 2; ++i) {
        CHECK(registry::read_image_document(&g_single_minded, "{}", "manifest", "bad-manifest").is_mapping());
        CHECK(registry::read_signed_payload(&g_single_minded, payload).find("critical") != nullptr);
    }
}

}  // TEST_SUITE
