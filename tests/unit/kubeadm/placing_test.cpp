// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "kubeadm/step/steps.hpp"
#include "unit/kubeadm/place.hpp"

using namespace kmm;
using namespace kmm::kubeadm;

TEST_CASE("a program that somebody else may replace is none that root installs or runs") {
    const test::Made machine;
    const std::string file = "/usr/local/kubernetes/1.35.4/kubeadm";
    machine.write(file, "#!/bin/sh\n");
    Switch how;
    how.way = Switch::Way::binaries;
    const auto target = *kubernetes::Version::parse("v1.35.4");
    const auto outcome = [&] {
        try {
            return find_kubeadm(machine.place(), how, target);
        } catch (const Error& error) { return error.code(); }
    };
    CHECK(outcome() == file);
    if (::geteuid() != 0) { return; }
    REQUIRE(::chown(machine.path(file).c_str(), 65534, 65534) == 0);
    CHECK(outcome() == "untrusted-file");
}

TEST_CASE("a lock of dnf 5 on another version is found before anything is done on the node") {
    test::Made machine;
    machine.write("/usr/bin/dnf", "#!/bin/sh\nexit 3\n");
    std::filesystem::permissions(machine.path("/usr/bin/dnf"), std::filesystem::perms::owner_all);
    Switch how;
    how.way = Switch::Way::packages;
    const auto target = *kubernetes::Version::parse("v1.35.4");
    const auto code_with = [&](const std::string& entries) {
        machine.write("/etc/dnf/versionlock.toml", "version = \"1.0\"\n" + entries);
        try {
            static_cast<void>(placing_commands(machine.node(), how, target, {"kubelet"}));
        } catch (const Error& error) { return error.code(); }
        return std::string();
    };
    const auto lock = [](const std::string& name, const std::string& comparator, const std::string& evr) {
        return "[[packages]]\nname = \"" + name + "\"\n[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"" +
               comparator + "\"\nvalue = \"" + evr + "\"\n";
    };
    const auto old = lock("kubelet", "=", "0:1.34.4-150500.1.1");
    CHECK(code_with(old) == "package-refused");
    CHECK(code_with(lock("kube*", "=", "1.34.4-150500.1.1")) == "package-refused");
    CHECK(code_with(lock("kubelet", "!=", "0:1.35.4-150500.1.1")) == "package-refused");
    CHECK(code_with(lock("kubelet", "=", "0:1.35.40-1")) == "package-refused");
    for (const auto& entries : {std::string(), lock("kubelet", "=", "0:1.35.4-150500.1.1"), lock("kubectl", "=", "0:1"),
                                old + lock("kubelet", "=", "0:1.35.4-150500.1.1"),
                                lock("kubelet", "<", "0:1.36"), std::string("no toml")})
        CHECK(code_with(entries) == "command-failed");
}
