// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/errno_doctor.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>

#include "base/error.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_SUITE("kmod::unit") {

TEST_CASE("every row of the table names a cause and a hint, in ascending order") {
    for (const auto table : {kmod::load_errnos(), kmod::unload_errnos()}) {
        int last = 0;
        for (const auto& row : table) {
            CAPTURE(row.number);
            CHECK(row.number > last);
            CHECK_FALSE(row.cause.empty());
            CHECK_FALSE(row.hint.empty());
            last = row.number;
        }
    }
}

TEST_CASE("the errnos of the kernel's loader have a row") {
    for (const int number : {ENOENT,      EINVAL, ENOEXEC, EEXIST,    EBUSY,   EKEYREJECTED, ENOKEY, EKEYEXPIRED,
                             EKEYREVOKED, EPERM,  EACCES,  EBADMSG,   ELIBBAD, ENOPKG,       ENOMEM, ENOSPC,
                             ENODEV,      ESRCH,  EIO,     ETIMEDOUT, EFAULT,  ENOSYS,       EINTR}) {
        CAPTURE(errno_name(number));
        CHECK(kmod::load_advice(number).cause.find("returned this error") == std::string_view::npos);
    }
    CHECK(kmod::load_advice(EXDEV).cause.find("init function") != std::string_view::npos);
    CHECK(kmod::unload_advice(EAGAIN).cause == "the module is in use");
}

std::string cause_of(int number, const FakeHost& host, const kmod::Suspect& suspect = {}) {
    const auto causes = kmod::load_causes(number, host.paths, kmod::kernel_state(host.paths), suspect);
    return kmod::likeliest_cause(causes, number);
}

TEST_CASE("the cause of EPERM is read from the kernel, in its order") {
    FakeHost host;
    put(host.paths.proc + "/cmdline", "quiet module_blacklist=demo,other\n");
    const kmod::ModuleFile demo = kmod::parse_module(make_ko({}), "demo.ko");
    CHECK(cause_of(EPERM, host, {&demo, ""}) ==
          "module_blacklist= on the kernel command line names it: it holds demo, other");
    put(host.paths.sys + "/kernel/security/lockdown", "none [integrity] confidentiality\n");
    CHECK(cause_of(EPERM, host, {&demo, ""}) ==
          "lockdown refuses modules without a valid signature: lockdown is integrity, the module is not signed");
    put(host.paths.proc + "/sys/kernel/modules_disabled", "1\n");
    CHECK(cause_of(EPERM, host) == "loading of modules is switched off until the next boot: modules_disabled is 1");
    put(host.paths.proc + "/self/status", "CapEff:\t0000000000000000\n");
    CHECK(cause_of(EPERM, host) == "this process has no CAP_SYS_MODULE: CapEff of this process");
    std::filesystem::remove_all(host.paths.proc);
    for (const auto& cause : kmod::load_causes(EPERM, host.paths, kmod::kernel_state(host.paths), {})) {
        if (cause.evidence.find("lockdown") == std::string::npos)  // which is not in /proc
            CHECK_MESSAGE(cause.applies == kmod::Applies::unknown, cause.text);
    }
}

TEST_CASE("causes say what they compared") {
    FakeHost host;
    KoSpec spec;
    spec.vermagic = "6.1.0-1-amd64 SMP preempt mod_unload modversions ";
    spec.undefined = {"_printk", "nowhere"};
    spec.crcs = {{"module_layout", 8}};
    spec.modinfo = {"parmtype=answer:int", "alias=pci:v00001234d*", "license=GPL"};
    const kmod::ModuleFile file = kmod::parse_module(make_ko(spec), "demo.ko");
    const kmod::Suspect suspect{&file, "answer=x"};
    CHECK(cause_of(ENOENT, host, suspect) == "a symbol that the module needs is not exported: nowhere");
    CHECK(cause_of(EINVAL, host, suspect) ==
          "a symbol has another version (CRC): module_layout has 0x00000008, this kernel 0x00000007");
    CHECK(cause_of(ENOEXEC, host, suspect) ==
          "the module was built for another kernel (vermagic): '6.1.0-1-amd64 SMP preempt mod_unload modversions', "
          "this kernel wants "
          "'6.1.0-56-amd64 SMP preempt mod_unload modversions', differing: 6.1.0-56-amd64");
    put(host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
    const std::string unsigned_cause = cause_of(EKEYREJECTED, host, suspect);
    CHECK(unsigned_cause.starts_with("the module is not signed: "));
    CHECK(unsigned_cause.find("sig_enforce is on") != std::string::npos);
    CHECK(cause_of(ENODEV, host, suspect).ends_with("none of its 1 aliases fits a device"));
    put(host.paths.sys + "/bus/pci/devices/0000:00:03.0/modalias", "pci:v00001234d0000beef\n");
    const auto causes = kmod::load_causes(ENODEV, host.paths, kmod::kernel_state(host.paths), suspect);
    CHECK(causes.front().applies == kmod::Applies::no);
    CHECK(causes.front().evidence == "fitting devices: 0000:00:03.0");
    host.make_live("demo", "BBBB", "");
    CHECK(cause_of(EEXIST, host, suspect) ==
          "a module of this name is live already: it is live from the kernel's own tree, srcversion BBBB, wanted "
          "AAAA0000");
    host.make_live("other", "C", "O", "0", "coming");
    CHECK(cause_of(EBUSY, host) == "another load or unload of the same module is under way: other is coming");
    CHECK(cause_of(EXDEV, host).find("init function") != std::string::npos);
}

TEST_CASE("numbers of errno names") {
    CHECK(kmod::errno_number("ENOEXEC") == ENOEXEC);
    CHECK(kmod::errno_number("enodev") == ENODEV);
    CHECK(kmod::errno_number("8") == 8);
    CHECK(kmod::errno_number("-8") == 8);
    CHECK(kmod::errno_number("EWOULDBLOCK") == EAGAIN);
    for (const char* bad : {"", "0", "--1", "-", "99999", "EFOO", "module-refused"})
        CHECK(kmod::errno_number(bad) == 0);
}

}
