// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "kernel/weak_updates.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::kernel;
using kmm::test::KoSpec;

namespace {

constexpr const char* k_tail = " SMP preempt mod_unload modversions ";

Interface newer_kernel() {
    Interface made;
    made.source = "symvers.gz";
    made.release = "6.1.0-60-amd64";
    made.vermagic = "6.1.0-60-amd64 SMP preempt mod_unload modversions";
    made.architecture = "amd64";
    made.exports = {{"module_layout", {test::k_layout_crc, "vmlinux", false, ""}},
                    {"_printk", {test::k_crc, "vmlinux", false, ""}}};
    return made;
}

kmod::IndexedModule module_of(const KoSpec& spec, const std::string& path) {
    kmod::IndexedModule module;
    module.path = module.image_path = path;
    module.file = kmod::parse_module(test::make_ko(spec), path);
    return module;
}

WeakCandidate candidate(KoSpec spec, const std::string& home) {
    spec.vermagic = home + k_tail;
    const auto subpath = spec.name + ".ko";
    return {home, subpath, module_of(spec, "/lib/modules/" + home + "/extra/" + subpath)};
}

KoSpec named(const std::string& name) {
    KoSpec spec;
    spec.name = name;
    spec.crcs = {{"module_layout", test::k_layout_crc}, {"_printk", test::k_crc}};
    spec.undefined = {"_printk"};
    return spec;
}

/// "HOME/NAME=code" for each, "+" for one that fits.
std::string verdicts(const std::vector<WeakCandidate>& candidates, const Interface& kernel,
                     const std::vector<kmod::IndexedModule>& own = {}) {
    std::string text;
    for (const auto& judged : judge_weak(candidates, own, kernel)) {
        CHECK(!judged.reason.empty());
        text +=
            (text.empty() ? "" : " ") + judged.candidate->module.file.name + "=" + (judged.fits ? "+" : judged.code);
    }
    return text;
}

}  // namespace

TEST_SUITE("kernel::weak_updates") {

TEST_CASE("a module fits by every version, and what needs one that does not falls out with it") {
    const std::string old = "6.1.0-56-amd64";
    auto base = named("base"), user = named("user"), last = named("last"), apart = named("apart");
    base.exported = {"base_call"};
    base.crcs["gone"] = 1;
    base.undefined = {"_printk", "gone"};
    user.undefined = {"_printk", "base_call"};
    user.exported = {"user_call"};
    last.undefined = {"_printk", "user_call"};
    CHECK(verdicts({candidate(base, old), candidate(user, old), candidate(last, old), candidate(apart, old)},
                   newer_kernel()) == "base=unknown-symbol user=unknown-symbol last=unknown-symbol apart=+");
    auto changed = newer_kernel();
    changed.exports["_printk"].crc = 0x99;
    CHECK(verdicts({candidate(apart, old)}, changed) == "apart=symbol-version-differs");
    auto flags = newer_kernel();
    flags.vermagic = "6.1.0-60-amd64 SMP preempt_rt mod_unload modversions";
    CHECK(verdicts({candidate(apart, old)}, flags) == "apart=vermagic-differs");
    auto bare = named("bare");
    bare.crcs.clear();
    CHECK(verdicts({candidate(bare, old)}, newer_kernel()) == "bare=symbol-version-missing");
}

TEST_CASE("of several builds the latest that fits; an earlier one where the latest does not") {
    auto good = named("demo"), bad = named("demo");
    bad.crcs["_printk"] = 0x99;
    CHECK(verdicts({candidate(good, "6.1.0-9-amd64"), candidate(good, "6.1.0-56-amd64")}, newer_kernel()) ==
          "demo=later-build demo=+");
    CHECK(verdicts({candidate(good, "6.1.0-9-amd64"), candidate(bad, "6.1.0-56-amd64")}, newer_kernel()) ==
          "demo=+ demo=symbol-version-differs");
}

TEST_CASE("modules of one release that need each other are taken together or not at all") {
    const std::string first = "6.1.0-9-amd64", second = "6.1.0-56-amd64";
    auto base = named("base"), good = named("user"), bad = named("user"), alone = named("alone");
    base.exported = {"base_call"};
    good.undefined = bad.undefined = {"_printk", "base_call"};
    bad.crcs["_printk"] = 0x99;
    CHECK(verdicts({candidate(base, second), candidate(bad, second), candidate(alone, second)}, newer_kernel()) ==
          "base=group-unfit user=symbol-version-differs alone=+");
    // Then the whole group of an earlier release is, and not a part of each.
    CHECK(verdicts({candidate(base, first), candidate(good, first), candidate(base, second), candidate(bad, second)},
                   newer_kernel()) == "base=+ user=+ base=group-unfit user=symbol-version-differs");
    // A base that one of two users fits is taken with that one.
    auto other = named("other");
    other.undefined = {"_printk", "base_call"};
    CHECK(verdicts({candidate(base, second), candidate(bad, second), candidate(other, second)}, newer_kernel()) ==
          "base=+ user=symbol-version-differs other=+");
    // A later build that is taken stands for the group's own.
    CHECK(verdicts({candidate(base, first), candidate(good, first), candidate(base, second)}, newer_kernel()) ==
          "base=later-build user=+ base=+");
}

TEST_CASE("a kernel's own build comes first, and what it exports counts") {
    auto own = named("base");
    own.exported = {"base_call"};
    own.vermagic = std::string("6.1.0-60-amd64") + k_tail;
    auto user = named("user");
    user.undefined = {"_printk", "base_call"};
    CHECK(verdicts({candidate(named("base"), "6.1.0-56-amd64"), candidate(user, "6.1.0-56-amd64")}, newer_kernel(),
                   {module_of(own, "/own/base.ko")}) == "base=own-module user=+");
}

TEST_CASE("versions that nobody knows are no versions that fit") {
    auto kernel = newer_kernel();
    for (auto& [name, entry] : kernel.exports) entry.crc = 0;
    CHECK(verdicts({candidate(named("demo"), "6.1.0-56-amd64")}, kernel) == "demo=kernel-without-versions");
    kernel = newer_kernel();
    kernel.exports.erase("module_layout");
    CHECK(verdicts({candidate(named("demo"), "6.1.0-56-amd64")}, kernel) == "demo=vermagic-differs");
}

TEST_CASE("two modules cannot have one path") {
    auto first = candidate(named("first"), "6.1.0-55-amd64"), second = candidate(named("second"), "6.1.0-56-amd64");
    second.subpath = first.subpath;
    CHECK(verdicts({first, second}, newer_kernel()) == "first=+ second=same-path");
}

TEST_CASE("releases are compared as versions") {
    CHECK(is_earlier_release("5.14.0-9.el9", "5.14.0-70.el9"));
    CHECK(!is_earlier_release("5.14.0-70.el9", "5.14.0-9.el9"));
    CHECK(is_earlier_release("6.1.0", "6.1.0-1"));
    CHECK(!is_earlier_release("6.1.0", "6.1.0"));
    CHECK(is_earlier_release("6.1.0-009", "6.1.0-10"));
    CHECK(is_earlier_release("6.1.0-0", "6.1.0-1"));
    // An update within a minor version of RHEL is later than its first kernel.
    CHECK(is_earlier_release("4.18.0-305.el8.x86_64", "4.18.0-305.3.1.el8_4.x86_64"));
    CHECK(!is_earlier_release("4.18.0-305.3.1.el8_4.x86_64", "4.18.0-305.el8.x86_64"));
    CHECK(is_earlier_release("5.14.0-70.el9", "5.14.0-70.el9_0"));
    CHECK(is_earlier_release("6.12.0~rc1", "6.12.0"));
    CHECK(!is_earlier_release("6.12.0", "6.12.0~rc1"));
    CHECK(is_earlier_release("5.3.18-150300.59.93-default", "5.3.18-150300.59.106-default"));
    // As rpm has it: a number comes after a word, and what is between them does not count.
    CHECK(is_earlier_release("5.14.0-427.el9.x86_64", "5.14.0-427.13.1.el9_4.x86_64"));
    CHECK(!is_earlier_release("5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.el9.x86_64"));
    CHECK(is_earlier_release("5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.40.1.el9_4.x86_64"));
    CHECK(is_earlier_release("5.14.21-150500.55-default", "5.14.21-150500.55.39-default"));
    CHECK(is_earlier_release("6.8.0-9-generic", "6.8.0-10-generic"));
    CHECK(is_earlier_release("6.10.0-rc1", "6.10.0-1"));
    CHECK(is_earlier_release("6.1.0.1", "6.1.0_1") != is_earlier_release("6.1.0_1", "6.1.0.1"));
}

}
