// SPDX-License-Identifier: Apache-2.0
#include "kmod/preflight.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "kmod/inflate.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

kmod::ModuleIndex index_of(const std::vector<KoSpec>& specs) {
    kmod::ModuleIndex index;
    for (const auto& spec : specs) {
        index.add({kmod::parse_module(make_ko(spec), spec.name), "/absent/" + spec.name + ".ko", "/opt/" + spec.name + ".ko", "00"});
    }
    return index;
}

std::vector<std::string> codes(const kmod::Preflight& result) {
    std::vector<std::string> list;
    for (const auto& finding : result.findings) list.push_back(finding.code);
    return list;
}

kmod::LoadWish wish_for(const std::string& module, const std::vector<std::string>& parameters = {}) { return {module, parameters, {}, {}}; }

using Codes = std::vector<std::string>;

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a fitting module passes") {
    FakeHost host;
    KoSpec spec;
    spec.undefined = {"_printk"};
    spec.weak = {"optional"};
    spec.crcs = {{"module_layout", 7}, {"_printk", 1}};
    const auto result = kmod::preflight(index_of({spec}), wish_for("demo"), host.paths);
    CHECK(codes(result).empty());
    CHECK(result.vermagic_source == kmod::VermagicSource::module_of_the_kernel);
    CHECK_NOTHROW(kmod::require_passed(result, "demo"));
}

TEST_CASE("what cannot be loaded is named") {
    FakeHost host;
    KoSpec spec;
    SUBCASE("another kernel's vermagic") {
        spec.vermagic = "5.10.0-1-amd64 SMP mod_unload modversions ";
        const auto result = kmod::preflight(index_of({spec}), wish_for("demo"), host.paths);
        CHECK(codes(result) == Codes{"vermagic-differs"});
        CHECK(result.findings.front().message.find("differing: 6.1.0-56-amd64, missing preempt") != std::string::npos);
    }
    SUBCASE("only the release, which the kernel itself would let pass") {
        spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"vermagic-differs"});
    }
    SUBCASE("only the release, and one symbol's version is not known") {
        spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
        spec.undefined = {"_printk"};
        spec.crcs = {{"module_layout", 7}, {"_printk", 2}};
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"vermagic-differs"});
        CHECK_THROWS_AS(kmod::require_passed(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths), "demo"), Error);
    }
    SUBCASE("another machine") {
        spec.machine = EM_AARCH64;
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"module-format"});
    }
    SUBCASE("unknown symbols, all of them") {
        spec.undefined = {"_printk", "nobody", "hidden_function"};
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"unknown-symbol", "unknown-symbol"});
    }
    SUBCASE("another version of a symbol") {
        spec.crcs = {{"module_layout", 8}};
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"symbol-version-differs"});
    }
    SUBCASE("CRCs of the headers, if they are installed") {
        put(host.paths.lib_modules + "/" + k_release + "/build/Module.symvers", "0x00000002\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n");
        spec.crcs = {{"module_layout", 7}, {"_printk", 3}};
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"symbol-version-differs"});
    }
    SUBCASE("CRCs of the list beside the modules, as Red Hat's kernels have it; zero is none") {
        put(host.paths.lib_modules + "/" + k_release + "/symvers.xz",
            kmod::packed_module("0x00000002\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n0x00000000\tother\tvmlinux\tEXPORT_SYMBOL\t\n", "xz"));
        spec.crcs = {{"module_layout", 7}, {"other", 3}};
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)).empty());
        spec.crcs = {{"module_layout", 7}, {"_printk", 3}};
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"symbol-version-differs"});
    }
    SUBCASE("an unknown parameter") {
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo", {"x=1"}), host.paths)) == Codes{"unknown-parameter"});
    }
    SUBCASE("a dependency that is nowhere") {
        spec.depends = "nowhere";
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"dependency-missing"});
    }
    SUBCASE("built into the kernel") {
        spec.name = "firmware_class";
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("firmware_class"), host.paths)) == Codes{"builtin-module"});
    }
    SUBCASE("unsigned where signatures are enforced") {
        put(host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"unsigned-module"});
    }
    SUBCASE("modules are switched off") {
        put(host.paths.proc + "/sys/kernel/modules_disabled", "1\n");
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"modules-disabled"});
    }
    SUBCASE("a kernel without modules") {
        std::filesystem::remove(host.paths.proc + "/modules");
        CHECK(codes(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths)) == Codes{"no-module-support"});
    }
}

TEST_CASE("a module of another release passes where every symbol is known to fit, as for the kernel itself") {
    FakeHost host;
    put(host.paths.lib_modules + "/" + k_release + "/build/Module.symvers", "0x00000002\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n");
    KoSpec spec;
    spec.vermagic = "6.1.0-57-amd64 SMP preempt mod_unload modversions ";
    spec.undefined = {"_printk"};
    spec.crcs = {{"module_layout", 7}, {"_printk", 2}};
    const auto result = kmod::preflight(index_of({spec}), wish_for("demo"), host.paths);
    CHECK(codes(result) == Codes{"vermagic-differs"});
    CHECK_NOTHROW(kmod::require_passed(result, "demo"));
    CHECK(result.findings.front().message.find("built for kernel 6.1.0-57-amd64, but") != std::string::npos);

    KoSpec words = spec;
    words.vermagic = "6.1.0-57-amd64 SMP mod_unload modversions ";
    CHECK_THROWS_AS(kmod::require_passed(kmod::preflight(index_of({words}), wish_for("demo"), host.paths), "demo"), Error);
    // Only __versions frees a module from the release; the kernel wants the whole vermagic of one with extended versions alone.
    KoSpec extended = spec;
    extended.crcs.clear();
    extended.sections = {{"__version_ext_crcs", std::string("\7\0\0\0\2\0\0\0", 8)}, {"__version_ext_names", std::string("module_layout\0_printk\0", 22)}};
    CHECK_THROWS_AS(kmod::require_passed(kmod::preflight(index_of({extended}), wish_for("demo"), host.paths), "demo"), Error);
    extended.vermagic = k_vermagic;
    CHECK(codes(kmod::preflight(index_of({extended}), wish_for("demo"), host.paths)).empty());
    extended.sections["__version_ext_crcs"][4] = '\3';
    CHECK(codes(kmod::preflight(index_of({extended}), wish_for("demo"), host.paths)) == Codes{"symbol-version-differs"});
}

TEST_CASE("all findings travel in one error with exit 10") {
    FakeHost host;
    KoSpec spec;
    spec.undefined = {"nobody"};
    spec.vermagic = "5.10.0 SMP";
    const auto result = kmod::preflight(index_of({spec}), wish_for("demo", {"x=1"}), host.paths);
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
    const auto result = kmod::preflight(index_of({spec}), wish_for("demo"), host.paths);
    CHECK(codes(result) == Codes{"symbols-not-checked", "vermagic-not-checked"});
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
    const auto result = kmod::preflight(index_of({spec}), wish_for("demo"), host.paths);
    CHECK(codes(result).empty());
    REQUIRE(result.host_modules.size() == 2);
    CHECK(result.host_modules[0].name == "hostbase");
    CHECK(result.host_modules[1].path == kernel + "host-upper.ko");
    host.make_live("host_upper", "X", "");
    CHECK(kmod::preflight(index_of({spec}), wish_for("demo"), host.paths).host_modules.empty());
}

TEST_CASE("vermagic, word by word") {
    using Words = std::vector<std::string>;
    CHECK(kmod::vermagic_differences("6.1 SMP preempt", "6.1 SMP preempt ").empty());
    CHECK(kmod::vermagic_differences("6.2 SMP", "6.1 SMP") == Words{"6.1"});
    CHECK(kmod::vermagic_differences("6.1 SMP", "6.1 SMP preempt") == Words{"missing preempt"});
    CHECK(kmod::vermagic_differences("6.1 SMP x", "6.1 SMP") == Words{"surplus x"});
    CHECK(kmod::vermagic_differences("", "6.1 SMP") == Words{"6.1", "missing SMP"});
}

}
