// SPDX-License-Identifier: Apache-2.0
// Why a load failed: what the kernel says, and what is left when no cause of its own applies.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "kmod/host/host_tree.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/load_rig.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

/// The module fw of the image names acme/fw.bin, which is looked for below `firmware` of the request first.
void take_firmware_module(LoadRig& rig) {
    KoSpec demo;
    demo.name = "fw";
    demo.modinfo = {"firmware=acme/fw.bin"};
    put(rig.out.path() + "/opt/fw.ko", make_ko(demo));
    rig.index = kmod::ModuleIndex::build(rig.out.path() + "/opt", rig.out.path());
    rig.request.module = "fw";
    rig.request.firmware = rig.out.path() + "/firmware";
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("firmware that a driver did not get is named, also where the line names only its device") {
    LoadRig rig;
    rig.request.module = "dep";
    rig.kernel.load_answers["dep"] = {ENOENT, false, false, 77, ""};
    std::string line = "fwl: Direct firmware load for acme/fw.bin failed with error -2";
    std::string level = "4";
    rig.kernel.on_refusal = [&] {
        std::ofstream(rig.host.paths.kmsg, std::ios::app)
            << level << ",9,9,-;" << line << "\n SUBSYSTEM=platform\n DEVICE=+platform:fwl\n";
    };
    SUBCASE("it is nowhere") {
        const Error error = rig.refused();
        CHECK(detail(error, "cause") == "firmware acme/fw.bin was not found where the kernel looks for it");
        CHECK(detail(error, "kernel") == line);
    }
    SUBCASE("any errno may follow") {
        rig.kernel.load_answers["dep"].error = EIO;
        CHECK(detail(rig.refused(), "cause").starts_with("firmware acme/fw.bin was not found"));
    }
    SUBCASE("it is there, compressed") {
        put(rig.host.directory.path() + "/lib/firmware/acme/fw.bin.zst", "x");
        CHECK(detail(rig.refused(), "cause") ==
              "firmware acme/fw.bin was not found where the kernel looks for it: acme/fw.bin.zst is there, which this "
              "kernel does not decompress");
    }
    SUBCASE("another error") {
        line = "acme 0000:01:00.0: firmware: failed to load acme/fw.bin (-13)";
        CHECK(detail(rig.refused(), "cause") == "firmware acme/fw.bin could not be loaded: Permission denied (EACCES)");
    }
    SUBCASE("what a device says in passing is left out") {
        level = "6";
        CHECK(detail(rig.refused(), "kernel").empty());
    }
}

TEST_CASE("a symbol that is exported twice is named with its owner") {
    LoadRig rig;
    rig.kernel.load_answers["dep"] = {ENOEXEC, false, false, 77, ""};
    SUBCASE("as the kernel says it") {
        rig.kernel.on_refusal = [&] { rig.host.log("dep: exports duplicate symbol dep_symbol (owned by failover)"); };
        const Error error = rig.refused();
        CHECK(detail(error, "cause") ==
              "symbol dep_symbol, which the module exports, is exported by module failover already");
        CHECK(error.hint().find("inTreeModulesToRemove") != std::string::npos);
    }
    SUBCASE("by the checks") {
        std::ofstream(rig.host.paths.proc + "/kallsyms", std::ios::app)
            << "0000000000000000 r __ksymtab_dep_symbol\t[fail-over]\n";
        const Error error = rig.refused();
        CHECK(error.code() == "check-failed");
        CHECK(detail(error, "reason") == "duplicate-symbol");
        CHECK(error.message().find("module fail_over") != std::string::npos);
        rig.request.in_tree_modules_to_remove = {"fail-over"};
        rig.kernel.load_answers.clear();
        CHECK_NOTHROW((void)rig.load());
    }
    SUBCASE("by the kernel itself") {
        std::ofstream(rig.host.paths.proc + "/kallsyms", std::ios::app) << "0000000000000000 r __ksymtab_dep_symbol\n";
        CHECK(rig.refused().message().find("which the kernel itself exports already") != std::string::npos);
    }
    SUBCASE("its own symbols are no other's once it is live") {
        rig.kernel.load_answers.clear();
        (void)rig.load();
        std::ofstream(rig.host.paths.proc + "/kallsyms", std::ios::app)
            << "0000000000000000 r __ksymtab_dep_symbol\t[dep]\n";
        CHECK_NOTHROW((void)rig.load());
    }
}

TEST_CASE("what the kernel says of the file, of drivers and of other modules is the cause") {
    LoadRig rig;
    rig.request.module = "dep";
    struct {
        int number;
        const char *line, *cause, *hint;
    } const rows[] = {
        {EINVAL, "failed to validate module [dep] BTF: -22",
         "the module's BTF is of another build of the kernel, which refuses the module for it", "section .BTF"},
        {ENOEXEC,
         "module dep: .gnu.linkonce.this_module section size must match the kernel's built struct module size at run "
         "time",
         "struct module has another size in this kernel: the headers were of another configuration", "headers"},
        {ENOEXEC, "dep: Unknown rela relocation: 42", "the module has a relocation that this kernel cannot apply",
         "binutils"},
        {ENOEXEC,
         "module: x86/modules: Skipping invalid relocation target, existing value is nonzero for type 1, loc 1, val 2",
         "the module has a relocation that this kernel cannot apply", "binutils"},
        {EBUSY, "Error: Driver 'acme' is already registered, aborting...",
         "a driver acme is registered already, by another module or by the kernel itself", "inTreeModulesToRemove"},
        {ENOENT, "dep: module using GPL-only symbols uses symbols acme_get from proprietary module acme.",
         "the module uses GPL-only symbols and symbols of the proprietary module acme, and may use one of the two only",
         "acme"},
        {ENOEXEC, "dep: overflow in relocation type 283 val fff0",
         "the module has a relocation that this kernel cannot apply", "binutils"},
        {ENOEXEC, "dep: REL24 -1152921504749079984 out of range!",
         "the module has a relocation that this kernel cannot apply", "binutils"},
        {ENOEXEC, "dep: module PLT section(s) missing", "the module was linked without the linker script of its kernel",
         "build system"},
        {ENOEXEC, "dep: doesn't contain .toc or .stubs.",
         "the module was linked without the linker script of its kernel", "build system"},
        {ENOEXEC, "`dep' likely not compiled with -mcmodel=kernel", "the module was not compiled as code of the kernel",
         "build system"},
        {ENOEXEC,
         "dep: module not supported by SUSE, refusing to load. To override, echo 1 > /proc/sys/kernel/unsupported",
         "this kernel refuses modules that SUSE does not support: kernel.unsupported is 0", "kernel.unsupported"},
        {ENOMEM, "dep: Could not allocate 65536 bytes percpu data", "the area for per-CPU data of modules is full",
         "unload"},
        {ENOMEM, "vmap allocation for size 20480 failed: use vmalloc=<size> to increase size",
         "the kernel has no room left in the range of addresses that modules get", "unload"},
        {EEXIST, "sysfs: cannot create duplicate filename '/bus/pci/drivers/acme'",
         "its init function registers /bus/pci/drivers/acme, which somebody has registered already",
         "inTreeModulesToRemove"},
        {EEXIST,
         "kobject: kobject_add_internal failed for acme with -EEXIST, don't try to register things with the same name "
         "in the same directory.",
         "its init function registers acme, which somebody has registered already", "inTreeModulesToRemove"},
        {EEXIST, "proc_dir_entry 'driver/acme' already registered",
         "its init function registers driver/acme, which somebody has registered already", "inTreeModulesToRemove"},
        {ENOEXEC, "Invalid ELF section header size", "the kernel finds the structure of the module's file damaged",
         "strip"},
        {EKEYREJECTED, "Loading of unsigned module is rejected",
         "the module is not signed, and this kernel wants signatures", "sign"},
        {EKEYREJECTED, "Loading of module with unavailable key is rejected",
         "no key of this kernel fits the module's signature", "mokutil"},
        {ENOKEY, "Request for unknown module key 'Magrathea: Glacier signing key' err -11",
         "no key of this kernel fits the module's signature", "mokutil"},
        {EKEYREJECTED, "Loading of module with unsupported crypto is rejected",
         "this kernel does not have the digest or the kind of key of the module's signature", "sha256"},
        {EPERM, "Lockdown: kmm-worker: unsafe module parameters is restricted; see man kernel_lockdown.7",
         "lockdown refuses a parameter that the module marks as unsafe", "leave it out"},
        {EPERM, "Lockdown: kmm-worker: direct PCI access is restricted; see man kernel_lockdown.7",
         "lockdown refuses what the module does: direct PCI access", "without lockdown"},
        {EINVAL, "dep: module uses symbol (acme_get) from namespace module:kvm-intel,kvm-amd, but does not import it.",
         "symbol acme_get is exported to the modules kvm-intel,kvm-amd only", "no import"},
        {EACCES,
         "audit: type=1400 audit(1655302156.066:213): avc:  denied  { integrity } for  pid=2468 comm=\"kmm-worker\" "
         "lockdown_reason=\"unsigned module loading\" scontext=system_u:system_r:kernel_t:s0 tclass=lockdown",
         "SELinux denies what it takes for lockdown: unsigned module loading", "lockdown"},
        {EACCES,
         "audit: type=1400 audit(1.2:3): avc:  denied  { module_load } for  pid=2468 comm=\"kmm-worker\" "
         "scontext=system_u:system_r:container_t:s0 tcontext=x tclass=system permissive=0",
         "SELinux denied module_load to system_u:system_r:container_t:s0", "spc_t"},
        {EPERM,
         "audit: type=1400 audit(1.2:3): apparmor=\"DENIED\" operation=\"capable\" class=\"cap\" profile=\"strict\" "
         "pid=9 comm=\"kmm-worker\" capability=16  capname=\"sys_module\"",
         "AppArmor denies CAP_SYS_MODULE to the profile strict", "appArmorProfile"},
        {EACCES,
         "audit: type=1800 audit(1.2:3): pid=9 uid=0 op=\"appraise_data\" cause=\"IMA-signature-required\" "
         "comm=\"kmm-worker\" name=\"/memfd:module\" res=0",
         "IMA appraisal refused the file: IMA-signature-required", "IMA"},
        {EACCES,
         "audit: type=1800 audit(1.2:3): pid=9 uid=0 op=appraise_data cause=invalid-signature comm=\"kmm-worker\" "
         "name=\"/memfd:module\" res=0 errno=0",
         "IMA appraisal refused the file: invalid-signature", "IMA"},
        {EPERM, "LoadPin: kernel-module denied obj=\"/memfd:module\" pid=9 cmdline=\"x\"",
         "LoadPin refuses modules that are not on the root file system", "loadpin.enforce=0"},
        {EBUSY, "dep: gave up waiting for init of module acme_net.",
         "module acme_net, whose symbols it needs, does not finish its init", "kmm-worker status acme_net"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.line);
        rig.kernel.load_answers["dep"] = {row.number, false, false, 77, ""};
        rig.kernel.on_refusal = [&] { rig.host.log(row.line); };
        const Error error = rig.refused();
        CHECK(detail(error, "cause") == row.cause);
        CHECK(error.hint().find(row.hint) != std::string::npos);
        CHECK(detail(error, "kernel") == row.line);
    }
}

TEST_CASE("a version that differs is that of the module that exports the symbol") {
    LoadRig rig;
    put(rig.host.paths.proc + "/kallsyms", "0 r __ksymtab__printk\n0 r __ksymtab_acme_pages\t[acme]\n");
    rig.request.module = "dep";
    rig.kernel.load_answers["dep"] = {EINVAL, false, false, 77, ""};
    rig.kernel.on_refusal = [&] {
        rig.host.log("dep: disagrees about version of symbol acme_pages");
        rig.host.log("dep: Unknown symbol acme_pages (err -22)");
    };
    const Error error = rig.refused();
    CHECK(detail(error, "cause") ==
          "symbol acme_pages of module acme has another version (CRC) than the module was built for");
    CHECK(error.hint().find("the build of acme that is live") != std::string::npos);
}

TEST_CASE("where every test says no, the answer is that of the init function") {
    LoadRig rig;
    put(rig.host.paths.proc + "/meminfo", "MemAvailable:    1000000 kB\n");
    for (const int number :
         {EPERM, ENOSYS, ENOEXEC, EKEYREJECTED, ENOKEY, ENODATA, EACCES, ENOMEM, EBADMSG, ENOPKG, ELIBBAD, EEXIST}) {
        CAPTURE(errno_name(number));
        rig.kernel.load_answers["demo"] = {number, false, false, 77, ""};
        const Error error = rig.refused();
        CHECK(detail(error, "cause").find("init function") != std::string::npos);
    }
}

TEST_CASE("a module of the host whose dependency has no file is found by the checks") {
    LoadRig rig;
    const std::string tree = rig.host.paths.lib_modules + "/" + k_release + "/kernel/";
    KoSpec videodev;
    videodev.name = "videodev";
    videodev.modinfo = {"intree=Y"};
    videodev.depends = "mc,builtin-part";
    videodev.exported = {"video_symbol"};
    put(tree + "videodev.ko", make_ko(videodev));
    put(rig.host.paths.lib_modules + "/" + k_release + "/modules.builtin", "kernel/builtin-part.ko\n");
    KoSpec cam;
    cam.name = "cam";
    cam.depends = "videodev";
    cam.undefined = {"video_symbol"};
    put(rig.out.path() + "/opt/cam.ko", make_ko(cam));
    rig.index = kmod::ModuleIndex::build(rig.out.path() + "/opt", rig.out.path());
    rig.request.module = "cam";
    const Error error = rig.refused();
    CHECK(detail(error, "reason") == "dependency-missing");
    CHECK(error.message().find("module mc is needed by module videodev of this host") != std::string::npos);
    KoSpec mc;
    mc.name = "mc";
    mc.modinfo = {"intree=Y"};
    SUBCASE("it is there") { put(tree + "mc.ko", make_ko(mc)); }
    SUBCASE("the image has it") {
        put(rig.out.path() + "/opt/mc.ko", make_ko(mc));
        rig.index = kmod::ModuleIndex::build(rig.out.path() + "/opt", rig.out.path());
    }
    SUBCASE("it is live") { rig.host.make_live("mc", "AAAA0000", ""); }
    const auto passed = kmod::preflight(rig.index, rig.request, rig.host.paths);
    CHECK(std::none_of(passed.findings.begin(), passed.findings.end(),
                       [](const Diagnostic& finding) { return finding.code == "dependency-missing"; }));
}

TEST_CASE("firmware in a form that this kernel does not decompress is a warning") {
    LoadRig rig;
    take_firmware_module(rig);
    put(rig.request.firmware + "/acme/fw.bin.zst", kmod::packed_module("x", "zstd"));
    const std::string config = rig.host.paths.lib_modules + "/" + k_release + "/config";
    const auto codes = [&] {
        std::vector<std::string> list;
        for (const auto& finding : kmod::preflight(rig.index, rig.request, rig.host.paths).findings)
            list.push_back(finding.code);
        return list;
    };
    using Codes = std::vector<std::string>;
    CHECK(codes().empty());  // nobody knows
    put(config,
        "CONFIG_FW_LOADER_COMPRESS=y\nCONFIG_FW_LOADER_COMPRESS_XZ=y\n# CONFIG_FW_LOADER_COMPRESS_ZSTD is not set\n");
    CHECK(codes() == Codes{"firmware-compressed"});
    put(config, "CONFIG_FW_LOADER_COMPRESS=y\nCONFIG_FW_LOADER_COMPRESS_ZSTD=y\n");
    CHECK(codes().empty());
    put(config, "# CONFIG_FW_LOADER_COMPRESS is not set\n");
    CHECK(codes() == Codes{"firmware-compressed"});
    const std::string own_copy = rig.host.paths.proc + "/config.gz";  // which the running kernel has
    const std::string packed =
        kmod::packed_module("CONFIG_FW_LOADER_COMPRESS=y\nCONFIG_FW_LOADER_COMPRESS_ZSTD=y\n", "gzip");
    for (const auto& [bytes, found] : {std::pair(packed, Codes{}),
                                       std::pair(packed.substr(0, 20), Codes{"firmware-compressed"}),
                                       std::pair(std::string("no gzip"), Codes{"firmware-compressed"})}) {
        put(own_copy, bytes);
        CHECK(codes() == found);
    }
    std::filesystem::remove(own_copy);
    put(rig.request.firmware + "/acme/fw.bin", "x");
    CHECK(codes().empty());
    std::filesystem::remove(config);
    std::filesystem::remove(rig.request.firmware + "/acme/fw.bin");
    std::ofstream(rig.host.paths.proc + "/kallsyms", std::ios::app) << "0000000000000000 t fw_decompress_xz\n";
    CHECK(codes() == Codes{"firmware-compressed"});
}

TEST_CASE("firmware that the kernel does not take is a warning") {
    LoadRig rig;
    take_firmware_module(rig);
    put(rig.host.paths.lib_modules + "/" + k_release + "/config",
        "CONFIG_FW_LOADER_COMPRESS=y\nCONFIG_FW_LOADER_COMPRESS_XZ=y\nCONFIG_FW_LOADER_COMPRESS_ZSTD=y\n");
    const std::string place = rig.request.firmware + "/acme/fw.bin";
    const auto warning = [&] {
        const auto findings = kmod::preflight(rig.index, rig.request, rig.host.paths).findings;
        REQUIRE(findings.size() <= 1);
        return findings.empty() ? "" : findings.front().code + " " + findings.front().message;
    };
    const std::string words = "firmware-unreadable module fw may ask for firmware acme/fw.bin, and the kernel does not "
                              "take acme/fw.bin";
    const std::string xz = kmod::packed_module("x", "xz");  // with a CRC32
    std::string crc64 = xz;
    crc64[7] = 4;
    std::string unchecked = xz;
    unchecked[7] = 0;
    for (const auto& [ending, bytes, said] : std::vector<std::array<std::string, 3>>{
             {"", "x", ""},
             {"", "", words + " of the image: it is empty"},
             {".xz", xz, ""},
             {".xz", unchecked, ""},
             {".xz", crc64,
              words + ".xz of the image: its check is none that the kernel knows, as xz --check=crc32 makes it"},
             {".xz", "rubbish", words + ".xz of the image: it is not an xz file"},
             {".xz", xz.substr(0, 7), words + ".xz of the image: it is not an xz file"},
             {".zst", "", words + ".zst of the image: it is empty"},
             {".zst", xz, words + ".zst of the image: it is not a zstd file"},
             {".zst", kmod::packed_module("x", "zstd"), ""}}) {
        CAPTURE(ending);
        put(place + ending, bytes);
        CHECK(warning() == said);
        std::filesystem::remove(place + ending);
    }
    std::filesystem::create_directories(place);
    CHECK(warning() == words + " of the image: it is a directory");
    // Another directory has it, in which the kernel looks afterwards.
    put(rig.host.paths.etc.substr(0, rig.host.paths.etc.size() - 4) + "/lib/firmware/acme/fw.bin", "x");
    CHECK(warning().empty());
}

}
