// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cerrno>

#include "base/error.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Calls = std::vector<std::string>;
using Answers = std::vector<kmod::LoaderAnswer>;

struct UnloadRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};

    kmod::Report unload(const Calls& names) { return kmod::unload_modules({names}, {host.paths, kernel, clock, {}}); }
    Error refused(const Calls& names) {
        try {
            (void)unload(names);
        } catch (const Error& error) {
            return error;
        }
        FAIL("no error");
        throw bug("unreachable");
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a module is unloaded by name, whatever image it came from") {
    UnloadRig rig;
    rig.host.make_live("demo", "AAAA");
    const auto report = rig.unload({"demo"});
    CHECK(rig.kernel.calls == Calls{"unload demo"});
    REQUIRE(report.modules.size() == 1);
    CHECK(report.modules.front().action == kmod::Action::unloaded);
    CHECK(report.modules.front().srcversion == "AAAA");
    CHECK(report.modules.front().role == kmod::Role::main);
}

TEST_CASE("an answer that sysfs denies is no success, and an interruption no user") {
    UnloadRig rig;
    rig.host.make_live("demo", "AAAA");
    rig.kernel.unload_answers["demo"] = {{ENOENT, false, false, 1, ""}};
    const Error denied = rig.refused({"demo"});
    CHECK(denied.code() == "module-refused");
    CHECK(denied.exit() == Exit::refused);
    CHECK(denied.message() == "the kernel refused to unload module demo: No such file or directory (ENOENT)");
    CHECK(detail(denied, "cause") == "the kernel has no such module, and sysfs here shows it live");
    rig.kernel.unload_answers["demo"] = Answers(100, kmod::LoaderAnswer{EINTR, false, false, 1, ""});
    const Error interrupted = rig.refused({"demo"});
    CHECK(interrupted.code() == "module-refused");
    CHECK(interrupted.message() == "the kernel refused to unload module demo: Interrupted system call (EINTR)");
}

TEST_CASE("a live module that is busy twice has no exit function, for which nobody waits") {
    UnloadRig rig;
    rig.host.make_live("demo", "AAAA");
    rig.kernel.unload_answers["demo"] = Answers(100, kmod::LoaderAnswer{EBUSY, false, false, 1, ""});
    const Error error = rig.refused({"demo"});
    CHECK(error.code() == "module-in-use");
    CHECK(error.message() == "module demo cannot be unloaded: it has no exit function");
    CHECK(rig.kernel.calls.size() == 2);
}

TEST_CASE("where the kernel marks a module as permanent nothing is unloaded for it") {
    UnloadRig rig;
    for (const char* name : {"demo", "dep"}) rig.host.make_live(name, "AAAA");
    put(rig.host.paths.proc + "/modules",
        "demo 16384 0 - Live 0x0 (OE)\ndep 16384 1 demo,[permanent], Live 0x0 (OE)\nreally_permanent 1 0 [permanent], "
        "Live 0x0\n");
    CHECK_FALSE(kmod::is_permanent(rig.host.paths, "demo"));
    CHECK(kmod::is_permanent(rig.host.paths, "really-permanent"));
    const Error error = rig.refused({"demo", "dep"});
    CHECK(error.exit() == Exit::busy);
    CHECK(error.message() == "module dep cannot be unloaded: it has no exit function");
    CHECK(error.hint() == "a module without an exit function stays until the node is rebooted");
    CHECK(rig.kernel.calls.empty());

    kmod::UnloadRequest request{{"demo", "dep"}};
    request.policy = kmod::UnloadPolicy::if_idle;
    const auto report = kmod::unload_modules(request, {rig.host.paths, rig.kernel, rig.clock, {}});
    CHECK(rig.kernel.calls.empty());
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front() ==
          "kept: module dep has no exit function and stays until the node is rebooted; nothing was changed, as the "
          "policy if-idle says");
    CHECK(report.modules.front().action == kmod::Action::kept);

    request.policy = kmod::UnloadPolicy::always;
    request.force.removal = true;
    (void)kmod::unload_modules(request, {rig.host.paths, rig.kernel, rig.clock, {}});
    CHECK(rig.kernel.calls == Calls{"force unload demo", "force unload dep"});
}

TEST_CASE("what is not live is no error") {
    UnloadRig rig;
    const auto report = rig.unload({"demo"});
    CHECK(rig.kernel.calls.empty());
    CHECK(report.modules.front().action == kmod::Action::not_loaded);
}

TEST_CASE("the order list is unloaded in its order, the main module is reported last") {
    UnloadRig rig;
    for (const char* name : {"a", "b", "c"}) rig.host.make_live(name, "X");
    const auto report = rig.unload({"a", "b", "c"});
    CHECK(rig.kernel.calls == Calls{"unload a", "unload b", "unload c"});
    CHECK(report.modules.back().name == "a");
}

TEST_CASE("out-of-tree modules that only the main one used go with it") {
    UnloadRig rig;
    rig.host.make_live("dep", "D");
    rig.host.make_live("in_tree_dep", "I", "");
    rig.host.make_live("demo", "A");
    rig.host.hold("dep", "demo");
    rig.host.hold("in_tree_dep", "demo");
    SUBCASE("without a record") {
        (void)rig.unload({"demo"});
        CHECK(rig.kernel.calls == Calls{"unload demo", "unload dep"});
        CHECK(rig.host.is_live("in_tree_dep"));
    }
    SUBCASE("unless they were loaded for themselves") {
        kmod::write_record(rig.host.paths, {"dep", {}, {}, {}, {}, {}, {}});
        (void)rig.unload({"demo"});
        CHECK(rig.kernel.calls == Calls{"unload demo"});
    }
    SUBCASE("unless somebody else uses them") {
        rig.host.make_live("other", "O");
        rig.host.hold("dep", "other");
        (void)rig.unload({"demo"});
        CHECK(rig.host.is_live("dep"));
    }
    SUBCASE("with a record, exactly those in it") {
        kmod::write_record(rig.host.paths, {"demo", {}, {"was_in_tree"}, {}, {}, {}, {}});
        const auto report = rig.unload({"demo"});
        CHECK(rig.host.is_live("dep"));
        REQUIRE(report.warnings.size() == 1);
        CHECK(report.warnings.front().find("was_in_tree") != std::string::npos);
        CHECK(kmod::read_record(rig.host.paths, "demo")->unloaded);
    }
}

TEST_CASE("a dependency that stays after all is told, and is no failure") {
    UnloadRig rig;
    rig.host.make_live("dep", "D");
    rig.host.make_live("demo", "A");
    rig.host.hold("dep", "demo");
    rig.kernel.unload_answers["dep"] = {{EBUSY, false, false, 1, ""}};
    kmod::write_record(rig.host.paths, {"demo", {"dep"}, {}, {}, {}, {}, {}});
    const auto report = rig.unload({"demo"});
    CHECK(report.modules.back().action == kmod::Action::unloaded);
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front().starts_with("dependency-kept: module dep cannot be unloaded"));
    CHECK(rig.clock.monotonic().count() == 0);
    const auto record = kmod::read_record(rig.host.paths, "demo");
    REQUIRE(record);
    CHECK(record->unloaded);
    CHECK(record->dependencies == std::vector<std::string>{"dep"});  // for a later unload
}

TEST_CASE("a failure names what was unloaded before it") {
    UnloadRig rig;
    for (const char* name : {"a", "b"}) rig.host.make_live(name, "X");
    rig.kernel.unload_answers["b"] = {{EPERM, false, false, 1, ""}};
    CHECK(detail(rig.refused({"a", "b"}), "unloaded") == "a");
}

TEST_CASE("a remove command of the host is told and not run") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    put(rig.host.paths.etc + "/modprobe.d/a.conf", "remove demo /bin/touch " + rig.host.directory.path() + "/ran\n");
    const auto report = rig.unload({"demo"});
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front().starts_with("remove-command: /etc/modprobe.d/a.conf:1 wants '/bin/touch"));
    CHECK_FALSE(std::filesystem::exists(rig.host.directory.path() + "/ran"));
}

TEST_CASE("a held module is named with all its users at once, without waiting") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    rig.host.make_live("user", "B");
    rig.host.make_live("top", "C");
    rig.host.hold("demo", "user");
    rig.host.hold("user", "top");
    rig.kernel.unload_answers["demo"] = {{EAGAIN, false, false, 1, ""}};
    const Error error = rig.refused({"demo"});
    CHECK(error.exit() == Exit::busy);
    CHECK(error.code() == "module-in-use");
    CHECK(detail(error, "holders") == "user -> top");
    CHECK(detail(error, "refcount") == "1");
    CHECK(rig.clock.monotonic().count() == 0);
}

TEST_CASE("users without a name are waited for, and then named by their number") {
    UnloadRig rig;
    rig.host.make_live("demo", "A", "OE", "3");
    const kmod::LoaderAnswer busy{EAGAIN, false, false, 1, ""};
    SUBCASE("they go") {
        rig.kernel.unload_answers["demo"] = {busy, busy};
        CHECK(rig.unload({"demo"}).modules.front().action == kmod::Action::unloaded);
        CHECK(rig.kernel.calls.size() == 3);
    }
    SUBCASE("they stay") {
        rig.kernel.unload_answers["demo"] = std::vector<kmod::LoaderAnswer>(1000, busy);
        const Error error = rig.refused({"demo"});
        CHECK(error.message() == "module demo is still in use (refcount 3)");
        CHECK(rig.clock.monotonic() >= std::chrono::seconds(10));
        CHECK(rig.clock.monotonic() < std::chrono::seconds(12));
    }
}

TEST_CASE("refusals of delete_module") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    struct Case {
        int number;
        const char* code;
        Exit exit;
    };
    for (const Case& c : {Case{EPERM, "module-refused", Exit::refused}, Case{ENOSYS, "module-refused", Exit::refused},
                          Case{EBUSY, "module-in-use", Exit::busy}}) {
        CAPTURE(c.number);
        rig.kernel.unload_answers["demo"] = std::vector<kmod::LoaderAnswer>(1000, {c.number, false, false, 1, ""});
        const Error error = rig.refused({"demo"});
        CHECK(error.code() == c.code);
        CHECK(error.exit() == c.exit);
        CHECK(detail(error, "errno") == errno_name(c.number));
    }
    rig.kernel.unload_answers["demo"] = {{EPERM, false, false, 1, ""}};
    rig.kernel.on_refusal = [&] {
        rig.host.log("audit: type=1400 audit(1.2:3): apparmor=\"DENIED\" operation=\"capable\" profile=\"strict\" "
                     "pid=9 comm=\"kmm-worker\" capability=16  capname=\"sys_module\"");
    };
    const Error denied = rig.refused({"demo"});
    CHECK(detail(denied, "cause") == "AppArmor denies CAP_SYS_MODULE to the profile strict");
    CHECK(denied.hint().find("appArmorProfile") != std::string::npos);
    CHECK(detail(denied, "kernel").find("sys_module") != std::string::npos);
    rig.kernel.on_refusal = nullptr;
    rig.kernel.unload_answers["demo"] = {{0, true, true, 9, "wait"}};
    CHECK(rig.refused({"demo"}).exit() == Exit::hung);
}

TEST_CASE("the firmware path stays while another live module has its firmware there, and is put back after the last") {
    UnloadRig rig;
    const std::string file = rig.host.paths.sys + "/module/firmware_class/parameters/path";
    const auto note = [&](const std::string& module, const std::string& directory, std::optional<std::string> old,
                          std::optional<std::string> made) {
        kmod::LoadRecord record;
        record.module = module;
        record.firmware_directory = directory;
        record.old_firmware_path = std::move(old);
        record.new_firmware_path = std::move(made);
        kmod::write_record(rig.host.paths, record);
        rig.host.make_live(module, "A");
    };
    note("demo", "/ours", "/old", "/ours");
    SUBCASE("the same directory") {
        put(file, "/ours\n");
        note("second", "/ours", std::nullopt, std::nullopt);
        (void)rig.unload({"demo"});
        CHECK(kmod::firmware_search_path(rig.host.paths) == "/ours");
        (void)rig.unload({"second"});
        CHECK(kmod::read_raw(file) == "/old");
    }
    SUBCASE("one that is not live any more needs no path") {
        put(file, "/ours\n");
        note("second", "/ours", std::nullopt, std::nullopt);
        rig.host.make_gone("second");
        (void)rig.unload({"demo"});
        CHECK(kmod::read_raw(file) == "/old");
    }
    SUBCASE("a directory of its own, set later") {
        put(file, "/theirs\n");
        note("second", "/theirs", "/ours", "/theirs");
        (void)rig.unload({"demo"});
        CHECK(kmod::firmware_search_path(rig.host.paths) == "/theirs");
        (void)rig.unload({"second"});
        CHECK(kmod::read_raw(file) == "/old");
    }
}

TEST_CASE("a damaged list of firmware is told, and keeps nothing else from being put back") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    const sys::TempDir directory("kmm-firmware-");
    put(directory.path() + "/.kmm-worker-firmware", "nonsense\n");
    kmod::LoadRecord record;
    record.module = "demo";
    record.firmware_directory = directory.path();
    record.old_firmware_path = "/old";
    record.new_firmware_path = directory.path();
    kmod::write_record(rig.host.paths, record);
    const std::string file = rig.host.paths.sys + "/module/firmware_class/parameters/path";
    put(file, directory.path() + "\n");
    const auto report = rig.unload({"demo"});
    CHECK(kmod::read_raw(file) == "/old");
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front().starts_with("firmware-kept: "));
}

TEST_CASE("the firmware path is put back only if it is still ours") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    kmod::LoadRecord record;
    record.module = "demo";
    record.old_firmware_path = "/old";
    record.new_firmware_path = "/ours";
    kmod::write_record(rig.host.paths, record);
    const std::string file = rig.host.paths.sys + "/module/firmware_class/parameters/path";
    SUBCASE("ours") {
        put(file, "/ours\n");
        (void)rig.unload({"demo"});
        CHECK(kmod::read_raw(file) == "/old");
    }
    SUBCASE("somebody else's") {
        put(file, "/theirs\n");
        (void)rig.unload({"demo"});
        CHECK(kmod::read_raw(file) == "/theirs\n");
    }
}

TEST_CASE("policies") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    const auto unload_as = [&](kmod::UnloadPolicy policy) {
        return kmod::unload_modules({{"demo"}, policy}, {rig.host.paths, rig.kernel, rig.clock, {}});
    };
    SUBCASE("never") {
        const auto report = unload_as(kmod::UnloadPolicy::never);
        CHECK(report.modules.front().action == kmod::Action::kept);
        CHECK(report.warnings.front().find("next reboot") != std::string::npos);
        CHECK(rig.kernel.calls.empty());
    }
    SUBCASE("if idle, and it is") {
        CHECK(unload_as(kmod::UnloadPolicy::if_idle).modules.front().action == kmod::Action::unloaded);
    }
    SUBCASE("if idle, and it is not") {
        rig.host.make_live("user", "B");
        rig.host.hold("demo", "user");
        CHECK(unload_as(kmod::UnloadPolicy::if_idle).modules.front().action == kmod::Action::kept);
        CHECK(rig.kernel.calls.empty());
    }
    SUBCASE("if idle, but it has a user of its own besides the one that goes too") {
        rig.host.make_live("user", "B");
        rig.host.hold("demo", "user");
        put(rig.host.paths.sys + "/module/demo/refcnt", "2\n");
        const auto report = kmod::unload_modules({{"user", "demo"}, kmod::UnloadPolicy::if_idle},
                                                 {rig.host.paths, rig.kernel, rig.clock, {}});
        CHECK(rig.kernel.calls.empty());
        CHECK(report.modules.back().action == kmod::Action::kept);
    }
    SUBCASE("if idle, and its only user goes too") {
        rig.host.make_live("user", "B");
        rig.host.hold("demo", "user");
        const auto report = kmod::unload_modules({{"user", "demo"}, kmod::UnloadPolicy::if_idle},
                                                 {rig.host.paths, rig.kernel, rig.clock, {}});
        CHECK(rig.kernel.calls == Calls{"unload user", "unload demo"});
        CHECK(report.modules.back().action == kmod::Action::unloaded);
    }
}

TEST_CASE("in-tree modules come back on request") {
    UnloadRig rig;
    rig.host.make_live("demo", "A");
    KoSpec spec;
    spec.name = "plain";
    spec.modinfo = {"intree=Y"};
    put(rig.host.paths.lib_modules + "/" + k_release + "/kernel/plain.ko", make_ko(spec));
    kmod::LoadRecord record;
    record.module = "demo";
    record.removed_in_tree = {"plain", "lost"};
    kmod::write_record(rig.host.paths, record);
    kmod::UnloadRequest request{{"demo"}};
    request.in_tree = kmod::InTree::restore;
    const auto report = kmod::unload_modules(request, {rig.host.paths, rig.kernel, rig.clock, {}});
    CHECK(rig.kernel.calls == Calls{"unload demo", "load plain"});
    CHECK(report.modules.front().action == kmod::Action::restored);
    CHECK(report.warnings == Calls{"not-restored: module lost is not in the host's tree"});
}

TEST_CASE("holders go first where that is wanted") {
    UnloadRig rig;
    for (const char* name : {"low", "middle", "top"}) rig.host.make_live(name, "A");
    rig.host.hold("low", "middle");
    rig.host.hold("middle", "top");
    kmod::UnloadRequest request{{"low"}};
    request.holders_too = true;
    (void)kmod::unload_modules(request, {rig.host.paths, rig.kernel, rig.clock, {}});
    CHECK(rig.kernel.calls == Calls{"unload top", "unload middle", "unload low"});
}

TEST_CASE("names that are none and built-in modules") {
    UnloadRig rig;
    CHECK(rig.refused({"../x"}).exit() == Exit::data);
    CHECK(rig.refused({"firmware_class"}).code() == "module-refused");
    CHECK(rig.kernel.calls.empty());
}

}
