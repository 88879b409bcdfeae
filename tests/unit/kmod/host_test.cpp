// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/host.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "kmod/host/host_index.hpp"
#include "kmod/host/host_tree.hpp"
#include "kmod/load/kernel_log.hpp"
#include "sys/directory.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_SUITE("kmod::unit") {

TEST_CASE("node and kernel facts come from the tree") {
    FakeHost host;
    put(host.paths.etc + "/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
    put(host.paths.etc + "/machine-id", "00112233445566778899aabbccddeeff\n");
    put(host.paths.sys + "/kernel/security/lockdown", "none [integrity] confidentiality\n");
    put(host.paths.sys + "/module/module/parameters/sig_enforce", "Y\n");
    put(host.paths.proc + "/sys/kernel/tainted", "12288\n");
    const auto node = kmod::node_facts(host.paths);
    CHECK(node.name == "node-a");
    CHECK(node.kernel == k_release);
    CHECK(node.os_image == "Debian GNU/Linux 12");
    CHECK(node.machine_id == "00112233445566778899aabbccddeeff");
    const auto state = kmod::kernel_state(host.paths);
    CHECK(state.modules_supported);
    CHECK(state.lockdown == "integrity");
    CHECK(state.sig_enforce);
    CHECK(state.cap_sys_module);
    CHECK(state.tainted == 12288);
    CHECK(kmod::taint_letters(state.tainted) == "OE");
    CHECK(state.decompression == "none");
}

TEST_CASE("a check that has given its capabilities up knows what a load by the same user has") {
    struct Row {
        const char* status;
        bool may_load;
    };
    const Row rows[] = {
        {"Uid:\t0\t0\t0\t0\nCapEff:\t0000000400000004\nCapBnd:\t000001ffffffffff\n", true},
        {"Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n", false},
        {"Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n", false},
        {"Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000010000\nCapBnd:\t000001ffffffffff\n", true},
    };
    for (const auto& row : rows) {
        CAPTURE(row.status);
        FakeHost host;
        put(host.paths.proc + "/self/status", row.status);
        CHECK(kmod::kernel_state(host.paths).cap_sys_module == row.may_load);
    }
}

TEST_CASE("taint letters") {
    CHECK(kmod::taint_letters(0).empty());
    CHECK(kmod::taint_letters(1) == "P");
    CHECK(kmod::taint_letters(1U << 19U) == "J");
    CHECK(kmod::taint_letters((1U << 7U) | (1U << 9U) | (1U << 14U)) == "DWL");
    CHECK(kmod::taint_letters(1U << 31U) == "bit 31");  // SUSE: a module without support
    CHECK(kmod::taint_letters((3ULL << 12U) | (1ULL << 31U) | (1ULL << 63U)) == "OE, bit 31, bit 63");
    CHECK(kmod::taint_names((1ULL << 12U) | (1ULL << 31U)) == std::vector<std::string>{"O", "bit 31"});
}

TEST_CASE("a kernel without module support says so") {
    FakeHost host;
    std::filesystem::remove(host.paths.proc + "/modules");
    CHECK_FALSE(kmod::kernel_state(host.paths).modules_supported);
    CHECK(kmod::live_modules(host.paths).empty());
}

TEST_CASE("live modules") {
    FakeHost host;
    host.make_live("demo", "AAAA", "OE", "2");
    host.hold("demo", "user");
    const std::string base = host.paths.sys + "/module/demo";
    put(base + "/parameters/answer", "42\n");
    put(base + "/version", "1.0\n");
    const std::string id = "0102030405060708090a0b0c0d0e0f1011121320";
    std::string note("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
    for (std::size_t i = 0; i < id.size(); i += 2) note += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
    put(base + "/notes/.note.gnu.build-id", note);
    const auto live = kmod::live_module(host.paths, "demo");
    REQUIRE(live);
    CHECK(live->state == "live");
    CHECK(live->srcversion == "AAAA");
    CHECK(live->build_id == id);
    CHECK(live->version == "1.0");
    CHECK(live->taint == "OE");
    CHECK(live->refcount == 1);
    CHECK(live->holders == std::vector<std::string>{"user"});
    CHECK(live->parameters.at("answer") == "42");
    CHECK_FALSE(kmod::live_module(host.paths, "absent"));
    CHECK_FALSE(kmod::live_module(host.paths, "../module/demo"));
}

TEST_CASE("a directory without a state is built into the kernel; one that is loading is coming") {
    FakeHost host;
    CHECK(kmod::live_module(host.paths, "firmware_class")->state == "builtin");
    put(host.paths.proc + "/modules", "slow 16384 0 - Loading 0x0\nold 1 0 - Unloading 0x0\n");
    CHECK(kmod::live_module(host.paths, "slow")->state == "coming");
    CHECK(kmod::live_module(host.paths, "old")->state == "going");
}

TEST_CASE("the kernel's headers are found where the link to them leads on the host") {
    FakeHost host;
    const std::string directory = host.paths.lib_modules + "/" + k_release;
    put(host.directory.path() + "/usr/src/headers/Module.symvers",
        "0x00000005\tcore_call\tvmlinux\tEXPORT_SYMBOL_GPL\t\n");
    std::filesystem::create_directories(directory);
    std::filesystem::create_directory_symlink("/usr/src/headers", directory + "/build");
    CHECK(kmod::header_crcs(directory) == std::map<std::string, std::uint32_t>{{"core_call", 5}});
    CHECK(kmod::header_exports(directory).at("core_call").gpl_only);
    std::filesystem::remove(directory + "/build");
    CHECK(kmod::header_crcs(directory).empty());
}

TEST_CASE("an index that was cut off is none, and nobody reads behind its end") {
    FakeHost host;
    const std::string directory = host.paths.lib_modules + "/" + k_release;
    KoSpec other;
    other.name = "inside";
    put(directory + "/kernel/else.ko", make_ko(other));
    const auto number = [](std::uint32_t value) {
        std::string text;
        for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> static_cast<unsigned>(shift));
        return text;
    };
    // One node, at 12, with a prefix and a value.
    const std::string header = number(0xB007F457) + number(0x00020001) + number(12U | 0xC0000000U);
    const std::string index = header + "named" + '\0' + number(1) + number(0) + "kernel/else.ko:" + '\0';
    const auto found = [&](const std::string& bytes, const char* file = "modules.dep.bin") {
        put(directory + "/" + file, bytes);
        return kmod::find_host_module(directory, "named").has_value();
    };
    const bool whole = found(index);
    CHECK_FALSE(kmod::has_damaged_index(directory, "named"));
    CHECK(whole);  // by the index alone: no file has that name
    for (std::size_t length = 12; length < index.size(); ++length) {
        CAPTURE(length);
        CHECK_FALSE(found(index.substr(0, length)));
        CHECK(kmod::has_damaged_index(directory, "named"));
    }
    CHECK_FALSE(
        found(header.substr(0, 8) + number(12U | 0x20000000U) + "az" + number(12), "modules.builtin.alias.bin"));
    CHECK(kmod::has_damaged_index(directory, "named"));
    std::filesystem::remove(directory + "/modules.dep.bin");
    for (const std::string& other_bytes : {std::string(), std::string("abc"), number(1) + number(2) + number(99),
                                           number(0xB007F457) + number(0x00020001) + number(0)}) {
        CHECK_FALSE(found(other_bytes, "modules.builtin.alias.bin"));
        CHECK_FALSE(kmod::has_damaged_index(directory, "named"));
    }
    // What depmod writes where no module exports a symbol: the root has no parts, and is where the file ends.
    put(directory + "/modules.symbols.bin", number(0xB007F457) + number(0x00020001) + number(12));
    CHECK_FALSE(kmod::has_damaged_index(directory, "named"));
}

TEST_CASE("an index that leads in a circle, or says that it has four billion entries, is none where it does so") {
    FakeHost host;
    const std::string directory = host.paths.lib_modules + "/" + k_release;
    std::filesystem::create_directories(directory);
    const auto number = [](std::uint32_t value) {
        std::string text;
        for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> static_cast<unsigned>(shift));
        return text;
    };
    constexpr std::uint32_t k_prefix = 0x80000000U, k_values = 0x40000000U, k_children = 0x20000000U;
    const auto file = [&](std::uint32_t root, const std::string& nodes) {
        put(directory + "/modules.alias.bin", number(0xB007F457) + number(0x00020001) + number(root) + nodes);
    };
    struct Row {
        const char* what;
        std::uint32_t root;
        std::string nodes;
        bool damaged;
    };
    const std::string value = number(1) + number(0) + "other" + '\0';
    for (const Row& row : std::vector<Row>{
             {"a wildcard leads to itself", 12U | k_children, "**" + number(12U | k_children), true},
             {"the way of another name leads to itself", 12U | k_children, "zz" + number(12U | k_children), false},
             {"the way of the name leads to itself", 12U | k_children, "nn" + number(12U | k_children), true},
             {"too many values", 17U | k_children, number(0xFFFFFFFFU) + "x" + "nn" + number(12U | k_values), true},
             {"a letter that is none", 12U | k_children, "n\xba" + std::string(4U * (0xba - 'n' + 1), '\0'), true},
             {"letters from behind", 12U | k_children, "zn", true},
             {"a wildcard in the prefix", 14U | k_prefix | k_children,
              "xx" + (std::string("*") + '\0') + "xx" + number(14U | k_children), true},
             {"in order", (12U + 14U + 4U) | k_children, value + std::string(4, 'x') + "nn" + number(12U | k_values),
              false},
         }) {
        CAPTURE(row.what);
        file(row.root, row.nodes);
        CHECK(kmod::has_damaged_index(directory, "named") == row.damaged);
        CHECK_FALSE(kmod::find_host_module(directory, "named"));
        CHECK(kmod::host_modules_with_alias(directory, "named").empty());
    }
    file((12U + 14U) | k_children, value + "nn" + number(12U | k_values));
    CHECK(kmod::host_modules_with_alias(directory, "n") == std::vector<std::string>{"other"});
}

TEST_CASE("a module elsewhere that the index has is at that path of the host") {
    FakeHost host;
    const std::string directory = host.paths.lib_modules + "/" + k_release;
    KoSpec spec;
    spec.name = "outside";
    spec.exported = {"outside_call"};
    put(host.directory.path() + "/opt/drivers/outside.ko", make_ko(spec));
    const auto number = [](std::uint32_t value) {
        std::string text;
        for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> static_cast<unsigned>(shift));
        return text;
    };
    put(directory + "/modules.dep.bin", number(0xB007F457) + number(0x00020001) + number(12U | 0xC0000000U) +
                                            "outside" + '\0' + number(1) + number(0) + "/opt/drivers/outside.ko:" +
                                            '\0');
    const auto need = kmod::find_host_module(directory, "outside");
    REQUIRE(need);
    REQUIRE(need->modules.size() == 1);
    CHECK(need->modules.front().exported == std::vector<std::string>{"outside_call"});
    CHECK(need->modules.front().path == host.directory.path() + "/opt/drivers/outside.ko");
    bool found = false;
    kmod::each_host_module(directory, {"outside"}, [&](const kmod::HostModule& module) {
        found = !module.exported.empty();
        return true;
    });
    CHECK(found);
}

TEST_CASE("the modules of a host whose directory of them is behind links of its own") {
    struct Row {
        const char* real;  ///< where they are on the host
        const char* link;
        const char* target;
    };
    const std::string release = k_release;
    for (const auto& [real, link, target] : std::vector<Row>{{"/usr/lib/modules/R", "/lib", "/usr/lib"},
                                                             {"/data/R", "/lib/modules/R", "/data/R"},
                                                             {"/a/b/modules/R", "/lib/modules", "/../a/b/modules"},
                                                             {"/store/k/lib/modules/R",
                                                              "/run/booted-system/kernel-modules", "/store/k"}}) {
        CAPTURE(target);
        const sys::TempDir top("kmm-test-");
        const auto here = [&](std::string path) {
            if (path.ends_with("/R")) path.replace(path.size() - 1, 1, release);
            return path;
        };
        kmod::HostPaths host;
        host.root = top.path();
        host.lib_modules = host.root + "/lib/modules";
        KoSpec spec;
        spec.exported = {"inner"};
        put(host.root + here(real) + "/kernel/inner.ko", make_ko(spec));
        put(host.root + "/elsewhere/outer.ko", make_ko(spec));
        std::filesystem::create_symlink("/elsewhere/outer.ko", host.root + here(real) + "/outer.ko");
        std::filesystem::create_directories(sys::parent_of(host.root + link));
        std::filesystem::create_symlink(here(target), host.root + here(link));
        const std::string directory = kmod::host_module_directory(host, release);
        CHECK(directory == host.root + here(real));
        for (const char* module : {"inner", "outer"}) {
            CAPTURE(module);
            const auto need = kmod::find_host_module(directory, module);
            REQUIRE(need);
            CHECK(need->modules.front().exported == std::vector<std::string>{"inner"});
        }
        CHECK(kmod::host_module_directory(host, release + "+") == directory);
        CHECK(kmod::host_module_directory(host, "9.9").empty());
    }
}

TEST_CASE("the system of a host by a link of its own") {
    const sys::TempDir top("kmm-test-");
    kmod::HostPaths host;
    host.root = top.path();
    host.etc = host.root + "/etc";
    put(host.root + "/store/os-release", "PRETTY_NAME='NixOS 25.11 (Xantusia)'\n");
    put(host.etc + "/static/.keep", "");
    std::filesystem::create_symlink("/store/os-release", host.etc + "/static/os-release");
    std::filesystem::create_symlink("/etc/static/os-release", host.etc + "/os-release");
    CHECK(kmod::node_facts(host).os_image == "NixOS 25.11 (Xantusia)");
}

TEST_CASE("of several files of one module, without an index, that of updates is taken, then that of extra") {
    FakeHost host;
    const std::string directory = host.paths.lib_modules + "/" + k_release;
    const auto taken = [&] { return kmod::find_host_module(directory, "demo")->modules.front().path; };
    for (const std::string place : {"/weak-updates/kmm", "/kernel/z", "/kernel/a", "/extra", "/updates/dkms"}) {
        put(directory + place + "/demo.ko", make_ko({}));
        CHECK(taken() == directory + place + "/demo.ko");
        std::string by_name;
        kmod::each_host_module(directory, {"demo"}, [&](const kmod::HostModule& module) {
            by_name = module.path;
            return true;
        });
        CHECK(by_name == taken());
    }
}

TEST_CASE("architectures by the names of uname") {
    const std::map<std::string, std::string> names{
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"},     {"armv6l", "arm"},     {"armv8l", "arm"},
        {"i586", "386"},     {"i686", "386"},      {"ppc64le", "ppc64le"}, {"riscv64", "riscv64"}, {"s390x", "s390x"}};
    for (const auto& [machine, name] : names) CHECK(kmod::architecture_of(machine) == name);
}

TEST_CASE("exports of the kernel") {
    FakeHost host;
    auto found = kmod::kernel_exports(host.paths, {"_printk", "hidden_function", "absent"});
    REQUIRE(found);
    CHECK(*found == std::set<std::string>{"_printk"});
    put(host.paths.proc + "/kallsyms", "0 T _printk\n0 t dep_answer\t[kmm_dep]\n");
    found = kmod::kernel_exports(host.paths, {"_printk", "dep_answer", "absent"});
    REQUIRE(found);
    CHECK(*found == std::set<std::string>{"_printk", "dep_answer"});
    put(host.paths.proc + "/kallsyms", "");
    CHECK_FALSE(kmod::kernel_exports(host.paths, {"_printk"}));
}

TEST_CASE("exports of the kernel: reading ends when all were found, wherever the pieces of the file end") {
    FakeHost host;
    std::string text;
    for (int n = 0; n < 5000; ++n) text += fmt::format("ffffffff{:08x} T function_{}\n", n, n);
    put(host.paths.proc + "/kallsyms", text + "0 r __ksymtab_first\n" + text + "0 r __ksymtab_last");
    CHECK(*kmod::kernel_exports(host.paths, {"first", "last", "function_1"}) == std::set<std::string>{"first", "last"});
    std::size_t lines = 0;
    const auto count = [&](std::string_view line) {
        ++lines;
        return line.ends_with("first") ? kmod::Lines::enough : kmod::Lines::more;
    };
    CHECK(kmod::for_each_line(host.paths.proc + "/kallsyms", count) == kmod::Reading::done);
    CHECK(lines == 5001);
    CHECK(kmod::for_each_line(host.paths.proc + "/absent", count) == kmod::Reading::failed);
}

TEST_CASE("a file that never ends is not read for ever") {
    FakeHost host;
    std::size_t lines = 0;
    const auto count = [&](std::string_view) {
        ++lines;
        return kmod::Lines::more;
    };
    CHECK(kmod::for_each_line("/dev/zero", count) == kmod::Reading::failed);
    CHECK(lines == 0);
    CHECK(kmod::read_raw("/dev/zero").value_or("").size() == 4096);
    CHECK(kmod::read_raw("/dev/null") == "");  // masks a file
    std::filesystem::remove(host.paths.proc + "/kallsyms");
    std::filesystem::create_symlink("/dev/zero", host.paths.proc + "/kallsyms");
    CHECK_FALSE(kmod::kernel_exports(host.paths, {"_printk"}));
}

TEST_CASE("the kernel log gives only what came after it was opened") {
    FakeHost host;
    kmod::KernelLog log(host.paths.kmsg);
    REQUIRE(log.available());
    CHECK(log.lines().empty());
    host.log("kmm_hello: loading out-of-tree module taints kernel.");
    host.log("unrelated: line");
    host.log("kmm-hello: no device found");
    const auto about = kmod::lines_about(log.lines(), "kmm_hello");
    CHECK(about.size() == 2);
    CHECK(kmod::telling_line(about) == "kmm-hello: no device found");
    CHECK(kmod::telling_line({"x: loading out-of-tree module taints kernel."}) ==
          "x: loading out-of-tree module taints kernel.");
    CHECK(kmod::telling_line({"x: Deprecated Driver is detected: x", "x: module not compiled with retpoline compiler.",
                              "x: no symbol version for module_layout", "x: unknown parameter 'y' ignored",
                              "x: no card"}) == "x: no card");
    CHECK(kmod::telling_line({}).empty());
    const std::vector<std::string> lines{"tuned: started", "atun: up", "net_tun: up",     "tun0: up",
                                         "tun: no device", "[tun]",    "tun_init: failed"};
    CHECK(kmod::lines_about(lines, "tun") ==
          std::vector<std::string>{"tun0: up", "tun: no device", "[tun]", "tun_init: failed"});
    kmod::KernelLog silent("/nonexistent/kmsg");
    CHECK_FALSE(silent.available());
    CHECK(silent.lines().empty());
}

}
