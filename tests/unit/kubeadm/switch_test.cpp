// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "base/error.hpp"
#include "kubeadm/steps.hpp"
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
