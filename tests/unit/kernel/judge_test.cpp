// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/text.hpp"
#include "kernel/judge.hpp"
#include "kmod/ko/signature.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::kernel;
using kmm::test::KoSpec;

namespace {

Interface sound_kernel() {
    Interface made;
    made.source = "headers";
    made.release = test::k_release;
    made.vermagic = "6.1.0-56-amd64 SMP preempt mod_unload modversions";
    made.architecture = "amd64";
    made.exports = {{"_printk", {test::k_crc, "vmlinux", false, ""}},
                    {"gpl_call", {test::k_crc, "vmlinux", true, ""}},
                    {"map", {test::k_crc, "drivers/dma/buf", false, "BUF"}}};
    made.modules = {"buf"};
    return made;
}

kmod::ModuleIndex index_of(const std::vector<KoSpec>& specs) {
    kmod::ModuleIndex index;
    for (const auto& spec : specs) {
        kmod::IndexedModule module;
        module.image_path = "/opt/" + spec.name + ".ko";
        module.file = kmod::parse_module(test::make_ko(spec), module.image_path);
        index.add(module);
    }
    return index;
}

std::string codes(const Diagnostics& findings) {
    std::string text;
    for (const auto& finding : findings)
        text +=
            (text.empty() ? "" : " ") + std::string(finding.severity == Severity::warning ? "~" : "") + finding.code;
    return text;
}

}  // namespace

TEST_SUITE("kernel::unit") {

TEST_CASE("what a kernel would refuse, and only that") {
    struct Row {
        const char* what;
        std::function<void(KoSpec&, Interface&, Request&)> change;
        const char* codes;
    };
    const std::vector<Row> rows = {
        {"sound", [](KoSpec&, Interface&, Request&) {}, ""},
        {"right version",
         [](KoSpec& ko, Interface&, Request&) {
             ko.crcs = {{"_printk", test::k_crc}};
         },
         ""},
        {"wrong version",
         [](KoSpec& ko, Interface&, Request&) {
             ko.crcs = {{"_printk", 0x12}};
         },
         "symbol-version-differs"},
        {"other layout",
         [](KoSpec& ko, Interface& kernel, Request&) {
             kernel.exports["module_layout"] = {test::k_layout_crc + 1, "vmlinux", false, ""};
             ko.name = "demo";
         },
         "symbol-version-differs"},
        {"no version of one",
         [](KoSpec& ko, Interface& kernel, Request&) {
             kernel.exports["other"] = {1, "vmlinux", false, ""};
             ko.weak = {"other"};
         },
         "~symbol-version-missing"},
        {"no version of one, Debian",
         [](KoSpec& ko, Interface& kernel, Request&) {
             kernel.exports["other"] = {1, "vmlinux", false, ""};
             ko.weak = {"other"};
             kernel.missing_versions = kmod::MissingVersions::refused;
         },
         "symbol-version-missing"},
        {"no versions at all", [](KoSpec& ko, Interface&, Request&) { ko.crcs.clear(); }, "symbol-version-missing"},
        {"a kernel without versions",
         [](KoSpec&, Interface& kernel, Request&) {
             for (auto& [name, entry] : kernel.exports) entry.crc = 0;
         },
         ""},
        {"nobody exports it", [](KoSpec& ko, Interface&, Request&) { ko.undefined.emplace_back("nobody"); },
         "unknown-symbol"},
        {"nobody exports it, but it is weak", [](KoSpec& ko, Interface&, Request&) { ko.weak.emplace_back("nobody"); },
         ""},
        {"proprietary",
         [](KoSpec& ko, Interface&, Request&) {
             ko.undefined.emplace_back("gpl_call");
             ko.modinfo = {"license=Proprietary"};
         },
         "gpl-only"},
        {"free",
         [](KoSpec& ko, Interface&, Request&) {
             ko.undefined.emplace_back("gpl_call");
             ko.modinfo = {"license=Dual MIT/GPL"};
         },
         ""},
        {"namespace", [](KoSpec& ko, Interface&, Request&) { ko.undefined.emplace_back("map"); }, "namespace-missing"},
        {"namespace imported",
         [](KoSpec& ko, Interface&, Request&) {
             ko.undefined.emplace_back("map");
             ko.modinfo = {"import_ns=BUF"};
         },
         ""},
        {"namespace, lenient kernel",
         [](KoSpec& ko, Interface& kernel, Request&) {
             ko.undefined.emplace_back("map");
             kernel.lenient_namespaces = true;
         },
         "~namespace-missing"},
        {"other vermagic",
         [](KoSpec& ko, Interface&, Request&) { ko.vermagic = "6.1.0-56-amd64 SMP mod_unload modversions "; },
         "vermagic-differs"},
        {"other release, every version fits",
         [](KoSpec& ko, Interface& kernel, Request&) {
             ko.vermagic = "6.1.0-55-amd64 SMP preempt mod_unload modversions ";
             kernel.exports["module_layout"] = {test::k_layout_crc, "vmlinux", false, ""};
         },
         "~vermagic-differs"},
        {"other release, a version differs",
         [](KoSpec& ko, Interface& kernel, Request&) {
             ko.vermagic = "6.1.0-55-amd64 SMP preempt mod_unload modversions ";
             kernel.exports["module_layout"] = {test::k_layout_crc, "vmlinux", false, ""};
             ko.crcs["_printk"] = 0x12;
         },
         "symbol-version-differs vermagic-differs"},
        {"other release, a version not known",
         [](KoSpec& ko, Interface&, Request&) { ko.vermagic = "6.1.0-55-amd64 SMP preempt mod_unload modversions "; },
         "vermagic-differs"},
        {"other release, no versions",
         [](KoSpec& ko, Interface& kernel, Request&) {
             ko.vermagic = "6.1.0-55-amd64 SMP preempt mod_unload modversions ";
             kernel.exports["module_layout"] = {test::k_layout_crc, "vmlinux", false, ""};
             ko.crcs.clear();
         },
         "symbol-version-missing vermagic-differs"},
        {"other release and words",
         [](KoSpec& ko, Interface&, Request&) {
             ko.vermagic = "6.1.0-55-amd64 SMP mod_unload modversions ";
             ko.crcs = {{"_printk", test::k_crc}};
         },
         "vermagic-differs"},
        {"vermagic unknown",
         [](KoSpec& ko, Interface& kernel, Request&) {
             ko.vermagic = "6.1.0-56-amd64 SMP ";
             kernel.vermagic = "";
         },
         "~vermagic-not-checked"},
        {"vermagic unknown, other release",
         [](KoSpec& ko, Interface& kernel, Request&) {
             ko.vermagic = "6.1.0-55-amd64 SMP ";
             kernel.vermagic = "";
         },
         "vermagic-differs ~vermagic-not-checked"},
        {"other machine", [](KoSpec& ko, Interface&, Request&) { ko.machine = EM_AARCH64; }, "module-format"},
        {"signatures forced", [](KoSpec&, Interface& kernel, Request&) { kernel.signatures_forced = true; },
         "unsigned-module"},
        {"enforced by the nodes",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_checked = true;
             request.signatures_enforced = true;
         },
         "unsigned-module"},
        {"unsigned, and nobody minds", [](KoSpec&, Interface& kernel, Request&) { kernel.signatures_checked = true; },
         ""},
        {"unsigned, certificates given",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_checked = true;
             request.certificates_given = true;
         },
         "~unsigned-module"},
        {"unsigned, configuration not known",
         [](KoSpec&, Interface&, Request& request) { request.certificates_given = true; }, "~unsigned-module"},
        {"kernel without signatures",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_checked = false;
             request.signatures["demo"] = {Trust::bad, "", "x"};
             request.certificates_given = true;
         },
         ""},
        {"unknown key",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_checked = true;
             request.signatures["demo"] = {Trust::unknown_key, "", ""};
         },
         "~key-not-trusted"},
        {"unknown key, forced",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_forced = true;
             request.signatures["demo"] = {Trust::unknown_key, "", ""};
         },
         "key-not-trusted"},
        {"bad signature, not forced",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_checked = true;
             request.signatures["demo"] = {Trust::bad, "", "x"};
         },
         "bad-signature"},
        {"bad signature, configuration not known",
         [](KoSpec&, Interface&, Request& request) {
             request.signatures["demo"] = {Trust::bad, "", "x"};
         },
         "~bad-signature"},
        {"signed, nothing to compare with, forced",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_forced = true;
             request.signatures["demo"] = {Trust::unchecked, "", ""};
         },
         "~key-not-checked"},
        {"signed in a way that OpenSSL does not know, beside certificates",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_checked = true;
             request.certificates_given = true;
             request.signatures["demo"] = {Trust::unchecked, "", "OpenSSL does not know the algorithm"};
         },
         "~key-not-checked"},
        {"trusted, forced",
         [](KoSpec&, Interface& kernel, Request& request) {
             kernel.signatures_forced = true;
             request.signatures["demo"] = {Trust::trusted, "Lab", ""};
         },
         ""},
        {"dependency of the kernel", [](KoSpec& ko, Interface&, Request&) { ko.depends = "buf"; }, ""},
        {"dependency nobody knows", [](KoSpec& ko, Interface&, Request&) { ko.depends = "ghost"; },
         "~dependency-not-known"},
        {"unknown parameter", [](KoSpec&, Interface&, Request& request) { request.parameters = {"depth=3"}; },
         "unknown-parameter"},
        {"not in the image", [](KoSpec&, Interface&, Request& request) { request.module = "demo2"; },
         "module-not-in-image"},
        {"firmware there",
         [](KoSpec& ko, Interface&, Request& request) {
             ko.modinfo = {"firmware=a/b.bin"};
             request.has_firmware = true;
             request.firmware = {"a/b.bin"};
         },
         ""},
        {"firmware absent",
         [](KoSpec& ko, Interface&, Request& request) {
             ko.modinfo = {"firmware=a/b.bin"};
             request.has_firmware = true;
         },
         "~firmware-not-in-image"},
        {"firmware of the host", [](KoSpec& ko, Interface&, Request&) { ko.modinfo = {"firmware=a/b.bin"}; }, ""},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.what));
        KoSpec ko;
        ko.undefined = {"_printk"};
        auto kernel = sound_kernel();
        Request request;
        request.module = "demo";
        request.release = test::k_release;
        row.change(ko, kernel, request);
        CHECK(codes(judge(index_of({ko}), request, &kernel)) == row.codes);
    }
}

TEST_CASE("a signature of a weak digest is a warning, and an error where signatures are asked for") {
    const std::string sha1 =
        "3081ad06092a864886f70d010702a0819f30819c0201013109300706052b0e03021a300b06092a864886f70d010701317f307d02010130"
        "193011310f300d060355"
        "04030c064c6162204341020400aabbcc300706052b0e03021a300a06082a8648ce3d04030204483046022100cb1a63ec4ccc88decef98b"
        "caa5d99b6ddfdf26ae"
        "0fb869b3f14c506bfab7e7af022100bc669ac81ddbed6da32a39ebc8e628aaf7154b27aba5815d9382b79114c9384d";
    KoSpec ko;
    ko.undefined = {"_printk"};
    const auto message = base::from_hex(sha1).value();
    std::string trailer(12, '\0');
    trailer[2] = 2;
    trailer[11] = static_cast<char>(message.size());
    kmod::ModuleIndex index;
    kmod::IndexedModule module;
    module.image_path = "/opt/demo.ko";
    module.file = kmod::parse_module(
        test::make_ko(ko) + std::string(message.begin(), message.end()) + trailer + "~Module signature appended~\n",
        module.image_path);
    REQUIRE(module.file.signature().digest == "sha1");
    index.add(module);
    auto kernel = sound_kernel();
    Request request;
    request.module = "demo";
    request.release = test::k_release;
    request.signatures["demo"] = {Trust::trusted, "Lab", ""};
    CHECK(codes(judge(index, request, &kernel)) == "~weak-digest");
    kernel.signatures_forced = true;
    CHECK(codes(judge(index, request, &kernel)) == "~weak-digest");
    request.signatures_enforced = true;
    CHECK(codes(judge(index, request, &kernel)) == "weak-digest");
    for (const auto* digest : {"md4", "md5", "sha1"}) CHECK(kmod::is_weak_digest(digest));
    for (const auto* digest : {"sha224", "sha256", "sha512", "sm3", ""}) CHECK_FALSE(kmod::is_weak_digest(digest));
}

TEST_CASE("a symbol that the kernel exports cannot come from a module, too") {
    KoSpec demo, helper;
    demo.undefined = {"_printk"};
    demo.exported = {"_printk", "own_call"};
    auto kernel = sound_kernel();
    Request request;
    request.module = "demo";
    request.release = test::k_release;
    auto findings = judge(index_of({demo}), request, &kernel);
    CHECK(codes(findings) == "duplicate-symbol");
    CHECK(findings.front().message ==
          "module demo exports _printk, which kernel 6.1.0-56-amd64 exports itself and takes from no module");
    demo.exported = {"map"};
    findings = judge(index_of({demo}), request, &kernel);
    CHECK(codes(findings) == "~duplicate-symbol");
    CHECK(findings.front().message ==
          "module demo exports map, as module buf of kernel 6.1.0-56-amd64 does: only one of them can be live");
    CHECK(findings.front().hint == "list buf in inTreeModulesToRemove if it may be live");
    request.in_tree_modules_to_remove = {"buf"};
    CHECK(codes(judge(index_of({demo}), request, &kernel)).empty());
    request.in_tree_modules_to_remove.clear();
    demo.depends = "buf";
    CHECK(codes(judge(index_of({demo}), request, &kernel)) == "duplicate-symbol");
    demo.depends = "";
    kernel.exports["map"].owner = "drivers/demo";  // the in-tree module that this one replaces
    CHECK(codes(judge(index_of({demo}), request, &kernel)).empty());
    kernel.exports["map"].owner = "drivers/helper";
    helper.name = "helper";
    CHECK(codes(judge(index_of({demo, helper}), request, &kernel)).empty());
}

TEST_CASE("another module of the image may export it, and is judged as well") {
    KoSpec user, helper;
    user.undefined = {"help"};
    helper.name = "helper";
    helper.exported = {"help"};
    helper.undefined = {"nobody"};
    const auto kernel = sound_kernel();
    Request request;
    request.module = "demo";
    request.release = test::k_release;
    const auto findings = judge(index_of({user, helper}), request, &kernel);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().message.find("module helper needs nobody") == 0);
    CHECK(judge(index_of({user, helper}), request, nullptr).empty());
}

TEST_CASE("what only a softdep asks for, and does not fit, is left out as modprobe does") {
    KoSpec demo, helper, above, fits;
    demo.name = "demo";
    demo.undefined = {"_printk"};
    demo.modinfo = {"softdep=pre: nick above fits"};
    helper.name = "helper";
    helper.undefined = {"_printk", "nowhere"};
    above.name = "above";
    above.undefined = {"_printk"};
    above.depends = "helper";
    fits.name = "fits";
    fits.undefined = {"_printk"};
    const auto index = index_of({demo, helper, above, fits});
    const Interface interface = sound_kernel();
    Request request;
    request.module = "demo";
    request.release = test::k_release;
    request.configuration.aliases = {{"nick", "helper", "", {}}};
    const auto found = judge(index, request, &interface);
    CHECK(codes(found) == "~soft-dependency-failed ~soft-dependency-failed");
    REQUIRE(found.size() == 2);
    CHECK(found[0].message ==
          "module above is wanted by a softdep and left out: it needs module helper, which is left out");
    CHECK(base::to_lower(found[1].message).find("module helper needs nowhere") != std::string::npos);
    request.loading_order = {"demo", "helper"};
    CHECK(codes(judge(index, request, &interface)) == "unknown-symbol");
    request.loading_order.clear();
    request.configuration.softdeps = {{"demo", {{"fits"}, {}}, true}};
    CHECK(judge(index, request, &interface).empty());
}

TEST_CASE("what another module of the image exports with conditions is for those that keep them") {
    KoSpec user, helper;
    user.undefined = {"help"};
    user.modinfo = {"license=Proprietary"};
    helper.name = "helper";
    helper.exported = {"help"};
    const auto kernel = sound_kernel();
    Request request;
    request.module = "demo";
    request.release = test::k_release;
    const auto judged = [&](const kmod::Export& facts) {
        kmod::ModuleIndex index;
        for (const auto& spec : {user, helper}) {
            kmod::IndexedModule module;
            module.image_path = "/opt/" + spec.name + ".ko";
            module.file = kmod::parse_module(test::make_ko(spec), module.image_path);
            if (spec.name == "helper") module.file.exports["help"] = facts;
            index.add(module);
        }
        return judge(index, request, &kernel);
    };
    CHECK(codes(judged({false, ""})).empty());
    CHECK(codes(judged({true, ""})) == "gpl-only");
    const auto findings = judged({false, "HELP"});
    REQUIRE(codes(findings) == "namespace-missing");
    CHECK(findings.front().message == "module demo does not import the namespace of help (HELP)");
    user.modinfo = {"license=GPL", "import_ns=HELP"};
    CHECK(codes(judged({true, "HELP"})).empty());
    user.undefined.clear();
    user.weak = {"help"};
    user.crcs["help"] = test::k_crc;
    user.modinfo = {"license=Proprietary"};
    CHECK(codes(judged({true, ""})).empty());  // for the kernel it is not there, which a weak one may be
    CHECK(codes(judged({false, "HELP"})) == "namespace-missing");
}

}
