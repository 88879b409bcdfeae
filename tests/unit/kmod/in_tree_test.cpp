// SPDX-License-Identifier: Apache-2.0
// In-tree modules that gave way: they are remembered until they are back.
#include <doctest/doctest.h>

#include <cerrno>

#include "kmod/check/load_record.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"
#include "unit/kmod/load_rig.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Modules = std::vector<std::string>;

struct InTreeRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};

    InTreeRig() {
        KoSpec old;
        old.name = "old";
        old.modinfo = {"intree=Y"};
        put(host.paths.lib_modules + "/" + k_release + "/kernel/old.ko", make_ko(old));
        host.make_live("demo", "A");
        kmod::LoadRecord record;
        record.module = "demo";
        record.removed_in_tree = {"old"};
        kmod::write_record(host.paths, record);
    }
    kmod::Report unload(kmod::InTree in_tree) {
        kmod::UnloadRequest request{{"demo"}};
        request.in_tree = in_tree;
        return kmod::unload_modules(request, {host.paths, kernel, clock, {}});
    }
    [[nodiscard]] Modules remembered() const {
        const auto record = kmod::read_record(host.paths, "demo");
        return record ? record->removed_in_tree : Modules{};
    }
    [[nodiscard]] bool is_live(const std::string& name) const {
        return kmod::live_module(host.paths, name).has_value();
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("an unload that leaves an in-tree module away can be followed by one that brings it back") {
    InTreeRig rig;
    CHECK(rig.unload(kmod::InTree::stay_unloaded).warnings.size() == 1);
    CHECK(rig.remembered() == Modules{"old"});
    CHECK(kmod::recorded_modules(rig.host.paths).empty());
    const auto report = rig.unload(kmod::InTree::restore);
    CHECK(rig.is_live("old"));
    REQUIRE(report.modules.size() == 2);
    CHECK(report.modules.front().action == kmod::Action::restored);
    CHECK_FALSE(kmod::read_record(rig.host.paths, "demo").has_value());
}

TEST_CASE("an in-tree module that does not come back is tried again") {
    InTreeRig rig;
    rig.kernel.load_answers["old"] = {ENODEV, false, false, 1, ""};
    const auto report = rig.unload(kmod::InTree::restore);
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front().starts_with("not-restored: "));
    CHECK(rig.remembered() == Modules{"old"});
    rig.kernel.load_answers.clear();
    (void)rig.unload(kmod::InTree::restore);
    CHECK(rig.is_live("old"));
    CHECK(rig.remembered().empty());
}

TEST_CASE("a damaged record is none that says that nothing is to come back") {
    InTreeRig rig;
    const std::string path = rig.host.paths.run + "/loaded/demo";
    const std::string whole = kmod::read_raw(path).value_or("");
    for (const std::string& text : {std::string(), std::string("garbage\n"), std::string("module other\n"),
                                    whole.substr(0, whole.size() - 2), whole + "nonsense x\n"}) {
        CAPTURE(text);
        put(path, text);
        CHECK_FALSE(kmod::read_record(rig.host.paths, "demo").has_value());
        try {
            (void)rig.unload(kmod::InTree::restore);
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::io);
            CHECK(error.code() == "damaged-record");
            CHECK(error.message() == path + " is damaged: what was changed for module demo is not known");
        }
        CHECK(rig.is_live("demo"));
        CHECK(kmod::read_raw(path) == text);
    }
    const auto report = rig.unload(kmod::InTree::stay_unloaded);
    CHECK_FALSE(rig.is_live("demo"));
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front().starts_with("damaged-record: " + path + " is damaged"));
    std::filesystem::remove(path);
    CHECK(rig.unload(kmod::InTree::restore).warnings.empty());
}

TEST_CASE("an in-tree module that is back by itself is forgotten") {
    InTreeRig rig;
    rig.host.make_live("old", "B", "");
    CHECK(rig.unload(kmod::InTree::stay_unloaded).warnings.empty());
    CHECK_FALSE(kmod::read_record(rig.host.paths, "demo").has_value());
}

TEST_CASE("a module that a load brought does not give way as one of the kernel's own") {
    LoadRig rig;
    (void)rig.load();
    rig.kernel.calls.clear();
    KoSpec other;
    other.name = "other";
    sys::TempDir image{"kmm-image-"};
    put(image.path() + "/opt/other.ko", make_ko(other));
    rig.index = kmod::ModuleIndex::build(image.path() + "/opt", image.path());
    rig.request = {"other", {}, {}, {}};
    SUBCASE("itself") {
        rig.request.in_tree_modules_to_remove = {"demo"};
        const Error error = rig.refused();
        CHECK(error.exit() == Exit::refused);
        CHECK(error.code() == "not-in-tree");
        CHECK(error.message() == "module demo is not the kernel's own: kmm-worker loaded it");
        CHECK(rig.kernel.calls.empty());
        CHECK(rig.host.is_live("demo"));
    }
    SUBCASE("with another one that does not hold it") {
        rig.host.make_gone("demo");
        rig.host.make_live("demo", "AAAA0000");
        put(rig.host.paths.sys + "/module/dep/refcnt", "0\n");
        rig.request.in_tree_modules_to_remove = {"dep"};
        const Error error = rig.refused();
        CHECK(error.message() == "module dep is not the kernel's own: kmm-worker loaded it for module demo");
        CHECK(error.hint() ==
              "kmm-worker unload --module demo, then load again; or take dep off inTreeModulesToRemove");
    }
    SUBCASE("but the one does that has replaced it since") {
        rig.host.make_gone("demo");
        rig.host.make_live("demo", "INTREE", "");
        rig.request.in_tree_modules_to_remove = {"demo"};
        CHECK(rig.load().modules.front().action == kmod::Action::removed_in_tree);
    }
    SUBCASE("somebody else's does, with a warning") {
        rig.host.make_live("dkms", "AAAA0000");
        rig.request.in_tree_modules_to_remove = {"dkms"};
        const auto report = rig.load();
        CHECK(report.modules.front().action == kmod::Action::removed_in_tree);
        REQUIRE(report.warnings.size() == 1);
        CHECK(report.warnings.front() == "not-in-tree: module dkms is to give way and is not the kernel's own (taint "
                                         "OE): somebody else loaded it");
    }
}

}
