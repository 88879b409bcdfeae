// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/scan.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "place.hpp"

using namespace kmm;
using namespace kmm::kubeadm;
using kmm::kubeadm::test::Made;

namespace {

/// "v1.35.4: kubeadm kubelet" a version, with what is in the way behind it.
std::string told(const VersionOffer& offer) {
    std::string text = offer.source;
    for (const auto& one : offer.versions)
        text += "\n" + one.version.text() + ": " + base::join(one.programs, " ") +
                (one.problem.empty() ? "" : " - " + one.problem);
    for (const auto& [name, reason] : offer.ignored) text += "\n! " + name + ": " + reason;
    return text;
}

}  // namespace

TEST_SUITE("kubeadm::unit") {
    TEST_CASE("apt-cache madison is taken apart") {
        CHECK(told(read_madison("   kubeadm | 1.35.4-1.1 | https://pkgs.k8s.io/core:/stable:/v1.35/deb  Packages\n"
                                "   kubeadm | 1.35.4-1.1 | https://mirror.example  Packages\n"
                                "   kubeadm | 1.35.10-1.1 | https://mirror.example  Packages\n"
                                "   kubeadm | 1.36.0-1.1 | https://mirror.example  Sources\n"
                                "   kubelet | 1.35.4-1.1 | https://mirror.example  Packages\n"
                                "   kubectl | 1.35.4-1.1 | https://mirror.example  Packages\n"
                                "   kubectl | 1.36.0~rc.0-1.1 | https://mirror.example  Packages\n"
                                "N: Unable to locate\n | | \n   etcd | 1.35.4-1 | x\n")) ==
              "apt\nv1.35.4: kubeadm kubelet kubectl\nv1.35.10: kubeadm - no package kubelet of that version\n"
              "! kubectl 1.36.0~rc.0-1.1: its version is not MAJOR.MINOR.PATCH");
        CHECK(told(read_madison("")) == "apt");
    }

    TEST_CASE("dnf repoquery is taken apart") {
        CHECK(told(read_repoquery("kubeadm-0:1.35.4-150500.1.1.x86_64\nkubelet-0:1.35.4-150500.1.1.x86_64\n"
                                  "kubeadm-0:1.35.5-150500.1.1.x86_64\nkubeadm-0:latest-1.x86_64\nLast metadata\n")) ==
              "dnf\nv1.35.4: kubeadm kubelet\nv1.35.5: kubeadm - no package kubelet of that version\n"
              "! kubeadm latest-1.x86_64: its version is not MAJOR.MINOR.PATCH");
    }

    TEST_CASE("names of directories are versions as the upgrade looks for them, or ignored") {
        Made made;
        const Switch how;
        CHECK(told(scan_directories(made.node(), how)) == "/usr/local/kubernetes");
        for (const char* name : {"1.35.4/stage1/usr/bin", "v1.35.4", "V1.36.0", "1.36", "current", "01.35.4"})
            std::filesystem::create_directories(made.path(how.directory + "/" + name));
        made.write(how.directory + "/1.35.4/stage2/usr/bin/kubectl", "");
        const auto offer = scan_directories(made.node(), how);
        REQUIRE(offer.versions.size() == 1);
        CHECK(offer.versions[0].version.text() == "v1.35.4");
        CHECK(offer.versions[0].programs == std::vector<std::string>{"kubectl"});
        CHECK(offer.versions[0].problem ==
              "expected kubeadm v1.35.4 in /usr/local/kubernetes, found none of its places; expected kubelet v1.35.4 "
              "in /usr/local/kubernetes, found none of its places");
        std::string ignored;
        for (const auto& [name, reason] : offer.ignored) ignored += name + " ";
        CHECK(ignored == "01.35.4 1.36 V1.36.0 current v1.35.4 ");
        for (int i = 0; i < 200; ++i)
            std::filesystem::create_directories(made.path(how.directory + "/x" + std::to_string(i)));
        CHECK_THROWS_WITH_AS(static_cast<void>(scan_directories(made.node(), how)),
                             "/usr/local/kubernetes has 206 names, expected at most 200", Error);
    }

    TEST_CASE("a node without a package manager offers no packages") {
        Made made;
        CHECK(told(scan_packages(made.place())).empty());
    }
}
