// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kubernetes/versions/version.hpp"

using kmm::kubernetes::minors_behind;
using kmm::kubernetes::MinorVersion;
using kmm::kubernetes::Version;

namespace {

Version version_of(std::string_view text) {
    const auto version = Version::parse(text);
    REQUIRE_MESSAGE(version.has_value(), std::string(text));
    return *version;
}

/// A version of small numbers and mixed suffixes, so that equal and close ones are frequent.
Version any_version(std::mt19937& random) {
    static const std::vector<std::string> suffixes{
        "",           "-alpha.0",     "-alpha.3", "-beta.1", "-rc.1",    "-rc.2",  "-rc.10",
        "-rc.1+k3s1", "-rc1",         "-rc.01",   "+k3s1",   "+k3s2",    "+k3s10", "-gke.9",
        "-gke.100",   "-eks-113cf36", "-0",       "-1.1",    "-upgrade", "-PRE.1", "-rcx",
        "-1.1+a.b",   "+rke2r1",      "-00",      "-1"};
    const auto pick = [&](unsigned below) { return static_cast<std::uint32_t>(random() % below); };
    return {pick(2), pick(3), pick(3), suffixes[pick(static_cast<unsigned>(suffixes.size()))]};
}

}  // namespace

TEST_SUITE("kubernetes::version") {

TEST_CASE("versions are read with and without v, and nothing else is") {
    CHECK(version_of("v1.34.4") == version_of("1.34.4"));
    CHECK(version_of("V1.34.4").text() == "v1.34.4");
    CHECK(version_of("1.34.4-rc.1+k3s1").suffix == "-rc.1+k3s1");
    CHECK(version_of("v4294967295.0.0").major == 4294967295U);
    for (const auto* text : {"",
                             "v",
                             "1",
                             "1.34",
                             "v1.34",
                             "1.34.",
                             "1.34.4.5",
                             "01.34.4",
                             "1.034.4",
                             "1.34.04",
                             " 1.34.4",
                             "1.34.4 ",
                             "vv1.34.4",
                             "1.34.4-",
                             "1.34.4+",
                             "1.34.4rc1",
                             "1.34.4-rc_1",
                             "1.34.4-rc.",
                             "1.34.x",
                             "-1.34.4",
                             "1.-34.4",
                             "4294967296.0.0",
                             "1.34.99999999999999999999",
                             "latest",
                             "1.34.4-\xc3\xa4",
                             "1,34,4"}) {
        CAPTURE(text);
        CHECK_FALSE(Version::parse(text).has_value());
    }
}

TEST_CASE("order of versions") {
    const std::vector<const char*> ascending{
        "v0.9.9",         "v1.9.0",          "v1.10.0-alpha.0",   "v1.10.0-alpha.3",
        "v1.10.0-beta.1", "v1.10.0-rc.1",    "v1.10.0-rc.1+k3s1", "v1.10.0-rc.2",
        "v1.10.0-rc.10",  "v1.10.0",         "v1.10.0+k3s1",      "v1.10.0+k3s2",
        "v1.10.0+k3s10",  "v1.10.0-0",       "v1.10.0-1.1",       "v1.10.0-eks-1",
        "v1.10.0-gke.9",  "v1.10.0-gke.100", "v1.10.0-upgrade",   "v1.10.1",
        "v1.10.9",        "v1.10.10",        "v1.16.4",           "v2.0.0"};
    for (std::size_t i = 0; i < ascending.size(); ++i) {
        for (std::size_t k = 0; k < ascending.size(); ++k) {
            CAPTURE(ascending[i]);
            CAPTURE(ascending[k]);
            CHECK((version_of(ascending[i]) <=> version_of(ascending[k])) == (i <=> k));
        }
    }
    CHECK(version_of("1.10.0-rc.1").is_pre_release());
    CHECK_FALSE(version_of("1.10.0-rcx").is_pre_release());
    CHECK_FALSE(version_of("1.10.0+rc.1").is_pre_release());
}

TEST_CASE("the order is total, and a version survives being written and read") {
    std::mt19937 random(20260101);
    for (int i = 0; i < 20'000; ++i) {
        const auto a = any_version(random), b = any_version(random), c = any_version(random);
        CAPTURE(a.text());
        CAPTURE(b.text());
        CAPTURE(c.text());
        REQUIRE(version_of(a.text()) == a);
        REQUIRE(((a <=> b) == 0) == (a == b));
        REQUIRE((a < b) == (b > a));
        if (a <= b && b <= c) { REQUIRE(a <= c); }
        const auto numbers_a = std::tuple(a.major, a.minor, a.patch), numbers_b = std::tuple(b.major, b.minor, b.patch);
        if (numbers_a != numbers_b) { REQUIRE((a < b) == (numbers_a < numbers_b)); }
    }
}

TEST_CASE("versions in images") {
    const auto text = [](const char* image) {
        const auto version = Version::of_image(image);
        return version ? version->text() : std::string("none");
    };
    CHECK(text("registry.k8s.io/kube-apiserver:v1.34.4") == "v1.34.4");
    CHECK(text("registry:5000/kube-apiserver:v1.34.4") == "v1.34.4");
    CHECK(text("registry:5000/kube-apiserver") == "none");
    CHECK(text("kube-apiserver:v1.34.4@sha256:abc") == "v1.34.4");
    CHECK(text("kube-apiserver@sha256:abc") == "none");
    CHECK(text("kube-apiserver:latest") == "none");
    CHECK(text("etcd:3.6.5-0") == "v3.6.5-0");
    CHECK(text("rancher/kube:v1.34.1_k3s1") == "v1.34.1+k3s1");
    CHECK(text("") == "none");
}

TEST_CASE("minors") {
    CHECK(minors_behind(version_of("1.31.9"), version_of("1.34.0")) == 3);
    CHECK(minors_behind(version_of("1.34.0"), version_of("1.33.9")) == -1);
    CHECK(minors_behind(version_of("1.34.0"), version_of("2.0.0")) == 66);
    CHECK(MinorVersion::parse("v1.34") == MinorVersion{1, 34});
    CHECK_FALSE(MinorVersion::parse("v1.34.1").has_value());
    CHECK_FALSE(MinorVersion::parse("1").has_value());
}

}
