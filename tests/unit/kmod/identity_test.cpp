// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/identity.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "digest/digest.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

constexpr const char* k_trailer = "~Module signature appended~\n";

/// `demo` was loaded from a directory; further files can be compared with what is live.
struct Loaded {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};
    sys::TempDir out{"kmm-identity-"};
    KoSpec spec;

    explicit Loaded(const std::string& build_id = "") {
        spec.build_id = build_id;
        CHECK(load(make_ko(spec)).modules.back().action == kmod::Action::loaded);
    }
    kmod::Report load(const std::string& bytes) {
        std::filesystem::remove_all(out.path() + "/opt");
        put(out.path() + "/opt/demo.ko", bytes);
        const auto index = kmod::ModuleIndex::build(out.path() + "/opt", out.path());
        const kmod::LoadRequest request{"demo", {}, {}, {}};
        const auto checked = kmod::preflight(index, request, host.paths);
        kmod::require_passed(checked, request.module);
        return kmod::load_modules(index, checked, request, {}, {host.paths, kernel, clock, {}});
    }
    kmod::IdentityVerdict judge(const std::string& bytes) {
        const std::string path = out.path() + "/other.ko";
        put(path, bytes);
        const kmod::IndexedModule module{kmod::parse_module(bytes, path), path, path, digest::sha256_hex(bytes)};
        return kmod::judge_identity(host.paths, module, kmod::live_module(host.paths, "demo").value());
    }
    /// The same source and build id in other bytes.
    [[nodiscard]] std::string evil() const {
        KoSpec other = spec;
        other.sections = {{".text", "other code"}};
        return make_ko(other);
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("identity: srcversion and build id, where there is neither the origin, else unknown") {
    using kmod::Identity;
    struct Case {
        const char *file_src, *file_id, *live_src, *live_id;
        Identity identity;
        const char* what;
    };
    const Case cases[] = {
        {"A", "", "A", "", Identity::same, "srcversion"},        {"A", "", "B", "", Identity::different, "srcversion"},
        {"A", "01", "A", "02", Identity::different, "build id"}, {"", "01", "", "01", Identity::same, "build id"},
        {"A", "01", "A", "01", Identity::same, "build id"},    {"A", "01", "A", "", Identity::same, "srcversion"},
        {"", "01", "", "02", Identity::different, "build id"},   {"A", "01", "", "01", Identity::same, "build id"},
        {"A", "", "", "01", Identity::different, "srcversion"},  {"", "", "B", "", Identity::different, "srcversion"},
        {"", "", "", "", Identity::unknown, ""},                 {"", "01", "", "", Identity::unknown, ""},
    };
    for (const auto& c : cases) {
        CAPTURE(c.file_src);
        CAPTURE(c.live_src);
        kmod::ModuleFile file;
        if (*c.file_src != '\0') file.modinfo.emplace_back("srcversion", c.file_src);
        file.build_id = c.file_id;
        kmod::LiveModule live;
        live.srcversion = c.live_src;
        live.build_id = c.live_id;
        live.taint = "OE";
        const auto verdict = kmod::compare_identity(file, live);
        CHECK(verdict.identity == c.identity);
        CHECK(verdict.what == c.what);
    }
    kmod::ModuleFile nameless;
    kmod::LiveModule of_the_kernel;
    CHECK(kmod::compare_identity(nameless, of_the_kernel).identity == Identity::different);
    CHECK(kmod::compare_identity(nameless, of_the_kernel).loaded == "in-tree");
    nameless.modinfo.emplace_back("intree", "Y");
    CHECK(kmod::compare_identity(nameless, of_the_kernel).identity == Identity::unknown);
}

TEST_CASE("the bytes that were loaded are the identity, whatever a file declares") {
    Loaded node("0102");
    CHECK(kmod::same_by(node.judge(make_ko(node.spec))) == "sha256");
    const auto verdict = node.judge(node.evil());
    CHECK(verdict.identity == kmod::Identity::different);
    CHECK(verdict.what == "sha256");
    CHECK(verdict.wanted == digest::sha256_hex(node.evil()));
    CHECK(verdict.loaded == digest::sha256_hex(make_ko(node.spec)));
}

TEST_CASE("a load of other bytes of the same source is refused, of the same bytes it says why they are the same") {
    Loaded node;
    const auto again = node.load(make_ko(node.spec));
    CHECK(again.modules.back().action == kmod::Action::already_loaded);
    CHECK(again.modules.back().same_by == "sha256");
    CHECK_THROWS_WITH_AS(node.load(node.evil()), doctest::Contains("another build of module demo is live"), Error);
}

TEST_CASE("an appended signature is none of the code") {
    Loaded node;
    const std::string signature = std::string(16, 's') + std::string(1, '\0') + std::string(1, '\0') +
                                  std::string(1, '\2') + std::string(5, '\0') + std::string("\0\0\0\x10", 4);
    CHECK(kmod::same_by(node.judge(make_ko(node.spec) + signature + k_trailer)) == "sha256");
}

TEST_CASE("a note is about one load only") {
    Loaded node;
    const std::string module = node.host.paths.sys + "/module/demo";
    const auto is_noted = [&] { return kmod::loaded_sha256(node.host.paths, "demo").has_value(); };
    REQUIRE(is_noted());
    SUBCASE("another boot") {
        put(node.host.paths.proc + "/sys/kernel/random/boot_id", "99999999-2222-3333-4444-555555555555\n");
    }
    SUBCASE("another size") { put(module + "/coresize", "20480\n"); }
    SUBCASE("another source") { put(module + "/srcversion", "BBBB\n"); }
    SUBCASE("somebody unloaded it and loaded one of the same size and source") {
        std::filesystem::rename(module, module + ".old");  // keeps the number of the directory from being used again
        node.host.make_live("demo", node.spec.srcversion);
    }
    SUBCASE("a note that was cut") { put(node.host.paths.run + "/bytes/demo", "sha256 " + std::string(64, 'a')); }
    SUBCASE("no note, as of an earlier release") { std::filesystem::remove_all(node.host.paths.run + "/bytes"); }
    CHECK_FALSE(is_noted());
    if (std::filesystem::exists(module)) CHECK(node.judge(node.evil()).what == "srcversion");
    CHECK(kmod::read_record(node.host.paths, "demo"));
}

TEST_CASE("the address counts where both sides were shown it") {
    FakeHost host;
    host.make_live("demo", "AAAA0000");
    const auto address = [&](const char* text) {
        put(host.paths.proc + "/modules", std::string("demo 16384 0 - Live ") + text + " (OE)\n");
    };
    address("0xffffffffc0000000");
    kmod::note_loaded_bytes(host.paths, "demo", std::string(64, 'a'));
    CHECK(kmod::loaded_sha256(host.paths, "demo"));
    address("0x0000000000000000");  // not root
    CHECK(kmod::loaded_sha256(host.paths, "demo"));
    address("0xffffffffc0100000");
    CHECK_FALSE(kmod::loaded_sha256(host.paths, "demo"));
}

TEST_CASE("an unload removes the note, and a load without boot id or size leaves none") {
    Loaded node;
    (void)kmod::unload_modules({{"demo"}}, {node.host.paths, node.kernel, node.clock, {}});
    CHECK_FALSE(std::filesystem::exists(node.host.paths.run + "/bytes/demo"));
    node.host.make_live("demo", "AAAA0000");
    std::filesystem::remove(node.host.paths.sys + "/module/demo/coresize");
    kmod::note_loaded_bytes(node.host.paths, "demo", std::string(64, 'a'));
    CHECK_FALSE(std::filesystem::exists(node.host.paths.run + "/bytes/demo"));
}

TEST_CASE("a file that changed after it was indexed is not judged") {
    Loaded node;
    const std::string path = node.out.path() + "/other.ko";
    put(path, node.evil());
    const kmod::IndexedModule module{kmod::parse_module(make_ko(node.spec), path), path, path,
                                     digest::sha256_hex(make_ko(node.spec))};
    CHECK_THROWS_WITH_AS(
        (void)kmod::judge_identity(node.host.paths, module, kmod::live_module(node.host.paths, "demo").value()),
        doctest::Contains("changed after it was checked"), Error);
}

}
