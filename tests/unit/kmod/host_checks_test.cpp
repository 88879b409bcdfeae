// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/inflate.hpp"
#include "kmod/check/host_checks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include <fmt/format.h>

#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/host/keyring.hpp"
#include "kmod/ko/signature.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

struct CheckRig {
    FakeHost host;
    kmod::ModuleIndex index;
    kmod::LoadRequest request{"demo", {}, {}, {}};

    void add(const KoSpec& spec, const std::string& tail = {}) {
        const std::string bytes = make_ko(spec) + tail;
        index.add({kmod::parse_module(bytes, spec.name), "/image/" + spec.name + ".ko", "/opt/" + spec.name + ".ko",
                   digest::sha256_hex(bytes)});
    }
    /// "error CODE" or "warning CODE" of every finding.
    std::vector<std::string> found() {
        std::vector<std::string> list;
        for (const auto& finding : kmod::preflight(index, request, host.paths).findings) {
            list.push_back(std::string(to_string(finding.severity)) + " " + finding.code);
            messages += finding.message + "\n";
            hints += finding.hint + "\n";
        }
        std::sort(list.begin(), list.end());
        return list;
    }
    std::string messages, hints;
};

using Found = std::vector<std::string>;

/// A signature trailer around bytes that are no PKCS#7 message.
std::string damaged_signature() {
    return std::string("xxxx") + std::string("\0\0\2\0\0\0\0\0\0\0\0\4", 12) + "~Module signature appended~\n";
}

/// A signature list of the firmware with a certificate of Lab CA for itself, subject key identifier 22; `serial` is its
/// number as DER has it, with its length in front.
std::vector<std::uint8_t> lab_list(const std::string& serial) {
    const std::size_t more = serial.size() / 2 - 3;
    const std::string text =
        "07000000a159c0a5e494a74a87b5ab155c2bf072" + fmt::format("{:02x}", 0x81 + more) + "01000000000000" +
        fmt::format("{:02x}", 0x65 + more) + "0100006f6f6f6f6f6f6f6f6f6f6f6f6f6f6f6f308201" +
        fmt::format("{:02x}", 0x51 + more) + "3081" + fmt::format("{:02x}", 0xfa + more) + "a00302010202" + serial +
        "300a06082a8648ce3d0403023011310f300d06035504030c064c61622043413020170d3236313132393032343730335a180f3231"
        "3236313130353032343730335a3011310f300d06035504030c064c61622043413059301306072a8648ce3d020106082a8648ce3d"
        "03010703420004c03aa7bf691f30d2360a7519f73f0eab348dd1d8156515a21a3d63905a7016e2ca5e56a196460d7a0a81795e2f"
        "05331bb3888cb44a5ba9cd580668540bce15f2a340303e301f0603551d23041830168014ab3426f7bd943385e930945cd16445a8"
        "3ed2f97f300f0603551d130101ff040530030101ff300a0603551d0e0403040122300a06082a8648ce3d04030203460030430220"
        "561c39ad168b692fc86236a98fcafc2346349efa0a4778d08aab79b31e91bb02021f177f26c5abb004d968f2254c716979f9855a"
        "8ec8458c3a06ecf73d01562898";
    const auto bytes = base::from_hex(text);
    REQUIRE(bytes);
    return {bytes->begin(), bytes->end()};
}

TEST_CASE("blacklists, install commands and options of the host") {
    CheckRig rig;
    rig.add({});
    const std::string file = rig.host.paths.etc + "/modprobe.d/x.conf";
    SUBCASE("a blacklist is about aliases") {
        put(file, "blacklist demo\n");
        CHECK(rig.found() == Found{"warning blacklisted-module"});
        rig.request.blacklist = kmod::BlacklistRule::honour;
        CHECK(rig.found() == Found{"error blacklisted-module"});
    }
    SUBCASE("the kernel's own blacklist") {
        put(rig.host.paths.proc + "/cmdline", "module_blacklist=demo\n");
        CHECK(rig.found() == Found{"error blacklisted-module"});
    }
    SUBCASE("an alias of off, as hardening guides have it") {
        put(file, "alias demo off\n");
        CHECK(rig.found() == Found{"warning host-alias"});
        CHECK(rig.messages.find("an alias of off, so that modprobe loads nothing; here") != std::string::npos);
    }
    SUBCASE("install commands are never run") {
        put(file, "install demo /bin/false\n");
        CHECK(rig.found() == Found{"error install-command"});
        rig.request.install_commands = kmod::InstallCommands::ignore;
        CHECK(rig.found() == Found{"warning install-command"});
    }
    SUBCASE("options are shown") {
        put(file, "options demo answer=1\n");
        CHECK(rig.found() == Found{"warning host-options", "warning unknown-parameter"});
        CHECK(rig.messages.find("answer=1 (/etc/modprobe.d/x.conf:1)") != std::string::npos);
    }
    SUBCASE("options that the module does not know are told, and ignored as by the kernel") {
        KoSpec spec;
        spec.name = "other";
        spec.modinfo = {"parmtype=answer:int"};
        rig.add(spec);
        rig.request.module = "other";
        put(file, "options other answr=1 answer=2\n");
        CHECK(rig.found() == Found{"warning host-options", "warning unknown-parameter"});
        CHECK(rig.messages.find("/etc/modprobe.d/x.conf:1: module other has no parameter 'answr', found answer: the "
                                "kernel ignores it\n") != std::string::npos);
    }
}

TEST_CASE("exports: licenses and namespaces") {
    CheckRig rig;
    put(rig.host.paths.proc + "/kallsyms", "0 r __ksymtab_core_call\n0 r __ksymtab_spaced\n");
    put(rig.host.paths.lib_modules + "/" + k_release + "/build/Module.symvers",
        "0x00000005\tcore_call\tvmlinux\tEXPORT_SYMBOL_GPL\t\n0x00000005\tspaced\tvmlinux\tEXPORT_SYMBOL\tCORE_NS\n");
    KoSpec spec;
    spec.undefined = {"core_call", "spaced"};
    SUBCASE("neither license nor import") {
        spec.modinfo = {"license=Proprietary"};
        rig.add(spec);
        CHECK(rig.found() == Found{"error gpl-only", "error namespace-missing", "warning license-taint"});
        CHECK(rig.messages.find(
                  "has the license 'Proprietary' and needs symbols that are exported to GPL modules only: core_call") !=
              std::string::npos);
    }
    SUBCASE("both") {
        spec.modinfo = {"license=Dual BSD/GPL", "import_ns=OTHER", "import_ns=CORE_NS"};
        rig.add(spec);
        CHECK(rig.found().empty());
    }
    SUBCASE("a namespace of certain modules, which nobody else imports") {
        put(rig.host.paths.lib_modules + "/" + k_release + "/build/Module.symvers",
            "0x00000005\tcore_call\tvmlinux\tEXPORT_SYMBOL_GPL\tmodule:kvm-intel,kvm-amd\n");
        spec.undefined = {"core_call"};
        spec.modinfo = {"license=GPL"};
        rig.add(spec);
        CHECK(rig.found() == Found{"error namespace-missing"});
        CHECK(rig.hints.find("build it without them") != std::string::npos);
    }
    SUBCASE("a kernel that does not insist") {
        put(rig.host.directory.path() + "/boot/config-" + k_release,
            "A=y\nCONFIG_MODULE_ALLOW_MISSING_NAMESPACE_IMPORTS=y\n");
        spec.modinfo = {"license=GPL"};
        rig.add(spec);
        CHECK(rig.found() == Found{"warning namespace-missing"});
    }
}

TEST_CASE("what a module says of itself and the kernel takes amiss") {
    CheckRig rig;
    KoSpec spec;
    SUBCASE("another license") {
        spec.modinfo = {"license=Proprietary"};
        rig.add(spec);
        CHECK(rig.found() == Found{"warning license-taint"});
        CHECK(rig.messages == "module demo has the license 'Proprietary': it taints the kernel with P (proprietary)\n");
    }
    SUBCASE("no license") {
        spec.modinfo = {"license="};
        rig.add(spec);
        CHECK(rig.found() == Found{"warning license-taint"});
    }
    SUBCASE("intree") {
        spec.modinfo = {"intree=Y"};
        rig.add(spec);
        CHECK(rig.found() == Found{"warning intree-flag"});
    }
    SUBCASE("retpolines") {
        KoSpec reference;
        reference.name = "reference";
        reference.modinfo = {"intree=Y", "retpoline=Y"};
        put(rig.host.paths.lib_modules + "/" + k_release + "/kernel/reference.ko", make_ko(reference));
        rig.add(spec);
        CHECK(rig.found() == Found{"warning no-retpoline"});
        spec.name = "other";
        spec.modinfo = {"retpoline=Y"};
        rig.add(spec);
        rig.request.module = "other";
        CHECK(rig.found().empty());
    }
}

TEST_CASE("firmware files that are nowhere") {
    CheckRig rig;
    KoSpec spec;
    spec.modinfo = {"firmware=vendor/a.bin", "firmware=vendor/b.bin", "firmware=c.bin"};
    rig.add(spec);
    put(rig.host.directory.path() + "/lib/firmware/vendor/a.bin.xz", kmod::packed_module("x", "xz"));
    rig.request.firmware = rig.host.directory.path() + "/image-fw";
    put(rig.request.firmware + "/c.bin", "x");
    CHECK(rig.found() == Found{"warning firmware-missing"});
    CHECK(rig.messages.find(": vendor/b.bin\n") != std::string::npos);
}

TEST_CASE("firmware names with wildcards are met by any file that fits") {
    CheckRig rig;
    KoSpec spec;
    spec.modinfo = {"firmware=vendor/a-*.bin", "firmware=vendor/lost-*.bin", "firmware=lost/*", "firmware=any*/x"};
    rig.add(spec);
    put(rig.host.directory.path() + "/lib/firmware/vendor/a-1.bin.xz", "x");
    CHECK(rig.found() == Found{"warning firmware-missing"});
    CHECK(rig.messages.find(": vendor/lost-*.bin, lost/*\n") != std::string::npos);
}

TEST_CASE("signatures and keys") {
    CheckRig rig;
    const std::string enforce = rig.host.paths.sys + "/module/module/parameters/sig_enforce";
    SUBCASE("unsigned") {
        rig.add({});
        put(enforce, "N\n");
        CHECK(rig.found().empty());
        put(enforce, "Y\n");
        CHECK(rig.found() == Found{"error unsigned-module"});
    }
    SUBCASE("damaged") {
        rig.add({}, damaged_signature());
        CHECK(rig.index.find("demo")->file.signature().fault == "it is not a PKCS#7 message");
        CHECK(rig.found().empty());  // a kernel without CONFIG_MODULE_SIG does not look
        put(enforce, "N\n");
        CHECK(rig.found() == Found{"error bad-signature"});
    }
}

/// `hex`, a detached PKCS#7 message, as sign-file appends it.
std::string appended(const std::string& hex) {
    const auto message = base::from_hex(hex);
    std::string tail(message->begin(), message->end());
    const std::string length{static_cast<char>(message->size() >> 8U), static_cast<char>(message->size() & 0xffU)};
    return tail + std::string("\0\0\2\0\0\0\0\0\0\0", 10) + length + "~Module signature appended~\n";
}

/// Of "Lab CA", serial number 00aabbcc, over SHA-256.
std::string lab_signature() {
    return appended(
        "3081b406092a864886f70d010702a081a63081a3020101310d300b0609608648016503040201300b06092a864886f70d01070131818130"
        "7f02010130"
        "193011310f300d06035504030c064c6162204341020400aabbcc300b0609608648016503040201300a06082a8648ce3d04030204463044"
        "022057b9f6"
        "1a5b1aaf4f97c9ffc3cfd9642bc8246a8e7129ab56ea6ffedf680cd6bd022007f4915bfb791c8919c04babf1185b46e53f92055d4edb1f"
        "41f756320e"
        "6ef1af");
}

/// By openssl cms -sign -binary -noattr -nocerts -md sha1 and md5.
std::string sha1_signature() {
    return appended(
        "3081bc06092a864886f70d010702a081ae3081ab0201013109300706052b0e03021a300b06092a864886f70d01070131818d30818a0201"
        "0130293011310f300d06035504030c064c61622043410214172462b975ff10123ef0801a7a24ae491496d017300706052b0e03021a3009"
        "06072a8648ce3d040104463044022004f1ccbb875b08c85da49b6edf3b6c4f7df576483bd464238fbf748e5763138f022026f4b9b151e8"
        "c8feb45847506bae74ae626cdddd60e11b71f6b3ac298ad4b112");
}

std::string md5_signature() {
    return appended(
        "3082010506092a864886f70d010702a081f73081f4020101310e300c06082a864886f70d02050500300b06092a864886f70d0107013181"
        "d13081ce02010130293011310f300d06035504030c064c6162204341021452b72c94e2c579a5ebbf2645ef1501ec2ca5742d300c06082a"
        "864886f70d02050500300d06092a864886f70d010101050004818044902e3ca33c56de39d43b5e31fca4fd6d6403eb2795949ef2601fad"
        "c415884d1ac97abfc1ab26cb1f059b253c98abb295cb46ef50f76813e97640e9268da7b50a08f28313a679e74055f1eee1d35b79c2c43f"
        "17dbb66db3f58d56ae668bfcccb248ae0f2e35cc295f5fa8466cacbf2e80c4076f5ab56ef5b31640612cd127a1");
}

TEST_CASE("weak digests are refused where the kernel wants signatures, and a warning where it knows of them") {
    for (const auto& [signature, digest] : {std::pair(sha1_signature(), "sha1"), std::pair(md5_signature(), "md5")}) {
        CheckRig rig;
        rig.add({}, signature);
        CHECK(rig.index.find("demo")->file.signature().digest == digest);
        CHECK(rig.found().empty());  // a kernel without CONFIG_MODULE_SIG does not look
        put(rig.host.paths.proc + "/keys", "1f I------ 1 perm 1f030000 0 0 asymmetri Lab CA: 22: X509.rsa 22 []\n");
        put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "N\n");
        CHECK(rig.found() == Found{"warning weak-digest"});
        put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
        CHECK(rig.found() == Found{"error weak-digest"});
    }
}

TEST_CASE("a signature names its signer, and the kernel's keyrings are asked for the key") {
    CheckRig rig;
    rig.add({}, lab_signature());
    const auto& signature = rig.index.find("demo")->file.signature();
    CHECK(signature.fault.empty());
    CHECK(kmod::signature_text(signature) == "signer Lab CA, key aabbcc, digest sha256");
    put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
    CHECK(rig.found() == Found{"warning key-not-checked"});
    const std::string keys = rig.host.paths.proc + "/keys";
    put(keys, "1f I------ 1 perm 1f030000 0 0 asymmetri Another CA: 11: X509.rsa 11 []\n");
    CHECK(rig.found() == Found{"error key-not-trusted"});
    put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "N\n");
    CHECK(rig.found() == Found{"warning key-not-trusted"});
    put(keys, "1f I------ 1 perm 1f030000 0 0 asymmetri Lab CA: 22: X509.rsa 22 []\n");
    CHECK(rig.found().empty());
}

TEST_CASE("another key of the same name as the kernel's own is not the kernel's") {
    CheckRig rig;
    rig.add({}, lab_signature());
    const std::string keys = rig.host.paths.proc + "/keys";
    const std::string line = "1f I------ 1 perm 1f030000 0 0 asymmetri ";
    const std::string own = rig.host.paths.lib_modules + "/" + k_release + "/kernel/drivers/reference.ko";
    put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
    put(keys, line + "Lab CA: 22: X509.rsa 22 []\n");
    const auto sign_reference = [&](KoSpec spec, const std::string& serial) {
        std::string tail = lab_signature();
        const std::size_t at = tail.find("\xaa\xbb\xcc");
        REQUIRE(at != std::string::npos);
        put(own, make_ko(spec) + tail.replace(at, 3, serial));
    };
    KoSpec reference = FakeHost::reference();
    sign_reference(reference, "\xaa\xbb\xcd");
    CHECK(rig.found() == Found{"error key-not-trusted"});
    CHECK_MESSAGE(rig.messages.find("the modules of this kernel are signed with another key of the name Lab CA") !=
                      std::string::npos,
                  rig.messages);
    SUBCASE("the very key of the kernel") {
        sign_reference(reference, "\xaa\xbb\xcc");
        CHECK(rig.found().empty());
        put(keys, line + "Another CA: 11: X509.rsa 11 []\n");
        CHECK(rig.found().empty());
    }
    SUBCASE("no key of the name is seen, and the kernel's modules are of another") {
        put(keys, line + "Another CA: 11: X509.rsa 11 []\n");
        CHECK(rig.found() == Found{"error key-not-trusted"});
    }
    SUBCASE("two keys of the name: one of them may be it") {
        put(keys, line + "Lab CA: 22: X509.rsa 22 []\n" + line + "Lab CA: 33: X509.rsa 33 []\n");
        CHECK(rig.found().empty());
    }
    SUBCASE("one key in two keyrings") {
        put(keys, line + "Lab CA: 22: X509.rsa 22 []\n" + line + "Lab CA: 22: X509.rsa 22 []\n");
        CHECK(rig.found() == Found{"error key-not-trusted"});
    }
    SUBCASE("the key itself is there, too") {
        put(keys, line + "Lab CA: 22: X509.rsa 22 []\n" + line + "Lab CA: 00aabbcc: X509.rsa 33 []\n");
        CHECK(rig.found().empty());
    }
    SUBCASE("a module of another release says nothing of this kernel's key") {
        reference.vermagic = "6.1.0-55-amd64 SMP preempt mod_unload modversions ";
        sign_reference(reference, "\xaa\xbb\xcd");
        const Found found = rig.found();
        CHECK(std::find(found.begin(), found.end(), "error key-not-trusted") == found.end());
    }
    SUBCASE("the enrolled certificate of the name is seen to be another one") {
        reference.vermagic = "6.1.0-55-amd64 SMP preempt mod_unload modversions ";  // and the kernel's own say nothing
        sign_reference(reference, "\xaa\xbb\xcd");
        const auto list = lab_list("020102");
        put(rig.host.paths.sys + "/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23",
            {list.begin(), list.end()});
        const Found found = rig.found();
        CHECK(std::find(found.begin(), found.end(), "error key-not-trusted") != found.end());
        CHECK_MESSAGE(rig.messages.find("the enrolled certificate of that name has another serial number") !=
                          std::string::npos,
                      rig.messages);
    }
}

TEST_CASE("a key that was revoked is in the keyrings like any other") {
    CheckRig rig;
    rig.add({}, lab_signature());
    put(rig.host.paths.proc + "/keys", "1f I------ 1 perm 1f030000 0 0 asymmetri Lab CA: 22: X509.rsa 22 []\n");
    put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
    for (const char* variable : {"efivars/MokListXRT-605dab50-e046-4300-abb6-3dd810dd8b23",
                                 "efivars/dbx-d719b2cb-3d3d-4596-a3bc-dad00e67656f"}) {
        CAPTURE(variable);
        const std::string path = rig.host.paths.sys + "/firmware/efi/" + variable;
        const auto other = lab_list("020102"), own = lab_list("0400aabbcc");
        put(path, {other.begin(), other.end()});
        CHECK(rig.found().empty());
        put(path, {own.begin(), own.end()});
        CHECK(rig.found() == Found{"warning key-revoked"});
        const std::string config = rig.host.paths.lib_modules + "/" + k_release + "/config";
        put(config, "CONFIG_SYSTEM_REVOCATION_LIST=y\n");
        CHECK(rig.found() == Found{"error key-revoked"});
        put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "N\n");
        CHECK(rig.found() == Found{"warning key-revoked"});
        put(rig.host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
        put(config, "# CONFIG_SYSTEM_REVOCATION_LIST is not set\n");
        CHECK(rig.found().empty());
        std::filesystem::remove(config);
        std::filesystem::remove(path);
    }
}

TEST_CASE("the keyrings are searched by id and by name") {
    FakeHost host;
    CHECK_FALSE(kmod::kernel_keys(host.paths));
    put(host.paths.proc + "/keys",
        "1f I------ 1 perm 1f030000 0 0 asymmetri Lab CA: 00aabb: X509.rsa 00aabb []\n20 I--Q--- 1 perm 1f3f0000 0 "
        "65534 keyring _uid.0: empty\n");
    const auto keys = kmod::kernel_keys(host.paths);
    REQUIRE(keys);
    CHECK(keys->size() == 1);
    CHECK(kmod::find_key({"Somebody", "00aabb", "sha256", ""}, keys) == kmod::KeyPresence::present);
    CHECK(kmod::find_key({"Lab CA", "77", "sha256", ""}, keys) == kmod::KeyPresence::present);
    for (const char* part : {"Lab", "CA", "b C", "Lab CA: 00aabb", "00aabb", "X509.rsa 00aabb []", ":"})
        CHECK(kmod::find_key({part, "77", "sha256", ""}, keys) == kmod::KeyPresence::absent);
    const std::vector<std::string> more{"Lab: Drivers: 11: X509.rsa 11 []", "Plain"};  // organisation: common name
    CHECK(kmod::find_key({"Drivers", "77", "sha256", ""}, more) == kmod::KeyPresence::present);
    CHECK(kmod::find_key({"Plain", "77", "sha256", ""}, more) == kmod::KeyPresence::present);
    CHECK(kmod::find_key({"Lab", "77", "sha256", ""}, more) == kmod::KeyPresence::absent);
    CHECK(kmod::find_key({"Somebody", "77", "sha256", ""}, keys) == kmod::KeyPresence::absent);
    CHECK(kmod::find_key({"Somebody", "77", "sha256", ""}, std::nullopt) == kmod::KeyPresence::unknown);
    CHECK(kmod::signature_text({"Lab CA", "77", "sha256", ""}) == "signer Lab CA, key 77, digest sha256");
}

TEST_CASE("rivals on the host") {
    CheckRig rig;
    KoSpec spec;
    spec.modinfo = {"alias=pci:v1d2"};
    rig.add(spec);
    const std::string tree = rig.host.paths.lib_modules + "/" + k_release;
    SUBCASE("another build is live") {
        rig.host.make_live("demo", "OTHER");
        CHECK(rig.found() == Found{"warning other-build-live"});
        rig.request.in_tree_modules_to_remove = {"demo"};
        CHECK(rig.found() == Found{"warning other-build-live"});  // a load takes no other build away
        rig.host.make_live("demo", "OTHER", "");
        CHECK(rig.found().empty());
    }
    SUBCASE("the same name in the host's tree") {
        put(tree + "/kernel/demo.ko", make_ko({}));
        CHECK(rig.found() == Found{"warning name-conflict"});
    }
    SUBCASE("the same alias") {
        put(tree + "/modules.alias", "alias pci:v1d2 rival\nalias pci:v9 unrelated\n");
        CHECK(rig.found() == Found{"warning alias-conflict"});
        rig.request.in_tree_modules_to_remove = {"rival"};
        CHECK(rig.found().empty());
    }
    SUBCASE("built in") {
        put(tree + "/modules.builtin", "kernel/fs/demo.ko\n");
        CHECK(rig.found() == Found{"error builtin-module"});
    }
}

TEST_CASE("the process and the memory") {
    CheckRig rig;
    rig.add({});
    put(rig.host.paths.proc + "/self/status", "CapEff:\t0000000000000000\n");
    put(rig.host.paths.proc + "/meminfo", "MemTotal: 2 kB\nMemAvailable:       1 kB\n");
    put(rig.host.paths.sys + "/fs/selinux/enforce", "1");
    put(rig.host.paths.proc + "/self/attr/current", "system_u:system_r:container_t:s0");
    CHECK(rig.found() == Found{"error no-memory", "warning no-capability", "warning selinux"});
    put(rig.host.paths.proc + "/meminfo", "MemAvailable:  100000 kB\n");
    for (const char* type : {"spc_t", "super_t", "control_t"}) {  // the last two of Bottlerocket
        put(rig.host.paths.proc + "/self/attr/current", fmt::format("system_u:system_r:{}:s0", type));
        CHECK(rig.found() == Found{"warning no-capability"});
    }
}

TEST_CASE("forcing turns what it overrules into warnings") {
    CheckRig rig;
    KoSpec spec;
    spec.vermagic = "6.1.0-1-amd64 SMP ";
    rig.add(spec);
    CHECK(rig.found() == Found{"error vermagic-differs"});
    rig.request.force.vermagic = true;
    CHECK(rig.found() == Found{"warning vermagic-differs"});
}

TEST_CASE("aliases meet where one device fits both") {
    for (const auto& [a, b, meet] :
         std::vector<std::tuple<std::string, std::string, bool>>{{"pci:v10DEd*sv*bc03*", "pci:v10DEd1234sv*bc*", true},
                                                                 {"pci:v10DEd*", "pci:v10DFd*", false},
                                                                 {"pci:v1d*sv*bc03*", "pci:v1d*sv*bc04*", false},
                                                                 {"of:N*T*Cacme,x*", "of:NnodeT*Cacme,*", true},
                                                                 {"usb:v1p[0-9]*", "usb:v1p5*", true},
                                                                 {"a?", "ab", true},
                                                                 {"a?", "a", false},
                                                                 {"*", "", true},
                                                                 {"a", "a", true},
                                                                 {"a", "b", false}}) {
        CAPTURE(a);
        CAPTURE(b);
        CHECK(kmod::aliases_meet(a, b) == meet);
        CHECK(kmod::aliases_meet(b, a) == meet);
    }
}

TEST_CASE("aliases of the host that fit the same devices are a conflict, however they are written") {
    CheckRig rig;
    KoSpec demo;
    demo.modinfo = {"alias=pci:v000010DEd*sv*sd*bc03sc*i*"};
    rig.add(demo);
    const std::string aliases = rig.host.paths.lib_modules + "/" + k_release + "/modules.alias";
    put(aliases,
        "alias pci:v000010DEd00001234sv*sd*bc*sc*i* rival\nalias pci:v000010DFd*sv*sd*bc*sc*i* other\nalias "
        "pci:v*d*sv*sd*bc03sc*i* class_driver\n");
    CHECK(rig.found() == Found{"warning alias-conflict"});
    CHECK(rig.messages.find("demo and rival of the host") != std::string::npos);
    put(aliases, "alias pci:v000010DEd*sv*sd*bc04sc*i* sound\n");
    CHECK(rig.found().empty());
}

}
