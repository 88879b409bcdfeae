// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/procedure.hpp"

#include <doctest/doctest.h>

#include <cerrno>

#include "base/error.hpp"
#include "kmod/check/parameters.hpp"
#include "unit/kmod/load_rig.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Calls = std::vector<std::string>;

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("modules are loaded in order and their identity proven") {
    LoadRig rig;
    rig.request.parameters = {"answer=7", "who=some body"};
    const auto report = rig.load();
    CHECK(rig.kernel.calls == Calls{"load dep", "load demo answer=7 who=\"some body\""});
    REQUIRE(report.modules.size() == 2);
    const auto& main = report.modules.back();
    CHECK(main.name == "demo");
    CHECK(main.role == kmod::Role::main);
    CHECK(main.action == kmod::Action::loaded);
    CHECK(main.path == "/opt/demo.ko");
    CHECK(main.srcversion == "AAAA0000");
    CHECK(main.taint == "OE");
    CHECK(main.parameters.at("who") == "some body");
    CHECK(main.sha256.size() == 64);
    CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == Calls{"dep"});
}

TEST_CASE("the same build again is success without a system call") {
    LoadRig rig;
    (void)rig.load();
    rig.kernel.calls.clear();
    const auto report = rig.load();
    CHECK(rig.kernel.calls.empty());
    CHECK(report.modules.back().action == kmod::Action::already_loaded);
}

TEST_CASE("what else a load consists of is done for a module that is live already, too") {
    LoadRig rig;
    rig.host.make_live("dep", "DDDD");
    rig.host.make_live("demo", "AAAA0000");
    rig.host.hold("dep", "demo");
    put(rig.out.path() + "/fw/demo.bin", "firmware");
    SUBCASE("in-tree modules give way") {
        rig.host.make_live("old", "X", "");
        rig.request.in_tree_modules_to_remove = {"old"};
        CHECK(rig.load().modules.back().action == kmod::Action::already_loaded);
        CHECK(rig.kernel.calls == Calls{"unload old"});
        CHECK(kmod::read_record(rig.host.paths, "demo")->removed_in_tree == Calls{"old"});
        CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == Calls{"dep"});
    }
    SUBCASE("firmware is installed") {
        rig.firmware = {rig.out.path() + "/fw", rig.out.path() + "/host-fw"};
        (void)rig.load();
        CHECK(kmod::firmware_search_path(rig.host.paths) == rig.out.path() + "/host-fw");
        CHECK(kmod::read_raw(rig.out.path() + "/host-fw/demo.bin") == "firmware");
    }
    SUBCASE("a failure undoes that and no more") {
        rig.firmware = {rig.out.path() + "/fw", rig.out.path() + "/fw/demo.bin/file"};
        CHECK(rig.refused().exit() == Exit::not_found);  // a file stands where a directory must
        CHECK(rig.host.is_live("demo"));
        CHECK_FALSE(kmod::read_record(rig.host.paths, "demo"));
    }
    SUBCASE("nothing of it leaves a record") {
        (void)rig.load();
        CHECK_FALSE(kmod::read_record(rig.host.paths, "demo"));
    }
}

TEST_CASE("a softdep of the image that fails is told, and the module is loaded without it, as modprobe does") {
    LoadRig rig;
    KoSpec spec;
    spec.modinfo = {"softdep=pre: request post: after"};
    put(rig.out.path() + "/soft/demo.ko", make_ko(spec));
    KoSpec request;
    request.name = "request";
    KoSpec after;
    after.name = "after";
    const auto index = [&] {
        put(rig.out.path() + "/soft/request.ko", make_ko(request));
        put(rig.out.path() + "/soft/after.ko", make_ko(after));
        rig.index = kmod::ModuleIndex::build(rig.out.path() + "/soft", rig.out.path());
    };
    SUBCASE("refused by the kernel") {
        index();
        rig.kernel.load_answers["request"].error = ENODEV;
        rig.kernel.load_answers["after"].error = EIO;
        const auto report = rig.load();
        CHECK(rig.kernel.calls == Calls{"load request", "load demo", "load after"});
        REQUIRE(report.modules.size() == 1);
        CHECK(report.modules.back().role == kmod::Role::main);
        REQUIRE(report.warnings.size() == 2);
        CHECK(report.warnings[0].starts_with(
            "soft-dependency-failed: module request is wanted by a softdep and not loaded: "));
        CHECK(report.warnings[1].find("module after") != std::string::npos);
        CHECK(rig.host.is_live("demo"));
    }
    SUBCASE("foreseen by the checks, for itself or for what it needs") {
        request.vermagic = "5.10.0 SMP mod_unload ";
        after.depends = "nowhere";
        index();
        const auto report = rig.load();
        CHECK(rig.kernel.calls == Calls{"load demo"});
        REQUIRE(report.warnings.size() == 2);
        CHECK(report.warnings[0] ==
              "soft-dependency-failed: module after is wanted by a softdep and left out: it needs module nowhere, "
              "which is not there");
        CHECK(
            report.warnings[1].starts_with("soft-dependency-failed: module request is wanted by a softdep and left "
                                           "out: module request was built for another kernel"));
    }
    SUBCASE("another build of it is live") {
        index();
        rig.host.make_live("request", "OTHER");
        const auto report = rig.load();
        CHECK(rig.kernel.calls == Calls{"load demo", "load after"});
        CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == Calls{"after"});
        CHECK(std::count_if(report.warnings.begin(), report.warnings.end(), [](const auto& text) {
                  return text.starts_with("soft-dependency-failed: module request");
              }) == 1);
    }
    SUBCASE("a module that hangs or breaks the kernel ends it all the same") {
        index();
        rig.kernel.load_answers["request"].hung = true;
        CHECK(rig.refused().exit() == Exit::hung);
    }
}

TEST_CASE("softdeps that only the host has follow the main module") {
    LoadRig rig;
    KoSpec spec;
    spec.modinfo = {"softdep=post: late lost"};
    put(rig.out.path() + "/soft/demo.ko", make_ko(spec));
    rig.index = kmod::ModuleIndex::build(rig.out.path() + "/soft", rig.out.path());
    KoSpec late;
    late.name = "late";
    late.modinfo = {"intree=Y"};
    put(rig.host.paths.lib_modules + "/" + k_release + "/kernel/late.ko", make_ko(late));
    const auto foreseen =
        kmod::describe(rig.index, kmod::preflight(rig.index, rig.request, rig.host.paths), rig.request, rig.host.paths);
    CHECK(foreseen.modules.back().name == "late");
    const auto report = rig.load();
    CHECK(foreseen.warnings == report.warnings);
    CHECK(rig.kernel.calls == Calls{"load demo", "load late"});
    CHECK(report.modules.back().action == kmod::Action::dependency);
    CHECK(report.warnings == Calls{"soft-dependency-missing: module lost should be loaded afterwards (softdep), but is "
                                   "neither in the image nor on this host"});
    CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == Calls{"late"});
}

TEST_CASE("another build of the name is an error and stays untouched") {
    LoadRig rig;
    rig.host.make_live("demo", "BBBB");
    const Error error = rig.refused();
    CHECK(error.code() == "module-differs");
    CHECK(error.exit() == Exit::refused);
    CHECK(detail(error, "loaded") == "srcversion BBBB");
    CHECK(detail(error, "wanted") == "srcversion AAAA0000");
    CHECK(rig.kernel.calls.empty());
}

TEST_CASE("another build of a dependency is an error before anything is loaded") {
    LoadRig rig;
    rig.host.make_live("dep", "OLD");
    CHECK(rig.refused().code() == "module-differs");
    CHECK(rig.kernel.calls.empty());
}

TEST_CASE("a live module that is not what was loaded is an error") {
    LoadRig rig;
    rig.kernel.live_srcversion["demo"] = "EVIL";
    CHECK(rig.refused().code() == "module-differs");
}

TEST_CASE("EEXIST is success only with the same identity") {
    LoadRig rig;
    rig.kernel.load_answers["demo"] = {EEXIST, false, false, 1, ""};
    SUBCASE("same") {
        rig.kernel.on_refusal = [&] { rig.host.make_live("demo", "AAAA0000"); };
        CHECK(rig.load().modules.back().action == kmod::Action::already_loaded);
    }
    SUBCASE("different") {
        rig.kernel.on_refusal = [&] { rig.host.make_live("demo", "RACE"); };
        CHECK(rig.refused().code() == "module-differs");
    }
}

TEST_CASE("a refusal names errno, cause and the kernel's line, and leaves nothing behind") {
    LoadRig rig;
    rig.kernel.load_answers["demo"] = {ENODEV, false, false, 1, ""};
    rig.kernel.on_refusal = [&] {
        rig.host.log("demo: loading out-of-tree module taints kernel.");
        rig.host.log("demo: no device found");
    };
    const Error error = rig.refused();
    CHECK(error.code() == "module-refused");
    CHECK(error.exit() == Exit::refused);
    CHECK(error.message() == "the kernel refused module demo: No such device (ENODEV)");
    CHECK(detail(error, "errno") == "ENODEV");
    CHECK(detail(error, "kernel") == "demo: no device found");
    CHECK(detail(error, "cause").find("found no device") != std::string::npos);
    CHECK(rig.kernel.calls == Calls{"load dep", "load demo", "unload dep"});
    CHECK_FALSE(rig.host.is_live("dep"));
    CHECK_FALSE(kmod::read_record(rig.host.paths, "demo"));
}

TEST_CASE("every errno of the kernel ends as module-refused with that name") {
    for (const int number :
         {EPERM,  ENOENT,      ESRCH,       EIO,          ENOEXEC, EAGAIN, ENOMEM,  EACCES,  EFAULT,
          ENODEV, EINVAL,      ENOSPC,      ENOSYS,       ENODATA, ENOPKG, EBADMSG, ELIBBAD, ETIMEDOUT,
          ENOKEY, EKEYEXPIRED, EKEYREVOKED, EKEYREJECTED, EBUSY,   EINTR,  EEXIST}) {
        CAPTURE(errno_name(number));
        LoadRig rig;
        rig.kernel.load_answers["demo"] = {number, false, false, 1, ""};
        const Error error = rig.refused();
        CHECK(error.code() == "module-refused");
        CHECK(detail(error, "errno") == errno_name(number));
        CHECK_FALSE(detail(error, "cause").empty());
        CHECK_FALSE(error.hint().empty());
        CHECK_FALSE(rig.host.is_live("dep"));
    }
}

TEST_CASE("a loader that does not come back is exit 15, and nothing more is asked of the kernel") {
    LoadRig rig;
    rig.kernel.load_answers["demo"] = {0, true, false, 4711, "msleep"};
    const Error error = rig.refused();
    CHECK(error.exit() == Exit::hung);
    CHECK(error.code() == "loader-hung");
    CHECK(detail(error, "waits-in") == "msleep");
    CHECK(detail(error, "helper") == "pid 4711, cannot be killed");
    CHECK(rig.kernel.calls == Calls{"load dep", "load demo"});
}

TEST_CASE("no attempt while the module is coming") {
    LoadRig rig;
    rig.host.make_live("demo", "AAAA0000", "OE", "0", "coming");
    const Error error = rig.refused();
    CHECK(error.code() == "loader-hung");
    CHECK(rig.kernel.calls.empty());
    CHECK(rig.clock.monotonic() >= std::chrono::seconds(2));
}

TEST_CASE("an oops during init is exit 17") {
    LoadRig rig;
    rig.kernel.load_answers["demo"] = {EINTR, false, false, 1, ""};
    rig.kernel.on_refusal = [&] {
        put(rig.host.paths.proc + "/sys/kernel/tainted", "128\n");
        rig.host.log("BUG: kernel NULL pointer dereference, address: 0");
    };
    const Error error = rig.refused();
    CHECK(error.exit() == Exit::unhealthy);
    CHECK(error.code() == "node-unhealthy");
    CHECK(detail(error, "kernel").find("NULL pointer") != std::string::npos);
    CHECK(rig.kernel.calls == Calls{"load dep", "load demo"});
}

TEST_CASE("in-tree modules are removed first, users before what they use") {
    LoadRig rig;
    rig.host.make_live("base_drv", "X", "");
    rig.host.make_live("user_drv", "Y", "");
    rig.host.hold("base_drv", "user_drv");
    rig.request.in_tree_modules_to_remove = {"base-drv", "user_drv", "not_live"};
    const auto report = rig.load();
    CHECK(rig.kernel.calls == Calls{"unload user_drv", "unload base_drv", "load dep", "load demo"});
    CHECK(report.modules.front().action == kmod::Action::removed_in_tree);
    CHECK(kmod::read_record(rig.host.paths, "demo")->removed_in_tree == Calls{"user_drv", "base_drv"});
}

TEST_CASE("an in-tree module with a user that is not listed stays, named with its holder") {
    LoadRig rig;
    rig.host.make_live("base_drv", "X", "");
    rig.host.make_live("user_drv", "Y", "");
    rig.host.hold("base_drv", "user_drv");
    rig.request.in_tree_modules_to_remove = {"base_drv"};
    const Error error = rig.refused();
    CHECK(error.exit() == Exit::busy);
    CHECK(error.code() == "module-in-use");
    CHECK(detail(error, "holders") == "user_drv");
    CHECK(rig.kernel.calls.empty());
}

TEST_CASE("an in-tree module of the same name gives way, an out-of-tree one does not") {
    LoadRig rig;
    rig.request.in_tree_modules_to_remove = {"demo"};
    SUBCASE("in-tree") {
        rig.host.make_live("demo", "INTREE", "");
        CHECK(rig.load().modules.back().action == kmod::Action::loaded);
        CHECK(rig.kernel.calls == Calls{"unload demo", "load dep", "load demo"});
    }
    SUBCASE("out-of-tree") {
        rig.host.make_live("demo", "OTHER", "OE");
        CHECK(rig.refused().code() == "module-differs");
    }
}

TEST_CASE("after a failure the in-tree module is back") {
    LoadRig rig;
    KoSpec in_tree;
    in_tree.name = "base_drv";
    in_tree.srcversion = "X";
    in_tree.modinfo = {"intree=Y"};
    put(rig.host.paths.lib_modules + "/" + k_release + "/kernel/base-drv.ko", make_ko(in_tree));
    rig.host.make_live("base_drv", "X", "");
    rig.request.in_tree_modules_to_remove = {"base_drv"};
    rig.kernel.load_answers["demo"] = {ENODEV, false, false, 1, ""};
    const Error error = rig.refused();
    CHECK(error.code() == "module-refused");
    CHECK(rig.host.is_live("base_drv"));
    CHECK(detail(error, "in-tree-removed").empty());
}

TEST_CASE("a file that changed after it was checked is not loaded") {
    LoadRig rig;
    const auto checked = kmod::preflight(rig.index, rig.request, rig.host.paths);
    put(rig.out.path() + "/opt/dep.ko", "something else");
    try {
        (void)kmod::load_modules(rig.index, checked, rig.request, rig.firmware,
                                 {rig.host.paths, rig.kernel, rig.clock, {}});
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::integrity);
    }
    CHECK(rig.kernel.calls.empty());
}

TEST_CASE("firmware is there before the module, and gone after a failure") {
    LoadRig rig;
    put(rig.out.path() + "/fw/demo.bin", "firmware");
    rig.firmware = {rig.out.path() + "/fw", rig.out.path() + "/host-fw"};
    SUBCASE("success") {
        (void)rig.load();
        CHECK(kmod::firmware_search_path(rig.host.paths) == rig.out.path() + "/host-fw");
        CHECK(kmod::read_raw(rig.out.path() + "/host-fw/demo.bin") == "firmware");
    }
    SUBCASE("below the place where the host's root is mounted: the kernel hears the host's name of the directory") {
        rig.host.paths.root = rig.out.path() + "/mnt";
        put(rig.host.paths.root + "/data/.keep", "");
        std::filesystem::create_directories(rig.host.paths.root + "/kmm-test");
        std::filesystem::create_symlink("/data", rig.host.paths.root + "/kmm-test/link");
        rig.firmware.search_path = "/kmm-test/link/fw";
        (void)rig.load();
        CHECK(kmod::firmware_search_path(rig.host.paths) == "/kmm-test/link/fw");
        CHECK(kmod::read_raw(rig.host.paths.root + "/data/fw/demo.bin") == "firmware");
        CHECK_FALSE(std::filesystem::exists("/kmm-test"));
        CHECK_FALSE(std::filesystem::exists("/data/fw/demo.bin"));
        CHECK(kmod::read_record(rig.host.paths, "demo")->firmware_directory == "/kmm-test/link/fw");
        (void)kmod::unload_modules({{"demo"}}, {rig.host.paths, rig.kernel, rig.clock, {}});
        CHECK_FALSE(std::filesystem::exists(rig.host.paths.root + "/data/fw/demo.bin"));
    }
    SUBCASE("failure") {
        rig.kernel.load_answers["demo"] = {EIO, false, false, 1, ""};
        CHECK(rig.refused().code() == "module-refused");
        CHECK_FALSE(std::filesystem::exists(rig.out.path() + "/host-fw/demo.bin"));
        CHECK(kmod::read_raw(rig.host.paths.sys + "/module/firmware_class/parameters/path") == std::string(1, '\0'));
    }
}

TEST_CASE("parameters that differ from the live ones are a warning") {
    LoadRig rig;
    (void)rig.load();
    put(rig.host.paths.sys + "/module/demo/parameters/answer", "42\n");
    rig.request.parameters = {"answer=7"};
    const auto report = rig.load();
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front().find("parameter-differs: demo is live with answer=42, wanted 7") == 0);
}

TEST_CASE("values that sysfs shows in another form are the same") {
    struct Row {
        const char* type;
        const char* wanted;
        const char* shown;
        bool same;
    };
    const Row rows[] = {{"bool", "1", "Y", true},
                        {"bool", "off", "N", true},
                        {"bool", "n", "Y", false},
                        {"int", "0x10", "16", true},
                        {"int", "010", "8", true},
                        {"int", "7", "42", false},
                        {"charp", "a", "b", false},
                        {"array of int", "1,0x2", "1,2,0", true},
                        {"uint", "+5", "5", true},
                        {"array of int", "1", "2", false},
                        {"bool", "", "Y", true},
                        {"bool", "10", "Y", true},
                        {"bool", "none", "N", true},
                        {"own_type", "yes", "Y", true},
                        {"charp", "nvidia", "N", false},
                        {"string", "1x", "Y", false},
                        {"own_type", "", "own", true},
                        {"charp", "", "x", false},
                        {"charp", "end ", "end", true},
                        {"array of bool", "y,off", "Y,N,N", true},
                        {"array of bool", "y,y", "Y,N", false}};
    for (const auto& row : rows) {
        CAPTURE(row.wanted);
        CAPTURE(row.shown);
        CHECK(kmod::shows_value(row.type, row.wanted, row.shown) == row.same);
    }
}

TEST_CASE("the second look") {
    LoadRig rig;
    bool done = false;
    const auto then = [&](const std::function<void()>& happens) {
        rig.clock.on_sleep = [&done, happens](std::chrono::milliseconds now) {
            if (done || now < std::chrono::seconds(2)) return;
            done = true;
            happens();
        };
    };
    SUBCASE("nothing happened") {
        then([] {});
        CHECK(rig.load().modules.back().action == kmod::Action::loaded);
        CHECK(done);
    }
    SUBCASE("udev put another build in its place") {
        then([&] { rig.host.make_live("demo", "OTHER", ""); });
        const Error error = rig.refused();
        CHECK(error.code() == "module-replaced");
        CHECK(error.exit() == Exit::refused);
        CHECK(detail(error, "loaded") == "srcversion OTHER");
    }
    SUBCASE("it is gone") {
        then([&] { rig.host.make_gone("demo"); });
        CHECK(rig.refused().message() == "module demo was loaded, but is gone 2.0s later");
    }
    SUBCASE("the kernel warned") {
        then([&] {
            put(rig.host.paths.proc + "/sys/kernel/tainted", "512\n");
            rig.host.log("WARNING: CPU: 0 PID: 1 at demo.c:7 demo_work");
        });
        const Error error = rig.refused();
        CHECK(error.exit() == Exit::unhealthy);
        CHECK(detail(error, "kernel").starts_with("WARNING:"));
        CHECK(detail(error, "new-taint") == "W");
    }
}

TEST_CASE("taints of this run are told") {
    LoadRig rig;
    rig.kernel.on_refusal = [&] { put(rig.host.paths.proc + "/sys/kernel/tainted", "12290\n"); };  // F, O and E
    rig.kernel.load_answers["demo"] = {};
    const auto report = rig.load();
    CHECK(report.new_taint == "FOE");
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front() == "new-taint: the kernel got the taint F while module demo was loaded");
}

TEST_CASE("a taint without a letter in Linux is named by its bit, and external support at SUSE is no news") {
    LoadRig rig;
    rig.kernel.on_refusal = [&] { put(rig.host.paths.proc + "/sys/kernel/tainted", "2147561472\n"); };  // O, E, X, N
    rig.kernel.load_answers["demo"] = {};
    const auto report = rig.load();
    CHECK(report.new_taint == "OEX, bit 31");
    CHECK(report.warnings ==
          std::vector<std::string>{"new-taint: the kernel got the taint bit 31 while module demo was loaded"});
}

TEST_CASE("options of the host reach the kernel, the user's come last") {
    LoadRig rig;
    put(rig.host.paths.etc + "/modprobe.d/a.conf", "options demo answer=1 who=host\noptions dep level=2\n");
    rig.request.parameters = {"answer=7"};
    (void)rig.load();
    CHECK(rig.kernel.calls == Calls{"load dep level=2", "load demo who=host answer=7"});
}

TEST_CASE("forcing reaches the kernel and is told") {
    LoadRig rig;
    rig.request.force.vermagic = true;
    const auto report = rig.load();
    CHECK(rig.kernel.calls == Calls{"force load dep", "force load demo"});
    CHECK(report.warnings.front().starts_with("forced: "));
}

TEST_CASE("a check describes the load without doing it") {
    LoadRig rig;
    const auto report =
        kmod::describe(rig.index, kmod::preflight(rig.index, rig.request, rig.host.paths), rig.request, rig.host.paths);
    REQUIRE(report.modules.size() == 2);
    CHECK(report.modules.back().action == kmod::Action::load);
    CHECK(report.modules.back().srcversion == "AAAA0000");
    CHECK(rig.kernel.calls.empty());
}

}
