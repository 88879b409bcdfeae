// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/users.hpp"

#include <doctest/doctest.h>

#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

void link_to(const std::string& target, const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::filesystem::create_symlink(target, path);
}

TEST_CASE("processes, mounts and interfaces that use a module") {
    FakeHost host;
    put(host.paths.proc + "/devices", "Character devices:\n  1 my-demo\n 10 misc\n\nBlock devices:\n  8 sd\n");
    put(host.paths.proc + "/812/comm", "cat\n");
    link_to("/dev/null", host.paths.proc + "/812/fd/3");   // 1:3
    link_to("/dev/null", host.paths.proc + "/812/fd/4");
    link_to("/etc/hostname", host.paths.proc + "/812/fd/5");
    put(host.paths.proc + "/1/mountinfo",
        "36 35 0:41 / /mnt/data rw,relatime shared:1 - my_demo none rw\n37 35 0:42 / /other rw - ext4 /dev/sda1 rw\n");
    link_to("../../../../module/my_demo", host.paths.sys + "/class/net/eth7/device/driver/module");
    link_to("../../../../module/another", host.paths.sys + "/class/net/eth8/device/driver/module");
    CHECK(kmod::module_users(host.paths, "my-demo") == std::vector<std::string>{"process 812 (cat) has /dev/null open",
                                                                                "/mnt/data is mounted (my_demo)",
                                                                                "network interface eth7"});
    CHECK(kmod::module_users(host.paths, "nobody").empty());
}

TEST_CASE("interfaces that are up") {
    FakeHost host;
    for (const char* name : {"eth5", "eth6", "eth7"})
        link_to("../../../../module/my_demo", host.paths.sys + "/class/net/" + name + "/device/driver/module");
    link_to("../../../../module/another", host.paths.sys + "/class/net/eth8/device/driver/module");
    put(host.paths.sys + "/class/net/eth5/flags", "0x1003\n");
    put(host.paths.sys + "/class/net/eth6/flags", "0x1002\n");
    put(host.paths.sys + "/class/net/eth8/flags", "0x1003\n");
    CHECK(kmod::interfaces_up(host.paths, "my-demo") ==
          std::vector<std::string>{"eth5", "eth7"});  // nobody knows of eth7
    CHECK(kmod::interfaces_up(host.paths, "nobody").empty());
}

TEST_CASE("devices by their driver") {
    FakeHost host;
    link_to("../../../module/demo", host.paths.sys + "/dev/char/1:3/device/driver/module");
    put(host.paths.proc + "/9/comm", "reader\n");
    link_to("/dev/null", host.paths.proc + "/9/fd/0");
    link_to("/dev/zero", host.paths.proc + "/9/fd/1");
    CHECK(kmod::module_users(host.paths, "demo") == std::vector<std::string>{"process 9 (reader) has /dev/null open"});
}

}
