// SPDX-License-Identifier: Apache-2.0
// What a load or unload tells of the modules that it touched, of their parameters, and of the kernel's health.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "kmod/check/errno_doctor.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Words = std::vector<std::string>;
using Texts = std::map<std::string, std::string>;

/// An image with `demo`, and a host whose tree has further modules.
struct ReportRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};
    sys::TempDir out{"kmm-image-"};
    KoSpec demo;
    kmod::LoadRequest request{"demo", {}, {}, {}};

    void add_to_host(const std::string& name, const std::string& srcversion, const std::string& depends = "") {
        KoSpec spec;
        spec.name = name;
        spec.srcversion = srcversion;
        spec.depends = depends;
        spec.modinfo = {"intree=Y", "version=in-tree", "parmtype=depth:int"};
        put(host.paths.lib_modules + "/" + k_release + "/kernel/" + name + ".ko", make_ko(spec));
    }
    kmod::ModuleIndex index() {
        put(out.path() + "/opt/demo.ko", make_ko(demo));
        return kmod::ModuleIndex::build(out.path() + "/opt", out.path());
    }
    kmod::Report load() {
        const auto modules = index();
        const auto checked = kmod::preflight(modules, request, host.paths);
        kmod::require_passed(checked, request.module);
        return kmod::load_modules(modules, checked, request, {}, {host.paths, kernel, clock, {}});
    }
    Error refused() {
        try {
            (void)load();
        } catch (const Error& error) {
            return error;
        }
        FAIL("no error");
        throw bug("unreachable");
    }
    kmod::Report unload(kmod::InTree in_tree = kmod::InTree::stay_unloaded) {
        kmod::UnloadRequest unload{{"demo"}};
        unload.in_tree = in_tree;
        return kmod::unload_modules(unload, {host.paths, kernel, clock, {}});
    }
};

kmod::ModuleReport of(const kmod::Report& report, const std::string& name) {
    const auto it = std::find_if(report.modules.begin(), report.modules.end(),
                                 [&](const auto& module) { return module.name == name; });
    REQUIRE(it != report.modules.end());
    return *it;
}

Words names_of(const kmod::Report& report) {
    Words names;
    for (const auto& module : report.modules) names.push_back(module.name);
    return names;
}

std::string health_of(const kmod::Report& report) {
    const auto it = std::find_if(report.warnings.begin(), report.warnings.end(),
                                 [](const auto& text) { return text.starts_with("health-not-checked: "); });
    return it == report.warnings.end() ? "" : *it;
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("what the host adds to the parameters is among them, with its place") {
    ReportRig rig;
    rig.demo.modinfo = {"parmtype=answer:int", "parmtype=who:charp", "parmtype=level:int", "parmtype=some_size:int",
                        "parmtype=on:bool"};
    rig.demo.depends = "helper";
    rig.add_to_host("helper", "H");
    rig.request.parameters = {"answer=7", "some_size=3"};
    put(rig.host.paths.etc + "/modprobe.d/a.conf",
        "options demo answer=1 who=\"some body\" nonsuch=1\noptions demo some-size=2 on\noptions helper depth=4\n");
    put(rig.host.paths.proc + "/cmdline", "quiet demo.level=5\n");
    const auto modules = rig.index();
    const auto foreseen =
        kmod::describe(modules, kmod::preflight(modules, rig.request, rig.host.paths), rig.request, rig.host.paths);
    const auto report = rig.load();
    CHECK(rig.kernel.calls ==
          Words{"load helper depth=4", "load demo who=\"some body\" nonsuch=1 on level=5 answer=7 some_size=3"});
    for (const auto* told : {&foreseen, &report}) {
        const auto demo = of(*told, "demo");
        CHECK(demo.parameters ==
              Texts{{"answer", "7"}, {"level", "5"}, {"on", ""}, {"some_size", "3"}, {"who", "some body"}});
        CHECK(demo.parameter_origins == Texts{{"level", "/proc/cmdline"},
                                              {"on", "/etc/modprobe.d/a.conf:2"},
                                              {"who", "/etc/modprobe.d/a.conf:1"}});
    }
    CHECK(of(report, "helper").parameters == Texts{{"depth", "4"}});
    CHECK(of(rig.load(), "demo").parameters ==
          Texts{{"answer", "7"}, {"some_size", "3"}});  // live already: nothing was given to it
}

TEST_CASE("an option that the host has got since the load is told to count for nothing") {
    ReportRig rig;
    rig.demo.modinfo = {"parmtype=answer:int"};
    put(rig.host.paths.etc + "/modprobe.d/a.conf", "options demo answer=010\n");
    (void)rig.load();
    put(rig.host.paths.sys + "/module/demo/parameters/answer", "8\n");
    const auto differing = [&] {
        const auto report = rig.load();
        const auto it = std::find_if(report.warnings.begin(), report.warnings.end(),
                                     [](const auto& text) { return text.starts_with("parameter-differs"); });
        return it == report.warnings.end() ? std::string() : *it;
    };
    CHECK(differing().empty());
    put(rig.host.paths.etc + "/modprobe.d/a.conf", "options demo answer=9\n");
    CHECK(differing() ==
          "parameter-differs: demo is live with answer=8, wanted 9 (/etc/modprobe.d/a.conf:1); unload it first to "
          "change that");
    rig.request.parameters = {"answer=8"};
    CHECK(differing().empty());
}

TEST_CASE("modules of the host that follow a load are told as those of the image, with what they need") {
    ReportRig rig;
    rig.demo.modinfo = {"softdep=post: late"};
    rig.add_to_host("late", "LATE", "later_base");
    rig.add_to_host("later_base", "BASE");
    const auto report = rig.load();
    CHECK(names_of(report) == Words{"demo", "later_base", "late"});
    const auto late = of(report, "late");
    CHECK(late.action == kmod::Action::dependency);
    CHECK(late.srcversion == "LATE");
    CHECK(late.version == "in-tree");
    CHECK(late.sha256.size() == 64);
    CHECK(late.path.ends_with("/kernel/late.ko"));
    CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == Words{"later_base", "late"});
    rig.kernel.calls.clear();
    (void)rig.unload();
    CHECK(rig.kernel.calls == Words{"unload demo", "unload late", "unload later_base"});
}

TEST_CASE("an in-tree module that comes back is told with its identity, and what it needs") {
    ReportRig rig;
    rig.add_to_host("old", "OLD", "old_base");
    rig.add_to_host("old_base", "BASE");
    rig.host.make_live("old", "OLD", "");
    rig.request.in_tree_modules_to_remove = {"old"};
    (void)rig.load();
    const auto report = rig.unload(kmod::InTree::restore);
    CHECK(names_of(report) == Words{"old_base", "old", "demo"});
    CHECK(of(report, "old_base").action == kmod::Action::dependency);
    const auto old = of(report, "old");
    CHECK(old.action == kmod::Action::restored);
    CHECK(old.srcversion == "OLD");
    CHECK(old.sha256.size() == 64);
    CHECK(old.path.ends_with("/kernel/old.ko"));
}

TEST_CASE("a second load does not forget which modules of the host came with the first") {
    ReportRig rig;
    rig.demo.depends = "helper";
    rig.add_to_host("helper", "H", "helper_base");
    rig.add_to_host("helper_base", "B");
    (void)rig.load();
    CHECK(of(rig.load(), "demo").action == kmod::Action::already_loaded);
    CHECK(kmod::read_record(rig.host.paths, "demo")->dependencies == Words{"helper_base", "helper"});
    (void)rig.unload();
    CHECK_FALSE(rig.host.is_live("helper"));
    CHECK_FALSE(rig.host.is_live("helper_base"));
}

TEST_CASE("a kernel whose health cannot be watched is not called healthy") {
    ReportRig rig;
    const std::string tainted = rig.host.paths.proc + "/sys/kernel/tainted";
    const auto both = [&] {
        const std::string of_load = health_of(rig.load());
        return of_load + "|" + health_of(rig.unload());
    };
    CHECK(both() == "|");
    SUBCASE("neither its taint nor its log") {
        std::filesystem::remove(tainted);
        std::filesystem::remove(rig.host.paths.kmsg);
        const std::string text =
            "health-not-checked: neither " + tainted + " nor " + rig.host.paths.kmsg +
            " can be read: whether the kernel oopsed, locked up or warned during the step is not known";
        CHECK(both() == text + "|" + text);
        (void)rig.load();
        CHECK(health_of(rig.load()).empty());  // nothing was asked of the kernel
    }
    SUBCASE("its log alone tells") {
        std::filesystem::remove(tainted);
        CHECK(both() == "|");
        rig.kernel.load_answers["demo"] = {0, false, false, 77, ""};
        rig.kernel.on_refusal = [&] {
            rig.host.log("WARNING: CPU: 0 PID: 9 at demo.c:55 demo_init+0x40/0x1000 [demo]");
        };
        const Error error = rig.refused();
        CHECK(error.code() == "node-unhealthy");
        CHECK(detail(error, "taint").empty());
    }
    SUBCASE("its taint alone, which had a fault before") {
        std::filesystem::remove(rig.host.paths.kmsg);
        CHECK(both() == "|");
        put(tainted, "512\n");
        const std::string text = "health-not-checked: the kernel had the taint W before, and " + rig.host.paths.kmsg +
                                 " cannot be read: whether it happened again during the step is not known";
        CHECK(both() == text + "|" + text);
        put(tainted, "4096\n");
        CHECK(both() == "|");
    }
}

TEST_CASE("what a load that hung or broke the kernel leaves is told") {
    ReportRig rig;
    rig.demo.depends = "helper";
    rig.add_to_host("helper", "H");
    rig.host.make_live("old", "OLD", "");
    rig.request.in_tree_modules_to_remove = {"old"};
    SUBCASE("hung") { rig.kernel.load_answers["demo"] = {0, true, false, 77, ""}; }
    SUBCASE("oops") {
        rig.kernel.load_answers["demo"] = {EINTR, false, false, 77, ""};
        rig.kernel.on_refusal = [&] { put(rig.host.paths.proc + "/sys/kernel/tainted", "128\n"); };
    }
    const Error error = rig.refused();
    CHECK(detail(error, "stay-loaded") == "helper");
    CHECK(detail(error, "in-tree-removed") == "old");
    CHECK(rig.host.is_live("helper"));
}

TEST_CASE("users of a module are waited for to the end of the time, and not past it") {
    ReportRig rig;
    rig.host.make_live("demo", "A", "OE", "1");
    rig.kernel.unload_answers["demo"] = std::vector<kmod::LoaderAnswer>(100, {EAGAIN, false, false, 1, ""});
    const auto start = rig.clock.monotonic();
    kmod::Patience patience;
    patience.busy = std::chrono::milliseconds(3000);
    CHECK_THROWS_AS((void)kmod::unload_modules({{"demo"}}, {rig.host.paths, rig.kernel, rig.clock, patience}), Error);
    CHECK(rig.clock.monotonic() - start == std::chrono::milliseconds(3000));
}

TEST_CASE("a pipe in the place of a file of the host holds nobody") {
    ReportRig rig;
    (void)rig.load();
    const std::string record = rig.host.paths.run + "/loaded/demo";
    const std::string config = rig.host.paths.etc + "/modprobe.d/a.conf";
    std::filesystem::remove(record);
    std::filesystem::create_directories(rig.host.paths.etc + "/modprobe.d");
    for (const auto& path : {record, config}) REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(of(rig.load(), "demo").action == kmod::Action::already_loaded);
    CHECK(of(rig.unload(), "demo").action == kmod::Action::unloaded);
}

TEST_CASE("a module without a signature is to be signed where the kernel insists, whatever it says of keys") {
    ReportRig rig;
    const kmod::ModuleFile file = kmod::parse_module(make_ko({}), "demo.ko");
    kmod::KernelState state = kmod::kernel_state(rig.host.paths);
    for (const int number : {ENODATA, ENOKEY, EKEYREJECTED, EKEYEXPIRED, EKEYREVOKED}) {
        CAPTURE(errno_name(number));
        state.sig_enforce = true;
        CHECK(kmod::likeliest_cause(kmod::load_causes(number, rig.host.paths, state, {&file, ""}), number)
                  .starts_with("the module is not signed: "));
        state.sig_enforce = false;  // then such a module is loaded, and the number is somebody else's
        CHECK(kmod::all_excluded(kmod::load_causes(number, rig.host.paths, state, {&file, ""})));
    }
}

TEST_CASE("firmware that the kernel did not find is the cause it names") {
    ReportRig rig;
    rig.kernel.load_answers["demo"] = {ENOENT, false, false, 1, ""};
    for (const char* line : {"demo 0000:00:01.0: Direct firmware load for vendor/a.bin failed with error -2",
                             "platform demo: firmware: failed to load vendor/a.bin (-2)"}) {
        CAPTURE(line);
        rig.kernel.on_refusal = [&] { rig.host.log(line); };
        const Error error = rig.refused();
        CHECK(detail(error, "cause") == "firmware vendor/a.bin was not found where the kernel looks for it");
        CHECK(error.hint() ==
              "put it into the image and set modprobe.firmwarePath, and name its place on this host with "
              "--firmware-path");
    }
}

TEST_CASE("where the kernel names an unknown symbol, a look from outside does not say that there is none") {
    ReportRig rig;
    rig.demo.undefined = {"_printk"};
    rig.demo.modinfo = {"license=Proprietary"};
    rig.kernel.load_answers["demo"] = {ENOENT, false, false, 1, ""};
    rig.kernel.on_refusal = [&] { rig.host.log("demo: Unknown symbol _printk (err -2)"); };
    const Error error = rig.refused();
    CHECK(detail(error, "symbols").starts_with("_printk "));
    CHECK(detail(error, "cause") == "a symbol that the module needs is not exported");
    CHECK(detail(error, "tested-1") ==
          "a symbol is exported to GPL modules only? unknown: the license is 'Proprietary'");
    CHECK(detail(error, "tested-2").empty());
}

}
