// SPDX-License-Identifier: Apache-2.0
// Modules that misbehave, and modules that are wanted twice.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"
#include "unit/kmod/load_rig.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

/// An image with "user", which needs "base", and "other".
struct TroubleRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};
    sys::TempDir out{"kmm-image-"};
    kmod::ModuleIndex index;

    TroubleRig() {
        KoSpec base;
        base.name = "base";
        base.exported = {"base_symbol"};
        KoSpec user;
        user.name = "user";
        user.depends = "base";
        user.undefined = {"base_symbol"};
        KoSpec other;
        other.name = "other";
        other.modinfo = {"license=GPL"};
        other.undefined = {"_printk"};
        for (const auto& spec : {base, user, other}) put(out.path() + "/opt/" + spec.name + ".ko", make_ko(spec));
        index = kmod::ModuleIndex::build(out.path() + "/opt", out.path());
    }
    kmod::Report load(const std::string& name, const kmod::FirmwareRequest& firmware = {}) {
        const kmod::LoadRequest request{name, {}, {}, {}};
        const auto checked = kmod::preflight(index, request, host.paths);
        kmod::require_passed(checked, name);
        return kmod::load_modules(index, checked, request, firmware, {host.paths, kernel, clock, {}});
    }
    kmod::Report unload(const std::vector<std::string>& names) {
        return kmod::unload_modules({names}, {host.paths, kernel, clock, {}});
    }
    Error refused(const std::string& name) {
        try {
            (void)load(name);
        } catch (const Error& error) {
            return error;
        }
        FAIL("no error");
        throw bug("unreachable");
    }
    /// What the kernel does while "other" is loaded, by the helper process 77.
    void while_loading(std::function<void()> what) {
        kernel.load_answers["other"] = {0, false, false, 77, ""};
        kernel.on_refusal = std::move(what);
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("what only the host has and follows the main module comes with its own softdeps") {
    LoadRig rig;
    KoSpec spec;
    spec.modinfo = {"softdep=post: late"};
    put(rig.out.path() + "/soft/demo.ko", make_ko(spec));
    rig.index = kmod::ModuleIndex::build(rig.out.path() + "/soft", rig.out.path());
    const std::string kernel = rig.host.paths.lib_modules + "/" + k_release + "/kernel/";
    KoSpec late;
    late.name = "late";
    late.modinfo = {"intree=Y", "softdep=pre: sum odd"};
    put(kernel + "late.ko", make_ko(late));
    for (const char* name : {"sum", "odd"}) {
        KoSpec request;
        request.name = name;
        request.modinfo = {"intree=Y"};
        put(kernel + name + ".ko", make_ko(request));
    }
    rig.kernel.load_answers["odd"].error = ENODEV;
    const auto foreseen =
        kmod::describe(rig.index, kmod::preflight(rig.index, rig.request, rig.host.paths), rig.request, rig.host.paths);
    CHECK(foreseen.modules.size() == 4);
    const auto report = rig.load();
    CHECK(rig.kernel.calls == std::vector<std::string>{"load demo", "load sum", "load odd", "load late"});
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings[0].starts_with("soft-dependency-failed: module odd is wanted by a softdep and not "
                                         "loaded: the kernel refused module odd"));
    CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == std::vector<std::string>{"sum", "odd", "late"});
}

TEST_CASE("a kernel that had warned before is heard when it warns again") {
    TroubleRig rig;
    put(rig.host.paths.proc + "/sys/kernel/tainted", "512\n");
    SUBCASE("of the module") {
        rig.while_loading([&] { rig.host.log("WARNING: CPU: 0 PID: 9 at other.c:55 other_init+0x40/0x1000 [other]"); });
        const Error error = rig.refused("other");
        CHECK(error.exit() == Exit::unhealthy);
        CHECK(error.message() == "the kernel warned while module other was loaded");
        CHECK(detail(error, "kernel").ends_with("[other]"));
        CHECK(detail(error, "new-taint").empty());
    }
    SUBCASE("of something that the module asked for") {
        rig.while_loading([&] {
            rig.host.log("WARNING: CPU: 0 PID: 77 at fs/sysfs/dir.c:31 sysfs_warn_dup+0x63/0x80");
            rig.host.log("CPU: 0 PID: 77 Comm: kmm-worker Tainted: G        W  OE");
        });
        CHECK(rig.refused("other").exit() == Exit::unhealthy);
    }
    SUBCASE("of somebody else") {
        rig.while_loading([&] {
            rig.host.log("WARNING: CPU: 0 PID: 78 at net/core/dev.c:31 netdev_thing+0x63/0x80 [another]");
            rig.host.log("CPU: 0 PID: 78 Comm: kmm-worker Tainted: G        W  OE");
        });
        CHECK(rig.load("other").warnings.empty());
    }
    SUBCASE("a refusal still has the kernel's lines") {
        rig.while_loading([&] { rig.host.log("other: no device found"); });
        rig.kernel.load_answers["other"].error = ENODEV;
        CHECK(detail(rig.refused("other"), "kernel") == "other: no device found");
    }
}

TEST_CASE("an init function that returns something positive is told") {
    TroubleRig rig;
    rig.while_loading([&] {
        rig.host.log("do_init_module: 'other'->init suspiciously returned 3, it should follow 0/-E convention");
    });
    const auto report = rig.load("other");
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front() ==
          "init-result: the kernel loaded module other and says: do_init_module: 'other'->init suspiciously returned "
          "3, it should follow 0/-E convention");
}

TEST_CASE("an errno whose reasons are all excluded is the init function's own") {
    TroubleRig rig;
    for (const int number : {ENOENT, EEXIST, EBUSY}) {
        CAPTURE(number);
        rig.kernel.load_answers["other"].error = number;
        const Error error = rig.refused("other");
        CHECK(detail(error, "cause") == "the module's init function returned this error");
        CHECK(error.hint() == "read the kernel's lines, and the documentation of the module");
    }
    SUBCASE("unless the kernel names a symbol") {
        rig.kernel.load_answers["other"].error = ENOENT;
        rig.kernel.on_refusal = [&] { rig.host.log("other: Unknown symbol from_elsewhere (err -2)"); };
        CHECK(detail(rig.refused("other"), "cause") == "a symbol that the module needs is not exported");
    }
}

TEST_CASE("a cause that the kernel names stands for itself, whatever was tested from outside") {
    TroubleRig rig;
    const auto refusal = [&](int number, const std::string& line) {
        rig.kernel.load_answers["other"].error = number;
        rig.kernel.on_refusal = [&rig, line] { rig.host.log(line); };
        return rig.refused("other");
    };
    const Error magic = refusal(
        ENOEXEC, "other: version magic '6.1.0-56-amd64 SMP ' should be '6.1.0-56-amd64 SMP preempt mod_unload '");
    CHECK(detail(magic, "cause") ==
          "the module was built for another kernel: vermagic '6.1.0-56-amd64 SMP ', this one wants '6.1.0-56-amd64 SMP "
          "preempt mod_unload ', "
          "differing: missing preempt, missing mod_unload");
    CHECK(detail(magic, "tested-1").empty());
    const Error listed = refusal(EPERM, "Module other is blacklisted");
    CHECK(detail(listed, "cause") == "module_blacklist= on the kernel command line names it");
    CHECK(detail(listed, "tested-1").empty());
    const Error locked =
        refusal(EPERM, "Lockdown: kmm-worker: unsigned module loading is restricted; see man kernel_lockdown.7");
    CHECK(detail(locked, "cause") == "lockdown refuses modules without a valid signature");
    CHECK(detail(locked, "kernel").starts_with("Lockdown: "));
    const Error unsigned_one = refusal(EKEYREJECTED, "Loading of unsigned module is rejected");
    CHECK(detail(unsigned_one, "kernel") == "Loading of unsigned module is rejected");
    const Error symbol = refusal(EINVAL, "other: Unknown symbol _printk (err -22)");
    CHECK(detail(symbol, "cause") ==
          "symbol _printk is exported, and refused: its version (CRC) or its namespace does not fit");
    CHECK(symbol.hint() == "rebuild the module, and what it needs, against the headers of the running kernel");
    CHECK(detail(symbol, "tested-1").empty());
}

TEST_CASE("a load that has not come back is not called hopeless") {
    TroubleRig rig;
    rig.kernel.load_answers["other"] = {0, true, false, 77, "msleep"};
    const Error error = rig.refused("other");
    CHECK(error.exit() == Exit::hung);
    CHECK(error.hint() ==
          "nothing was retried; kmm-worker status shows whether it comes back, and if it never does, only a reboot of "
          "the node helps");
}

TEST_CASE("a dependency that is asked for itself outlives the module it came with") {
    TroubleRig rig;
    (void)rig.load("user");
    CHECK(rig.load("base").modules.back().action == kmod::Action::already_loaded);
    (void)rig.unload({"user"});
    CHECK(rig.host.is_live("base"));
    (void)rig.unload({"base"});
    CHECK_FALSE(rig.host.is_live("base"));
    CHECK(kmod::recorded_modules(rig.host.paths).empty());
}

TEST_CASE("what is on record of each unloaded module goes, not only of the first") {
    TroubleRig rig;
    put(rig.out.path() + "/fw/other.bin", "bytes");
    (void)rig.load("user");
    (void)rig.load("other", {rig.out.path() + "/fw", rig.out.path() + "/to"});
    CHECK(std::filesystem::exists(rig.out.path() + "/to/other.bin"));
    (void)rig.unload({"other", "user"});
    CHECK_FALSE(rig.host.is_live("base"));
    CHECK(kmod::recorded_modules(rig.host.paths).empty());
    (void)rig.load("user");
    (void)rig.load("other", {rig.out.path() + "/fw", rig.out.path() + "/to"});
    (void)rig.unload({"user", "other"});
    CHECK(kmod::recorded_modules(rig.host.paths).empty());
    CHECK_FALSE(std::filesystem::exists(rig.out.path() + "/to/other.bin"));
}

TEST_CASE("what the kernel did although its answer was lost is this run's doing") {
    TroubleRig rig;
    const kmod::LoaderAnswer lost{EINTR, false, true, 77, "", true};
    rig.kernel.load_answers["other"] = lost;
    rig.kernel.on_refusal = [&] { rig.host.make_live("other", "AAAA0000"); };
    CHECK(rig.load("other").modules.back().action == kmod::Action::loaded);
    rig.kernel.unload_answers["other"] = {lost, {ENOENT, false, false, 78, ""}};
    rig.clock.on_sleep = [&](auto) { rig.host.make_gone("other"); };
    CHECK(rig.unload({"other"}).modules.back().action == kmod::Action::unloaded);
}

TEST_CASE("a helper that is killed each time is told as that, and not as an interruption") {
    TroubleRig rig;
    const kmod::LoaderAnswer lost{EINTR, false, true, 77, "", true};
    const auto message_of = [](const std::function<void()>& step) -> std::string {
        try {
            step();
        } catch (const Error& error) {
            CHECK(error.code() == "module-refused");
            CHECK(error.exit() == Exit::refused);
            CHECK(error.hint() ==
                  "look for the OOM killer in the kernel's log, and at the memory limit of the Pod; then run the same "
                  "command again");
            return error.message();
        }
        return "";
    };
    rig.kernel.load_answers["other"] = lost;
    CHECK(message_of([&] { (void)rig.load("other"); }) ==
          "the helper that loads module other was killed before the kernel answered, and the module is not live");
    rig.host.make_live("other", "AAAA0000");
    rig.kernel.unload_answers["other"] = std::vector<kmod::LoaderAnswer>(100, lost);
    CHECK(message_of([&] { (void)rig.unload({"other"}); }) ==
          "the helper that unloads module other was killed before the kernel answered, and the module is live");
}

TEST_CASE("a dependency that was unloaded behind this tool's back goes with the module that brings it again") {
    TroubleRig rig;
    (void)rig.load("base");
    CHECK(kmod::recorded_modules(rig.host.paths) == std::vector<std::string>{"base"});
    rig.host.make_gone("base");  // as rmmod does it
    (void)rig.load("user");
    rig.kernel.calls.clear();
    SUBCASE("as it came with that") {
        (void)rig.unload({"user"});
        CHECK(rig.kernel.calls == std::vector<std::string>{"unload user", "unload base"});
    }
    SUBCASE("unless it was wanted for itself since") {
        (void)rig.load("base");
        (void)rig.unload({"user"});
        CHECK(rig.kernel.calls == std::vector<std::string>{"unload user"});
    }
}

TEST_CASE("what was brought for a module that was unloaded behind this tool's back is still put back") {
    TroubleRig rig;
    put(rig.out.path() + "/fw/base.bin", "bytes");
    (void)rig.load("base", {rig.out.path() + "/fw", rig.out.path() + "/to"});
    rig.host.make_gone("base");
    (void)rig.load("user");
    (void)rig.unload({"user"});
    (void)rig.unload({"base"});
    CHECK_FALSE(std::filesystem::exists(rig.out.path() + "/to/base.bin"));
    CHECK_FALSE(kmod::read_record(rig.host.paths, "base"));
}

TEST_CASE("what stood in the way of a load is no warning of one that succeeded") {
    TroubleRig rig;
    rig.host.make_live("other", "AAAA0000", "OE", "1", "coming");
    rig.host.make_live("old", "X", "", "2");
    const kmod::LoadRequest request{"other", {}, {}, {"old"}};
    const auto checked = kmod::preflight(rig.index, request, rig.host.paths);
    CHECK(std::count_if(checked.findings.begin(), checked.findings.end(), [](const auto& finding) {
              return finding.code == "in-tree-in-use" || finding.code == "module-on-its-way";
          }) == 2);
    rig.host.make_gone("other");
    rig.host.make_live("old", "X", "");
    const auto report =
        kmod::load_modules(rig.index, checked, request, {}, {rig.host.paths, rig.kernel, rig.clock, {}});
    for (const auto& warning : report.warnings) CHECK(warning.find("a load ") == std::string::npos);
}

TEST_CASE("a check tells what stands in the way of a load right now") {
    TroubleRig rig;
    const auto codes = [&](const std::vector<std::string>& leaving) {
        std::vector<std::string> told;
        for (const auto& finding :
             kmod::preflight(rig.index, kmod::LoadRequest{"user", {}, {}, leaving}, rig.host.paths).findings) {
            if (finding.severity == Severity::warning &&
                (finding.code == "module-on-its-way" || finding.code == "in-tree-in-use"))
                told.push_back(finding.message);
        }
        return told;
    };
    CHECK(codes({"old"}).empty());
    rig.host.make_live("base", "AAAA0000", "OE", "1", "coming");
    CHECK(codes({}) == std::vector<std::string>{"module base is coming: a load waits for that for a moment, and ends "
                                                "without another attempt if it does not change"});
    rig.host.make_gone("base");
    rig.host.make_live("old", "X", "");
    CHECK(codes({"old"}).empty());
    rig.host.make_live("old", "X", "", "2");
    CHECK(codes({"old"}) == std::vector<std::string>{"module old is to give way and is in use (refcount 2): a load "
                                                     "waits for its users, and fails if they stay"});
    rig.host.make_live("old", "X", "");
    rig.host.make_live("older", "Y", "");
    rig.host.hold("old", "older");
    CHECK(codes({"old", "older"}).empty());
    CHECK(codes({"old"}) ==
          std::vector<std::string>{
              "module old is to give way, and older of this host needs it: a load fails as long as that is so"});
    rig.host.make_gone("older");
    put(rig.host.paths.proc + "/modules", "old 16384 0 [permanent], Live 0x0\n");
    CHECK(codes({"old"}) == std::vector<std::string>{"module old is to give way and has no exit function: it stays "
                                                     "until the node is rebooted, and a load fails"});
}

}

TEST_CASE("what a live module is pardoned for holds when it is not there for the load") {
    TroubleRig rig;
    put(rig.host.paths.etc + "/modprobe.d/a.conf", "install base /bin/false\n");
    rig.host.make_live("base", "AAAA0000");
    rig.host.make_live("user", "AAAA0000");
    kmod::LoadRequest request{"user", {}, {}, {}};
    const auto code = [](const auto& call) {
        try {
            call();
        } catch (const Error& error) {
            for (const auto& finding : error.diagnostics())
                CHECK(finding.message.find("nothing is loaded") == std::string::npos);
            return error.code() + " " + error.diagnostics().front().code;
        }
        return std::string("passed");
    };
    const auto check = [&] { kmod::require_passed(kmod::preflight(rig.index, request, rig.host.paths), "user"); };
    CHECK(code(check) == "check-failed install-command");  // a check is asked whether it could be loaded
    request.live_counts = true;
    CHECK(code(check) == "passed");
    const auto checked = kmod::preflight(rig.index, request, rig.host.paths);
    const auto load = [&] {
        (void)kmod::load_modules(rig.index, checked, request, {}, {rig.host.paths, rig.kernel, rig.clock, {}});
    };
    CHECK(code(load) == "passed");
    rig.host.make_gone("user");
    rig.host.make_gone("base");
    CHECK(code(load) == "check-failed install-command");
    CHECK(rig.kernel.calls.empty());
}
