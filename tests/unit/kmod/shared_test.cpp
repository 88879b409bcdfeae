// SPDX-License-Identifier: Apache-2.0
// Modules that several others need: the last user takes them away.
#include <doctest/doctest.h>

#include <cerrno>

#include "kmod/check/load_record.hpp"
#include "kmod/load/procedure.hpp"
#include "kmod/load/users.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Live = std::vector<std::string>;

/// Images with base, user_1 and user_2, which need base, and soft_1 and soft_2, which only ask for it. `build`
/// tells builds of base apart.
struct SharedRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};

    static KoSpec spec(const std::string& name, const std::string& depends) {
        KoSpec made;
        made.name = name;
        made.depends = depends;
        if (!depends.empty()) made.undefined = {"base_symbol"};
        return made;
    }
    kmod::Report load(const std::string& name, const std::string& build = "AAAA0000") {
        sys::TempDir out("kmm-image-");
        KoSpec base = spec("base", "");
        base.exported = {"base_symbol"};
        base.srcversion = build;
        KoSpec soft_1 = spec("soft_1", "");
        soft_1.modinfo = {"softdep=pre: base"};
        KoSpec soft_2 = soft_1;
        soft_2.name = "soft_2";
        for (const auto& each : {base, spec("user_1", "base"), spec("user_2", "base"), soft_1, soft_2})
            put(out.path() + "/opt/" + each.name + ".ko", make_ko(each));
        const auto index = kmod::ModuleIndex::build(out.path() + "/opt", out.path());
        const kmod::LoadRequest request{name, {}, {}, {}};
        const auto checked = kmod::preflight(index, request, host.paths);
        kmod::require_passed(checked, name);
        return kmod::load_modules(index, checked, request, {}, {host.paths, kernel, clock, {}});
    }
    void unload(const std::string& name) { (void)kmod::unload_modules({{name}}, {host.paths, kernel, clock, {}}); }
    [[nodiscard]] Live live() const { return kmod::live_modules(host.paths); }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a dependency that came with the first of two goes with the last") {
    SharedRig rig;
    (void)rig.load("user_1");
    (void)rig.load("user_2");
    SUBCASE("in the order of the loads") {
        rig.unload("user_1");
        CHECK(rig.live() == Live{"base", "user_2"});
        rig.unload("user_2");
    }
    SUBCASE("in the other order") {
        rig.unload("user_2");
        CHECK(rig.live() == Live{"base", "user_1"});
        rig.unload("user_1");
    }
    SUBCASE("also after a second load of the same") {
        (void)rig.load("user_2");
        rig.unload("user_1");
        (void)rig.load("user_2");
        rig.unload("user_2");
    }
    SUBCASE("also when somebody else has unloaded one of them") {
        rig.host.make_gone("user_1");
        rig.host.hold("base", "user_2");
        rig.unload("user_2");
        CHECK(rig.live().empty());
        rig.unload("user_1");
    }
    CHECK(rig.live().empty());
    CHECK(kmod::all_records(rig.host.paths).empty());
    CHECK(rig.load("user_1", "BBBB0000").modules.back().action == kmod::Action::loaded);  // the next build
}

TEST_CASE("a module that no reference holds stays as long as another one on record requests for it") {
    SharedRig rig;
    (void)rig.load("soft_1");
    (void)rig.load("soft_2");
    rig.unload("soft_1");
    CHECK(rig.live() == Live{"base", "soft_2"});
    rig.unload("soft_2");
    CHECK(rig.live().empty());
}

TEST_CASE("what somebody else uses stays, and goes with a later unload, or for the next build") {
    SharedRig rig;
    (void)rig.load("user_1");
    rig.host.make_live("foreign", "FFFF");
    rig.host.hold("base", "foreign");
    rig.unload("user_1");
    CHECK(rig.live() == Live{"base", "foreign"});
    CHECK(kmod::recorded_modules(rig.host.paths).empty());
    SUBCASE("another build cannot take its place yet") { CHECK_THROWS_AS((void)rig.load("user_2", "BBBB0000"), Error); }
    SUBCASE("the unload of any other module") {
        rig.host.make_gone("foreign");
        (void)rig.load("soft_1");
        rig.unload("soft_1");
        CHECK(rig.live().empty());
        CHECK(kmod::all_records(rig.host.paths).empty());
    }
    SUBCASE("a load of another build") {
        rig.host.make_gone("foreign");
        const auto report = rig.load("user_2", "BBBB0000");
        CHECK(report.modules.front().name == "base");
        CHECK(report.modules.front().action == kmod::Action::unloaded);
        CHECK(rig.live() == Live{"base", "user_2"});
        CHECK(kmod::live_module(rig.host.paths, "base")->srcversion == "BBBB0000");
        rig.unload("user_2");
        CHECK(rig.live().empty());
    }
    SUBCASE("but not if it was loaded for itself since") {
        rig.host.make_gone("foreign");
        (void)rig.load("base");
        (void)rig.load("user_2");
        rig.unload("user_2");
        CHECK(rig.live() == Live{"base"});
    }
}

TEST_CASE("what was live before is not ours") {
    SharedRig rig;
    rig.host.make_live("base", "AAAA0000");
    (void)rig.load("user_1");
    (void)rig.load("user_2");
    rig.unload("user_1");
    rig.unload("user_2");
    CHECK(rig.live() == Live{"base"});
}

TEST_CASE("devices that appear while a module is loaded are its own") {
    SharedRig rig;
    put(rig.host.paths.proc + "/devices", "Character devices:\n  7 other\n\nBlock devices:\n");
    rig.kernel.load_answers["user_1"] = {};
    rig.kernel.on_refusal = [&] {
        put(rig.host.paths.proc + "/devices", "Character devices:\n  1 strange_name\n  7 other\n\nBlock devices:\n");
    };
    (void)rig.load("user_1");
    put(rig.host.paths.proc + "/9/comm", "reader\n");
    std::filesystem::create_directories(rig.host.paths.proc + "/9/fd");
    std::filesystem::create_symlink("/dev/null", rig.host.paths.proc + "/9/fd/0");  // 1:3
    CHECK(kmod::module_users(rig.host.paths, "user_1") == Live{"process 9 (reader) has /dev/null open"});
    CHECK(kmod::module_users(rig.host.paths, "base").empty());
}

TEST_CASE("the warnings of checks and of a load survive its failure") {
    SharedRig rig;
    put(rig.host.paths.etc + "/modprobe.d/x.conf", "blacklist user_1\n");
    rig.kernel.load_answers["user_1"] = {ENOENT, false, false, 77, ""};
    try {
        (void)rig.load("user_1");
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "module-refused");
        REQUIRE(error.diagnostics().size() == 1);
        CHECK(error.diagnostics().front().code == "blacklisted-module");
        CHECK(error.diagnostics().front().severity == Severity::warning);
    }
    CHECK(rig.live().empty());
}

}
