// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/preflight.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "digest/digest.hpp"
#include "kmod/ko/inflate.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

kmod::ModuleIndex index_of(const std::vector<KoSpec>& specs) {
    kmod::ModuleIndex index;
    for (const auto& spec : specs) {
        index.add({kmod::parse_module(make_ko(spec), spec.name), "/absent/" + spec.name + ".ko",
                   "/opt/" + spec.name + ".ko", "00"});
    }
    return index;
}

std::vector<std::string> codes(const kmod::Preflight& result) {
    std::vector<std::string> list;
    for (const auto& finding : result.findings) list.push_back(finding.code);
    return list;
}

kmod::LoadRequest request_for(const std::string& module, const std::vector<std::string>& parameters = {}) {
    return {module, parameters, {}, {}};
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a fitting module passes") {
    FakeHost host;
    KoSpec spec;
    spec.undefined = {"_printk"};
    spec.weak = {"optional"};
    spec.crcs = {{"module_layout", 7}, {"_printk", test::k_crc}};
    const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
    CHECK(codes(result).empty());
    CHECK(result.vermagic_source == kmod::VermagicSource::module_of_the_kernel);
    CHECK_NOTHROW(kmod::require_passed(result, "demo"));
}

TEST_CASE("what cannot be loaded is named") {
    FakeHost host;
    KoSpec spec;
    SUBCASE("another kernel's vermagic") {
        spec.vermagic = "5.10.0-1-amd64 SMP mod_unload modversions ";
        const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
        CHECK(codes(result) == Codes{"vermagic-differs"});
        CHECK(result.findings.front().message.find("differing: 6.1.0-56-amd64, missing preempt") != std::string::npos);
    }
    SUBCASE("only the release, which the kernel itself would let pass") {
        spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) == Codes{"vermagic-differs"});
    }
    SUBCASE("only the release, and one symbol's version is not known") {
        spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
        put(host.paths.proc + "/kallsyms", "0 r __ksymtab_other\n");
        spec.undefined = {"other"};
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) ==
              Codes{"vermagic-differs", "versions-not-checked"});
        CHECK_THROWS_AS(
            kmod::require_passed(kmod::preflight(index_of({spec}), request_for("demo"), host.paths), "demo"), Error);
    }
    SUBCASE("another machine") {
        spec.machine = EM_AARCH64;
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) == Codes{"module-format"});
    }
    SUBCASE("unknown symbols, all of them") {
        spec.undefined = {"_printk", "nobody", "hidden_function"};
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) ==
              Codes{"unknown-symbol", "unknown-symbol"});
    }
    SUBCASE("another version of a symbol") {
        spec.crcs = {{"module_layout", 8}};
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) ==
              Codes{"symbol-version-differs"});
    }
    SUBCASE("CRCs of the headers, if they are installed") {
        put(host.paths.lib_modules + "/" + k_release + "/build/Module.symvers",
            "0x00000005\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n");
        spec.undefined = {"_printk"};
        spec.crcs = {{"module_layout", 7}, {"_printk", 3}};
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) ==
              Codes{"symbol-version-differs"});
    }
    SUBCASE("CRCs of the list beside the modules, as Red Hat's kernels have it; zero is none") {
        put(host.paths.lib_modules + "/" + k_release + "/symvers.xz",
            kmod::packed_module(
                "0x00000005\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n0x00000000\tother\tvmlinux\tEXPORT_SYMBOL\t\n", "xz"));
        spec.crcs = {{"module_layout", 7}, {"other", 3}};
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)).empty());
        spec.undefined = {"_printk"};
        spec.crcs = {{"module_layout", 7}, {"_printk", 3}};
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) ==
              Codes{"symbol-version-differs"});
    }
    SUBCASE("an unknown parameter") {
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo", {"x=1"}), host.paths)) ==
              Codes{"unknown-parameter"});
    }
    SUBCASE("a dependency of the host that was built for another kernel") {
        const std::string path = host.paths.lib_modules + "/" + k_release + "/kernel/aaa/hostlib.ko";
        KoSpec lib = FakeHost::reference();
        lib.name = "hostlib";
        lib.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
        spec.depends = "hostlib";
        const auto check = [&] {
            put(path, make_ko(lib));
            return kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
        };
        CHECK(codes(check()).empty());  // the kernel takes it: its symbols have the versions that it wants
        lib.crcs = {{"module_layout", 8}};
        CHECK(codes(check()) == Codes{"vermagic-differs"});
        lib.crcs = {};
        const auto result = check();
        CHECK(codes(result) == Codes{"vermagic-differs"});
        CHECK(result.findings.front().severity == Severity::error);
        CHECK(result.findings.front().message ==
              "module hostlib of this host, which is needed, was built for another kernel: vermagic '6.1.0-57-amd64 "
              "SMP preempt mod_unload modversions', "
              "expected '6.1.0-56-amd64 SMP preempt mod_unload modversions', differing: 6.1.0-56-amd64 (" +
                  path + ")");
        host.make_live("hostlib", "");
        CHECK(codes(check()).empty());
    }
    SUBCASE("a dependency that is nowhere") {
        spec.depends = "nowhere";
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) == Codes{"dependency-missing"});
    }
    SUBCASE("built into the kernel") {
        spec.name = "firmware_class";
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("firmware_class"), host.paths)) ==
              Codes{"builtin-module"});
    }
    SUBCASE("unsigned where signatures are enforced") {
        put(host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) == Codes{"unsigned-module"});
    }
    SUBCASE("modules are switched off") {
        put(host.paths.proc + "/sys/kernel/modules_disabled", "1\n");
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) == Codes{"modules-disabled"});
    }
    SUBCASE("a kernel without modules") {
        std::filesystem::remove(host.paths.proc + "/modules");
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) == Codes{"no-module-support"});
    }
}

TEST_CASE("versions of symbols, with those of other modules of the image and of the host") {
    FakeHost host;
    put(host.paths.proc + "/kallsyms", "0 r __ksymtab__printk\n0 r __ksymtab_other\n");
    KoSpec dep, spec;
    dep.name = "dep";
    dep.exported = {"dep_call"};
    spec.depends = "dep";
    spec.undefined = {"_printk", "dep_call"};
    const auto check = [&] { return kmod::preflight(index_of({dep, spec}), request_for("demo"), host.paths); };
    SUBCASE("built together") {
        CHECK(codes(check()).empty());
        dep.absolute_crcs = true;
        CHECK(codes(check()).empty());
    }
    SUBCASE("built apart") {
        dep.export_crcs = {{"dep_call", 6}};
        const auto result = check();
        CHECK(codes(result) == Codes{"symbol-version-differs"});
        CHECK(result.findings.front().message ==
              "module demo was built against another build of module dep, which is in the image too: dep_call "
              "0x00000005 (expected 0x00000006)");
        CHECK(result.findings.front().severity == Severity::error);
        dep.absolute_crcs = true;
        CHECK(codes(check()) == Codes{"symbol-version-differs"});
    }
    SUBCASE("the other was built without versions: the kernel has nothing to compare") {
        dep.versioned_exports = false;
        CHECK(codes(check()).empty());
    }
    SUBCASE("without the Module.symvers of the other") {
        spec.undefined = {"_printk"};
        spec.weak = {"dep_call"};
        auto result = check();
        CHECK(codes(result) == Codes{"symbol-version-missing"});
        CHECK(result.findings.front().severity == Severity::warning);
        put(host.paths.proc + "/version", "Linux version 6.1.0-56-amd64 (debian-kernel@lists.debian.org) (gcc-12)\n");
        result = check();
        CHECK(result.findings.front().severity == Severity::error);
        CHECK(result.findings.front().message ==
              "module demo was built without the version of dep_call: this kernel refuses it");
    }
    SUBCASE("no versions at all") {
        spec.crcs.clear();
        const auto result = check();
        CHECK(codes(result) == Codes{"symbol-version-missing"});
        CHECK(result.findings.front().severity == Severity::error);
    }
    SUBCASE("a kernel without versions") {
        KoSpec plain = FakeHost::reference();
        plain.vermagic = spec.vermagic = dep.vermagic = "6.1.0-56-amd64 SMP preempt mod_unload ";
        put(host.paths.lib_modules + "/" + k_release + "/kernel/drivers/reference.ko", make_ko(plain));
        dep.export_crcs = {{"dep_call", 6}};
        CHECK(codes(check()).empty());
    }
    SUBCASE("what only the file of a live module tells, and what nothing does") {
        spec.undefined.emplace_back("other");
        auto result = check();
        CHECK(codes(result) == Codes{"versions-not-checked"});
        CHECK(result.findings.front().message ==
              "this host does not say which version the kernel has of 1 symbol of module demo: other");
        KoSpec live = FakeHost::reference();
        live.name = "zlive";
        live.undefined = {"other"};
        put(host.paths.lib_modules + "/" + k_release + "/extra/zlive.ko", make_ko(live));
        CHECK(codes(check()) == Codes{"versions-not-checked"});
        host.make_live("zlive", "", "");
        CHECK(codes(check()).empty());
        spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
        spec.crcs["other"] = test::k_crc;
        result = check();
        CHECK(codes(result) == Codes{"vermagic-differs"});
        CHECK(result.findings.front().severity == Severity::warning);
        spec.vermagic = k_vermagic;
        spec.crcs["other"] = 9;
        CHECK(codes(check()) == Codes{"symbol-version-differs"});
    }
    SUBCASE("a module of the host that is loaded first") {
        KoSpec in_tree = FakeHost::reference();
        in_tree.name = "dep";
        in_tree.exported = {"dep_call"};
        in_tree.export_crcs = {{"dep_call", 6}};
        put(host.paths.lib_modules + "/" + k_release + "/kernel/zdep.ko", make_ko(in_tree));
        std::filesystem::rename(host.paths.lib_modules + "/" + k_release + "/kernel/zdep.ko",
                                host.paths.lib_modules + "/" + k_release + "/kernel/dep.ko");
        CHECK(codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths)) ==
              Codes{"symbol-version-differs"});
    }
}

TEST_CASE("a module of another release passes where every symbol is known to fit, as for the kernel itself") {
    FakeHost host;
    put(host.paths.lib_modules + "/" + k_release + "/build/Module.symvers",
        "0x00000005\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n");
    KoSpec spec;
    spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
    spec.undefined = {"_printk"};
    spec.crcs = {{"module_layout", 7}, {"_printk", test::k_crc}};
    const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
    CHECK(codes(result) == Codes{"vermagic-differs"});
    CHECK_NOTHROW(kmod::require_passed(result, "demo"));
    CHECK(result.findings.front().message.find("built for kernel 6.1.0-57-amd64, but") != std::string::npos);

    KoSpec words = spec;
    words.vermagic = "6.1.0-57-amd64 SMP mod_unload modversions ";
    CHECK_THROWS_AS(kmod::require_passed(kmod::preflight(index_of({words}), request_for("demo"), host.paths), "demo"),
                    Error);
    // Only __versions frees a module from the release; the kernel wants the whole vermagic of one with extended
    // versions alone.
    KoSpec extended = spec;
    extended.crcs.clear();
    extended.sections = {{"__version_ext_crcs", std::string("\7\0\0\0\5\0\0\0", 8)},
                         {"__version_ext_names", std::string("module_layout\0_printk\0", 22)}};
    CHECK_THROWS_AS(
        kmod::require_passed(kmod::preflight(index_of({extended}), request_for("demo"), host.paths), "demo"), Error);
    extended.vermagic = k_vermagic;
    CHECK(codes(kmod::preflight(index_of({extended}), request_for("demo"), host.paths)).empty());
    extended.sections["__version_ext_crcs"][4] = '\3';
    CHECK(codes(kmod::preflight(index_of({extended}), request_for("demo"), host.paths)) ==
          Codes{"symbol-version-differs"});
}

TEST_CASE("all findings travel in one error with exit 10") {
    FakeHost host;
    KoSpec spec;
    spec.undefined = {"nobody"};
    spec.vermagic = "5.10.0 SMP";
    const auto result = kmod::preflight(index_of({spec}), request_for("demo", {"x=1"}), host.paths);
    try {
        kmod::require_passed(result, "demo");
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::checks_failed);
        CHECK(error.code() == "check-failed");
        CHECK(error.diagnostics().size() == 3);
        CHECK(error.message() == "module demo cannot be loaded here: 3 checks failed");
    }
}

TEST_CASE("what could not be checked is a warning") {
    FakeHost host;
    std::filesystem::remove_all(host.paths.lib_modules);
    put(host.paths.proc + "/kallsyms", "");
    KoSpec spec;
    spec.undefined = {"_printk"};
    const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
    CHECK(codes(result) == Codes{"symbols-not-checked", "vermagic-not-checked", "versions-not-checked"});
    CHECK(result.vermagic_source == kmod::VermagicSource::release_only);
    CHECK_NOTHROW(kmod::require_passed(result, "demo"));
}

TEST_CASE("dependencies of the host's tree come first, with their own") {
    FakeHost host;
    const std::string kernel = host.paths.lib_modules + "/" + k_release + "/kernel/";
    KoSpec base;
    base.name = "hostbase";
    base.exported = {"base_symbol"};
    KoSpec upper;
    upper.name = "host_upper";
    upper.depends = "hostbase";
    upper.exported = {"upper_symbol"};
    put(kernel + "hostbase.ko", make_ko(base));
    put(kernel + "host-upper.ko", make_ko(upper));
    KoSpec spec;
    spec.depends = "host-upper";
    spec.undefined = {"upper_symbol"};
    const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
    CHECK(codes(result).empty());
    REQUIRE(result.host_modules.size() == 2);
    CHECK(result.host_modules[0].name == "hostbase");
    CHECK(result.host_modules[1].path == kernel + "host-upper.ko");
    host.make_live("host_upper", "X", "");
    CHECK(kmod::preflight(index_of({spec}), request_for("demo"), host.paths).host_modules.empty());
}

TEST_CASE("softdeps of what the host's tree brings are loaded around it, as modprobe does") {
    FakeHost host;
    const std::string kernel = host.paths.lib_modules + "/" + k_release + "/kernel/";
    const auto put_host = [&](const std::string& name, const std::string& depends, const std::string& softdep) {
        KoSpec spec;
        spec.name = name;
        spec.depends = depends;
        if (!softdep.empty()) spec.modinfo = {"softdep=" + softdep};
        put(kernel + name + ".ko", make_ko(spec));
    };
    put_host("base", "", "pre: sum nowhere base post: late");
    put_host("upper", "base", "");
    put_host("sum", "tools", "pre: base");
    put_host("tools", "", "");
    put_host("late", "", "");
    put_host("extra", "", "");
    KoSpec spec;
    spec.depends = "upper";
    const auto names = [&] {
        const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
        CHECK(codes(result).empty());
        CHECK_NOTHROW(kmod::require_passed(result, "demo"));
        CHECK_FALSE(result.order.optional.contains("base"));
        std::string text;
        for (const auto& module : result.host_modules)
            text += (text.empty() ? "" : " ") + module.name + (result.order.optional.contains(module.name) ? "?" : "");
        return text;
    };
    CHECK(names() == "tools? base late? sum? upper");
    SUBCASE("also those of modprobe.d") {
        put(host.paths.etc + "/modprobe.d/a.conf", "softdep uppe? pre: extra\nsoftdep demo post: late\n");
        CHECK(names() == "tools? base late? sum? extra? upper");
    }
    SUBCASE("also around what is live already, which is only not loaded itself") {
        host.make_live("base", "X", "");
        CHECK(names() == "tools? base late? sum? upper");
        host.make_live("upper", "X", "");
        CHECK(names() == "tools? late? sum?");
        host.make_live("sum", "X", "");
        CHECK(names() == "tools? late?");
    }
    SUBCASE("one that cannot be loaded is left out") {
        KoSpec old;
        old.name = "sum";
        old.vermagic = "5.10.0 SMP mod_unload ";
        put(kernel + "sum.ko", make_ko(old));
        const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
        CHECK(codes(result) == Codes{"soft-dependency-failed"});
        CHECK(result.host_modules.size() == 3);
        CHECK_NOTHROW(kmod::require_passed(result, "demo"));
    }
    SUBCASE("one that something needs is required") {
        spec.depends = "sum,upper";
        CHECK(names() == "tools sum base late? upper");
    }
    SUBCASE("those of what a softdep of the image names") {
        spec.depends = "";
        spec.modinfo = {"softdep=pre: upper"};
        const auto result = kmod::preflight(index_of({spec}), request_for("demo"), host.paths);
        CHECK(result.host_modules.size() == 5);
    }
}

TEST_CASE("a kernel of SUSE that takes supported modules alone") {
    FakeHost host;
    KoSpec spec;
    const auto found = [&](const std::string& sysctl, const std::string& mark) {
        put(host.paths.proc + "/sys/kernel/unsupported", sysctl + "\n");
        spec.modinfo = {"license=GPL"};
        if (!mark.empty()) spec.modinfo.push_back("supported=" + mark);
        return codes(kmod::preflight(index_of({spec}), request_for("demo"), host.paths));
    };
    for (const char* mark : {"", "no"}) {
        CHECK(found("0", mark) == Codes{"module-unsupported"});
        CHECK(found("1", mark).empty());
        CHECK(found("2", mark).empty());
    }
    for (const char* mark : {"yes", "external"}) CHECK(found("0", mark).empty());
    // So it is with what the host brings.
    KoSpec base;
    base.name = "hostbase";
    spec.depends = "hostbase";
    const auto path = host.paths.lib_modules + "/" + k_release + "/kernel/hostbase.ko";
    put(path, make_ko(base));
    CHECK(found("0", "external") == Codes{"module-unsupported"});
    CHECK(found("1", "external").empty());
    base.modinfo = {"supported=yes"};
    put(path, make_ko(base));
    CHECK(found("0", "external").empty());
}

TEST_CASE("vermagic, word by word") {
    using Words = std::vector<std::string>;
    CHECK(kmod::vermagic_differences("6.1 SMP preempt", "6.1 SMP preempt ").empty());
    CHECK(kmod::vermagic_differences("6.2 SMP", "6.1 SMP") == Words{"6.1"});
    CHECK(kmod::vermagic_differences("6.1 SMP", "6.1 SMP preempt") == Words{"missing preempt"});
    CHECK(kmod::vermagic_differences("6.1 SMP x", "6.1 SMP") == Words{"surplus x"});
    CHECK(kmod::vermagic_differences("", "6.1 SMP") == Words{"6.1", "missing SMP"});
}

TEST_CASE("modprobe's -i is for the modules that it is called with, not for what they need") {
    FakeHost host;
    kmod::ModuleIndex index;
    for (const char* name : {"demo", "above"}) {
        KoSpec spec;
        spec.name = name;
        if (spec.name == "above") spec.depends = "demo";
        const std::string bytes = make_ko(spec);
        index.add({kmod::parse_module(bytes, name), "/image/" + spec.name + ".ko", "/opt/" + spec.name + ".ko",
                   digest::sha256_hex(bytes)});
    }
    put(host.paths.etc + "/modprobe.d/x.conf", "install demo /bin/false\n");
    kmod::LoadRequest request{"above", {}, {}, {}};
    request.install_commands = kmod::InstallCommands::ignore;
    const auto found = [&] {
        for (const auto& finding : kmod::preflight(index, request, host.paths).findings)
            if (finding.code == "install-command") return std::string(to_string(finding.severity)) + finding.hint;
        return std::string();
    };
    CHECK(found() == "error" "remove that line on the node");
    request.also = {"demo"};
    CHECK(found() == "warning");
}

}
