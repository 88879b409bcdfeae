// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "kernel/interface.hpp"

using namespace kmm;
using namespace kmm::kernel;

TEST_SUITE("kernel::unit") {

TEST_CASE("a line of Module.symvers has up to five fields") {
    Interface found;
    read_symvers(
        "0x4c9d28b0\tphys_base\tvmlinux\tEXPORT_SYMBOL\t\n0x1\tdrm_open\tdrivers/gpu/drm/"
        "drm-core\tEXPORT_SYMBOL_GPL\tDRM\n",
        "s", found);
    CHECK(found.exports.at("phys_base") == Export{0x4c9d28b0, "vmlinux", false, ""});
    CHECK(found.exports.at("drm_open") == Export{1, "drivers/gpu/drm/drm-core", true, "DRM"});
    CHECK(found.modules == std::set<std::string>{"drm_core"});
}

TEST_CASE("what is not a Module.symvers is refused with its line") {
    struct Row {
        const char* text;
        std::size_t line;
    };
    for (const auto& row : {Row{"", 0}, Row{"\n\n", 0}, Row{"0x1\ta\tvmlinux\tEXPORT_SYMBOL\nnonsense\n", 2},
                            Row{"1\ta\tvmlinux\tEXPORT_SYMBOL\n", 1}, Row{"0xzz\ta\tvmlinux\tEXPORT_SYMBOL\n", 1},
                            Row{"0x1\t\tvmlinux\tEXPORT_SYMBOL\n", 1}, Row{"0x1\ta\tvmlinux\n", 1},
                            Row{"0x123456789\ta\tvmlinux\tEXPORT_SYMBOL\n", 1}}) {
        CAPTURE(std::string(row.text));
        Interface found;
        try {
            read_symvers(row.text, "file", found);
            FAIL("was taken");
        } catch (const Error& error) {
            CHECK(error.code() == "bad-symvers");
            CHECK(error.exit() == Exit::data);
            REQUIRE(error.position().has_value());
            CHECK(error.position()->line == row.line);
        }
    }
}

TEST_CASE("vermagic is put together as the kernel's build does") {
    struct Row {
        const char* configuration;
        const char* vermagic;
        const char* architecture;
    };
    const std::vector<Row> rows = {
        {"CONFIG_X86_64=y\nCONFIG_SMP=y\nCONFIG_PREEMPT_BUILD=y\nCONFIG_MODULE_UNLOAD=y\nCONFIG_MODVERSIONS=y\n",
         "6.1.0 SMP preempt mod_unload modversions", "amd64"},
        {"CONFIG_X86_64=y\nCONFIG_SMP=y\nCONFIG_PREEMPT=y\nCONFIG_MODULE_UNLOAD=y\n", "6.1.0 SMP preempt mod_unload",
         "amd64"},
        {"CONFIG_X86_64=y\nCONFIG_SMP=y\nCONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_BUILD=y\n", "6.1.0 SMP preempt_rt",
         "amd64"},
        {"CONFIG_ARM64=y\nCONFIG_SMP=y\nCONFIG_MODULE_UNLOAD=y\n", "6.1.0 SMP mod_unload aarch64", "arm64"},
        {"CONFIG_X86_64=y\nCONFIG_SMP=y\nCONFIG_RANDSTRUCT_FULL=y\n", "", "amd64"},
        {"CONFIG_S390=y\nCONFIG_SMP=y\n", "", ""},
        {"", "", ""},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.configuration));
        Interface found;
        found.release = "6.1.0";
        read_configuration(row.configuration, found);
        CHECK(found.vermagic == row.vermagic);
        CHECK(found.architecture == row.architecture);
    }
    Interface nameless;
    read_configuration("CONFIG_X86_64=y\nCONFIG_MODULE_SIG_FORCE=y\n", nameless);
    CHECK(nameless.vermagic.empty());
    CHECK(nameless.signatures_forced);
    CHECK(nameless.signatures_checked == true);
    Interface without;
    read_configuration("CONFIG_X86_64=y\n", without);
    CHECK(without.signatures_checked == false);
    Interface unknown;
    read_configuration("", unknown);
    CHECK_FALSE(unknown.signatures_checked);
}

TEST_CASE("the release of utsrelease.h") {
    CHECK(release_of_header("#define UTS_RELEASE \"6.1.0-56-amd64\"\n") == "6.1.0-56-amd64");
    CHECK(release_of_header("#define UTS_RELEASE \"6.1") .empty());
    CHECK(release_of_header("").empty());
}

}
