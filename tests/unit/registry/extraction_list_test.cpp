// SPDX-License-Identifier: Apache-2.0
// The list of an extraction in its file: one that is cut, changed or lies is never used, and one of an earlier form is
// none.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "registry/pull/cache.hpp"
#include "unit/registry/extraction_fixture.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

namespace {

/// The lines of a list with the line that proves them, so that only the rules on what they say are left to refuse them.
std::string with_end(const std::string& lines) {
    return lines + "end " + std::to_string(std::count(lines.begin(), lines.end(), '\n') - 1) + " " + sha256(lines) +
           "\n";
}

/// The same without that line.
std::string without_end(const std::string& text) { return text.substr(0, text.rfind("\nend ") + 1); }

/// As lists were written before: a line with the digest of the rest, and one JSON text.
std::string former_list(const registry::ExtractionHead& head) {
    const std::string body = value::to_json(value::Node::mapping({{"key", head.key.text},
                                                                  {"manifest", head.key.manifest.to_string()},
                                                                  {"entries", value::Node::sequence()}})) +
                             "\n";
    return "kmm-extraction 1 " + sha256(body) + "\n" + body;
}

struct ListOfText {
    registry::ReadExtraction read;
    std::vector<registry::ExtractionEntry> entries;
    [[nodiscard]] bool is_sound() const { return read.state == registry::ListState::sound; }
};

ListOfText read_list_text(const std::string& text) {
    const sys::Fd fd(::memfd_create("list", MFD_CLOEXEC));
    REQUIRE(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ListOfText list;
    list.read = registry::read_extraction(
        fd.get(), [&](const registry::ExtractionEntry& entry) { list.entries.push_back(entry); });
    const registry::ListState proven = registry::read_extraction(fd.get()).state;
    const bool agree = proven == list.read.state || (proven == registry::ListState::sound &&
                                                     list.read.state == registry::ListState::damaged);  // proven lies
    CHECK(agree);
    return list;
}

std::string list_text(const registry::ExtractionHead& head, const std::vector<registry::ExtractionEntry>& entries) {
    std::string text;
    registry::write_extraction(
        head, [&](const auto& take) { std::for_each(entries.begin(), entries.end(), take); },
        [&](std::string_view piece) { text += piece; });
    return text;
}

/// `other` in the place of the only list is named damaged by verify; a pull warns of it, extracts the same, and writes
/// `text` again.
void check_damaged(ExtractionScene& scene, const Outcome& plain, const fs::path& list, const std::string& other,
                   const std::string& text) {
    put_bytes(list, other);
    CHECK(registry::Cache(scene.directory).verify().damaged_lists == std::vector<std::string>{list.filename()});
    const Outcome outcome = scene.pull();
    check_same(outcome, plain);
    CHECK(outcome.warned("cache-damaged: the list of files of " + plain.result.digest));
    CHECK(bytes_of(list) == text);
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("a list with any byte changed, or cut anywhere, is never used and never an error") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    REQUIRE(scene.lists().size() == 1);
    const fs::path list = scene.lists().front();
    const std::string text = bytes_of(list);
    const ListOfText whole = read_list_text(text);
    REQUIRE(whole.is_sound());
    CHECK(list_text(whole.read.head, whole.entries) == text);
    const auto is_damaged = [](const std::string& other) {
        return read_list_text(other).read.state == registry::ListState::damaged;
    };
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (const char bit : {'\x01', '\x02', '\x80'}) {
            std::string other = text;
            other[at] = static_cast<char>(other[at] ^ bit);
            REQUIRE_MESSAGE(is_damaged(other), "byte " << at);
        }
        REQUIRE_MESSAGE(is_damaged(text.substr(0, at)), "cut at byte " << at);
        REQUIRE_MESSAGE(is_damaged(text.substr(0, at) + text.substr(at + 1)), "without byte " << at);
    }
    CHECK(is_damaged(text + " "));
    CHECK(is_damaged(text + "\n"));
    CHECK(is_damaged(text + text));
    CHECK(is_damaged(without_end(text) + "end 1 " + sha256(without_end(text)) + "\n"));
    CHECK(read_list_text(with_end(without_end(text))).is_sound());
    const std::size_t step = text.size() / 12;
    for (std::size_t at = 0; at < text.size(); at += step) {
        CAPTURE(at);
        std::string other = text;
        other[at] = static_cast<char>(other[at] ^ 1);
        check_damaged(scene, plain, list, at % 2 == 0 ? other : text.substr(0, at), text);
    }
}

TEST_CASE("a list that lies keeps to the rules of a layer") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    const fs::path list = scene.lists().front();
    const std::string text = bytes_of(list);
    const std::string body = without_end(text);
    const std::string path = R"("path":")" + k_modules + R"(/a.ko")";
    const std::string link = R"("target":"sub/b.ko")";
    const std::string hard = R"("target":")" + k_modules + R"(/sub/b.ko")";
    const std::string digest = plain.result.digest;
    for (const std::string& other : {replaced(body, path, R"("path":"../../victim")"),
                                     replaced(body, path, R"("path":"/etc/victim")"),
                                     replaced(body, path, R"("path":"victim")"),
                                     replaced(body, path, R"("path":"")"),
                                     replaced(body, path, R"("path":")" + k_modules + R"(/../../../../x")"),
                                     replaced(body, path, R"("path":")" + k_modules + R"(/sub/b.ko")"),
                                     replaced(body, path, R"("path":")" + k_modules + R"(/.wh.a")"),
                                     replaced(body, link, R"("target":"/etc/passwd")"),
                                     replaced(body, link, R"("target":"../../../../../../../victim")"),
                                     replaced(body, link, R"("target":"link.ko")"),
                                     replaced(body, link, R"("target":"")"),
                                     replaced(body, hard, R"("target":"/etc/passwd")"),
                                     replaced(body, hard, R"("target":"etc/passwd")"),
                                     replaced(body, R"("kind":"symlink")", R"("kind":"special")"),
                                     replaced(body, R"("kind":"symlink")", R"("kind":"directory")"),
                                     replaced(body, R"("size":300000)", R"("size":299999)"),
                                     replaced(body, R"("size":300000)", R"("size":-1)"),
                                     replaced(body, R"("size":300000)", R"("size":99999999999999)"),
                                     replaced(body, R"("kernels":[)", R"("kernels":["../x",)"),
                                     replaced(body, "}\n", "}\n7\n"),
                                     replaced(body, "}\n", "}\n\n"),
                                     replaced(body, R"("manifest":"sha256:)", R"("manifest":"md5:)"),
                                     replaced(body, R"(\"manifest\":\"sha256:)", R"(\"manifest\":\"sha512:)"),
                                     std::string("kmm-extraction 2 {}\n"),
                                     std::string("kmm-extraction 2 []\n"),
                                     std::string("kmm-extraction 2 \n"),
                                     std::string("\n"),
                                     std::string()}) {
        CAPTURE(other);
        put_bytes(list, with_end(other));
        const Outcome outcome = scene.pull();
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        for (const auto& [name, content] : outcome.files) {
            CHECK_MESSAGE((name.starts_with(k_modules + "/") || name.starts_with("firmware/")), name);
        }
        // A link that could not be told from a directory is the one lie that breaks no rule.
        if (other.find(R"("kind":"directory","target")") == std::string::npos) {
            check_same(outcome, plain);
            CHECK(outcome.warned("cache-damaged"));
            CHECK(bytes_of(list) == text);
        }
    }
    // The list of something else under this name.
    static_cast<void>(scene.pull([](auto& request) { request.firmware_path = ""; }));
    for (const fs::path& other : scene.lists()) {
        if (other != list) {
            put_bytes(list, bytes_of(other));
        }
    }
    check_same(scene.pull(), plain);
    CHECK(bytes_of(list) == text);
}

TEST_CASE("names that a list cannot hold: the layers are read each time") {
    ExtractionScene scene;
    scene.registry.add_image("v1", {plain_layer(TarBuilder()
                                                    .file(k_modules + "/a.ko", "a")
                                                    .symlink(k_modules + "/l.ko", "\xff/../a.ko")
                                                    .dir(k_modules + "/\x7f")
                                                    .finish())});
    const Outcome bad = scene.pull();
    CHECK(bad.code() == "image-unsafe");
    scene.registry.add_image(
        "v1",
        {plain_layer(TarBuilder().file(k_modules + "/a.ko", "a").file("opt/lib/modules/\xff/x.ko", "x").finish())});
    for (int round = 0; round < 2; ++round) {
        const Outcome outcome = scene.pull();
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.result.kernels_found == std::vector<std::string>{k_kernel, "\xff"});
        CHECK(scene.lists().empty());
    }
}

TEST_CASE("a tree that its list would not give again is not kept") {
    const std::vector<std::pair<std::string, std::string>> trees = {
        {"a kernel that is a link",
         TarBuilder().file(k_modules + "/a.ko", "a").symlink("opt/lib/modules/other", k_kernel).finish()},
        {"too many entries with the directories", TarBuilder().file(k_modules + "/1/2/3/4/5/6/7/8/a.ko", "a").finish()},
    };
    for (const auto& [what, tree] : trees) {
        CAPTURE(what);
        ExtractionScene scene;
        scene.registry.add_image("v1", {plain_layer(tree)});
        const Tweak tweak = [](auto& request) {
            request.all_kernels = true;
            request.limits.entries = 9;
        };
        const Outcome plain = scene.pull(tweak, false);
        for (int round = 0; round < 2; ++round) {
            const Outcome outcome = scene.pull(tweak);
            check_same(outcome, plain);
            CHECK_FALSE(outcome.warned("cache-"));
            CHECK(scene.lists().empty());
        }
    }
}

TEST_CASE("a list of the first form is none, and no fault") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    const fs::path list = scene.lists().front();
    const std::string text = bytes_of(list);
    const std::string former = former_list(read_list_text(text).read.head);
    CHECK(read_list_text(former).read.state == registry::ListState::former);
    for (std::size_t at = 0; at < former.size(); ++at) {
        std::string other = former;
        other[at] = static_cast<char>(other[at] ^ 1);
        const bool refused = read_list_text(other).read.state == registry::ListState::damaged &&
                             read_list_text(former.substr(0, at)).read.state == registry::ListState::damaged;
        REQUIRE_MESSAGE(refused, "byte " << at);
    }
    put_bytes(list, former);
    {
        const registry::Cache cache(scene.directory);
        const auto report = cache.verify();
        CHECK(report.damaged_lists.empty());
        CHECK(report.damaged.empty());
        REQUIRE(cache.images().size() == 1);
        CHECK(cache.images().front().extracted == 0);
        CHECK(cache.extractions().size() == 1);
        CHECK_FALSE(cache.extractions().front().ours);
    }
    const Outcome again = scene.pull();
    check_same(again, plain);
    CHECK(again.result.warnings == plain.result.warnings);
    CHECK(bytes_of(list) == text);
    put_bytes(list, former);
    REQUIRE(registry::Cache(scene.directory).prune(1U << 30U).has_value());
    CHECK(scene.lists().empty());
    CHECK_FALSE(fs::exists(scene.blob(std::string(300'000, 'a'))));
    check_same(scene.pull(), plain);
    // One that was changed is damaged, of whichever form it is.
    check_damaged(scene, plain, list, former + " ", text);
}

TEST_CASE("prune takes lists of other versions, and the files that they alone need") {
    ExtractionScene scene;
    REQUIRE(scene.pull().code() == "ok");
    REQUIRE(scene.lists().size() == 1);
    const fs::path ours = scene.lists().front();
    ListOfText list = read_list_text(bytes_of(ours));
    REQUIRE(list.is_sound());
    registry::ExtractionKey& key = list.read.head.key;
    CHECK(key.is_ours());
    key.text = replaced(key.text, KMM_VERSION, "0.0.1");
    CHECK_FALSE(key.is_ours());
    const std::string own_file = "of the other version";
    std::ofstream(scene.blob(own_file)) << own_file;
    list.entries.push_back({.path = k_modules + "/zz.ko",
                            .digest = {image::DigestAlgorithm::sha256, sha256(own_file).substr(7)},
                            .size = own_file.size()});
    const fs::path other = ours.parent_path() / key.name();
    std::ofstream(other) << list_text(list.read.head, list.entries);
    registry::Cache cache(scene.directory);
    CHECK(cache.extractions().size() == 2);
    CHECK(cache.verify().damaged_lists.empty());
    REQUIRE(cache.prune(1U << 30U).has_value());
    CHECK(scene.lists() == std::vector<fs::path>{ours});
    CHECK_FALSE(fs::exists(scene.blob(own_file)));
    CHECK(cache.verify().damaged.empty());
    CHECK(cache.images().size() == 1);
}

TEST_CASE("prune drops a list that is damaged behind its first line, and the files that it alone needs") {
    ExtractionScene scene;
    REQUIRE(scene.pull().code() == "ok");
    REQUIRE(scene.pull([](auto& request) { request.firmware_path = ""; }).code() == "ok");
    REQUIRE(scene.lists().size() == 2);
    for (const fs::path& list : scene.lists()) {
        std::string text = bytes_of(list);
        if (text.find("firmware/one.bin") != std::string::npos) {
            text[text.size() - 2] = text[text.size() - 2] == '0' ? '1' : '0';
            put_bytes(list, text);
        }
    }
    registry::Cache cache(scene.directory);
    CHECK(fs::exists(scene.blob("fw")));
    const auto report = cache.prune(1U << 30U);
    REQUIRE(report.has_value());
    CHECK(report->blobs == 1);
    CHECK(report->images.empty());
    CHECK(scene.lists().size() == 1);
    CHECK_FALSE(fs::exists(scene.blob("fw")));
    CHECK(fs::exists(scene.blob(std::string(300'000, 'a'))));
    CHECK(cache.verify().damaged_lists.empty());
}

TEST_CASE("values of digests: the largest of each, in any order") {
    registry::DigestValues values;
    std::uint64_t sum = 0;
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t number = 0; number < 1000; ++number) {
            values.add(registry::digest_of(std::to_string(number * 7 % 1000)), number * 7 % 1000 + round);
            sum += round == 2 ? number + round : 0;
        }
    }
    values.settle();
    CHECK(values.sum() == sum);
    CHECK(values.find(registry::digest_of("999")) == 1001);
    CHECK_FALSE(values.find(registry::digest_of("1000")));
    CHECK_FALSE(registry::DigestValues().find(registry::digest_of("")));
    values.add(registry::digest_of("1000", image::DigestAlgorithm::sha512), 5);
    values.settle();
    CHECK(values.find(registry::digest_of("1000", image::DigestAlgorithm::sha512)) == 5);
    CHECK(values.sum() == sum + 5);
}

}
