// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>

#include "recipe/toolkit/map.hpp"
#include "recipe/toolkit/versions.hpp"
#include "value/reader.hpp"

namespace {

using namespace kmm;
using namespace kmm::recipe::toolkit;

std::string digest(char c) { return "sha256:" + std::string(64, c); }

std::string references(const std::string& version, char image) {
    return "{kind: ImageStream, apiVersion: image.openshift.io/v1, metadata: {name: " + version +
           "}, spec: {tags: [{name: driver-toolkit, from: {name: 'q.test/dtk@" + digest(image) + "'}}]}}\n";
}

std::string kernels(const std::string& kernel, const std::string& rt = "") {
    return "{KERNEL_VERSION: " + kernel + ", RT_KERNEL_VERSION: '" + rt + "', RHEL_VERSION: '9.4'}\n";
}

std::string okd_stream(char image) {
    return "{kind: ImageStream, apiVersion: image.openshift.io/v1, metadata: {name: driver-toolkit}, "
           "spec: {tags: [{name: 416.9.202411211032-0, from: {name: 'q.test/dtk@" + digest(image) + "'}}]}}\n";
}

std::string okd_node(const std::string& system, const std::string& kernel) {
    return "{kind: Node, apiVersion: v1, metadata: {name: w}, status: {nodeInfo: {kernelVersion: " + kernel +
           ", osImage: '" + system + " CoreOS 416.9.202411211032-0'}}}\n";
}

struct Files {
    std::vector<std::pair<std::string, std::string>> files;
    MapOptions options;
    Diagnostics faults;

    ToolkitMap map() {
        Inputs inputs;
        for (const auto& [name, text] : files) {
            for (const auto& document : value::read_any(text, name, faults)) { read_input(document, inputs, faults); }
        }
        return make_map(inputs, options, faults);
    }
};

const std::string k_kernel = "5.14.0-427.40.1.el9_4.x86_64", k_other = "5.14.0-427.43.1.el9_4.x86_64";

}  // namespace

TEST_CASE("what is a kernel release") {
    for (const char* good :
         {"5.14.0-427.40.1.el9_4.x86_64+rt", "6.1.0", "4.18.0-305.40.2.rt7.113.el8_4.x86_64", "6.12.0+"}) {
        CHECK(is_kernel_release(good));
    }
    for (const char* bad : {"", "package kernel-rt-core is not installed", "5.14", "v5.14.0", "5.14.0 x", "5..0",
                            // of rpm -q without a line end, where two packages of the kernel are installed
                            "5.14.0-570.12.1.el9_6.x86_645.14.0-570.13.1.el9_6.x86_64",
                            "5.14.0-1.el9.aarch64+64k5.14.0-2.el9.aarch64+64k"}) {
        CHECK_FALSE(is_kernel_release(bad));
    }
}

TEST_CASE("flavour and architecture of a kernel") {
    CHECK(kernel_flavour("5.14.0-1.el9.x86_64") == "std");
    CHECK(kernel_flavour("5.14.0-1.el9.x86_64+rt") == "rt");
    CHECK(kernel_flavour("4.18.0-305.40.2.rt7.113.el8_4.x86_64") == "rt");
    CHECK(kernel_flavour("4.18.0-305.rtx.x86_64") == "std");
    CHECK(kernel_flavour("5.14.0-1.el9.aarch64+64k") == "64k");
    CHECK(kernel_architecture("5.14.0-1.el9.aarch64+64k") == "aarch64");
    CHECK(kernel_architecture("4.18.0-305.19.1.el8_4").empty());
    CHECK(is_of_one_kind("5.14.0-1.el9.x86_64+rt", "4.18.0-305.40.2.rt7.113.el8_4.x86_64"));
    CHECK_FALSE(is_of_one_kind("5.14.0-1.el9.x86_64", "5.14.0-1.el9.aarch64"));
    CHECK(with_architecture("5.14.0-1.el9+rt", "x86_64") == "5.14.0-1.el9.x86_64+rt");
    CHECK(without_architecture("5.14.0-1.el9.x86_64+rt") == "5.14.0-1.el9");
}

TEST_CASE("versions are ordered by their numbers") {
    CHECK(version_before("4.17.3", "4.17.10"));
    CHECK_FALSE(version_before("4.17.10", "4.17.3"));
    CHECK(version_before("4.17.0-rc.2", "4.17.0-rc.10"));
    CHECK(version_before("4.17.0-rc.2", "4.17.0"));
    CHECK(version_before("5.14.0-70.el9", "5.14.0-427.el9"));
    CHECK_FALSE(version_before("4.17.3", "4.17.3"));
    CHECK(version_before("4.17", "4.17.0"));
}

TEST_CASE("several releases with one kernel share a row; the toolkit of the newest comes first") {
    Files one;
    one.files = {{"4.17.3/image-references", references("4.17.3", 'a')},
                 {"4.17.3/driver-toolkit-release.json", kernels(k_kernel)},
                 {"4.17.10/image-references", references("4.17.10", 'b')},
                 {"4.17.10/driver-toolkit-release.json", kernels(k_kernel)}};
    const auto map = one.map();
    CHECK(one.faults.empty());
    REQUIRE(map.rows.size() == 1);
    CHECK(map.rows[0].releases == std::vector<std::string>{"4.17.3", "4.17.10"});
    CHECK(map.rows[0].toolkits.at(0).image == "q.test/dtk@" + digest('b'));
    CHECK(map.rows[0].toolkits.at(1).releases == std::vector<std::string>{"4.17.3"});
    CHECK(map.releases.size() == 2);
}

TEST_CASE("two kernels in one release name both places, whichever of them is said how") {
    Files one;
    one.files = {{"a/image-references", references("4.17.3", 'a')},
                 {"a/driver-toolkit-release.json", kernels(k_kernel)},
                 {"b/image-references", references("4.17.3", 'b')},
                 {"b/driver-toolkit-release.json", kernels(k_other)}};
    SUBCASE("of two payloads") {}
    SUBCASE("in a realtime kernel alone") {
        one.files[1].second = kernels(k_kernel, k_kernel + "+rt");
        one.files[3].second = kernels(k_kernel, k_other + "+rt");
    }
    SUBCASE("by the labels of a toolkit") {
        one.files[3] = {"b/config.json", "{architecture: amd64, config: {Labels: {kernel-version: " + k_other + "}}}"};
    }
    SUBCASE("by the labels of the operating system") {
        one.files.resize(2);
        one.files.push_back({"a/os.json", "{architecture: amd64, config: {Labels: {ostree.linux: " + k_other + "}}}"});
    }
    (void)one.map();
    REQUIRE(one.faults.size() == 1);
    CHECK(one.faults[0].code == "release-kernels");
    CHECK(one.faults[0].position.has_value());
    CHECK(one.faults[0].message.find("a/driver-toolkit-release.json:1:18") != std::string::npos);
}

TEST_CASE("two releases of different kernels are no fault, nor is the same kernel said twice") {
    Files one;
    one.files = {
        {"a/image-references", references("4.17.3", 'a')},
        {"a/driver-toolkit-release.json", kernels(k_kernel)},
        {"a/os.json", "{architecture: amd64, config: {Labels: {com.coreos.rpm.kernel: 5.14.0-427.40.1.el9_4}}}"},
        {"b/image-references", references("4.17.4", 'b')},
        {"b/driver-toolkit-release.json", kernels(k_other)}};
    one.options.architecture = "x86_64";
    CHECK(one.map().rows.size() == 2);
    CHECK(one.faults.empty());
}

TEST_CASE("a file without an image belongs to the nearest release, by name first") {
    Files one;
    one.files = {{"r/1-image-references", references("4.1.0", 'a')},
                 {"r/2-image-references", references("4.2.0", 'b')},
                 {"r/2-driver-toolkit-release.json", kernels(k_kernel)}};
    auto map = one.map();
    REQUIRE(map.rows.size() == 1);
    CHECK(map.rows[0].releases == std::vector<std::string>{"4.2.0"});
    one.files[2].first = "r/x.json";
    one.faults.clear();
    (void)one.map();
    CHECK(std::any_of(one.faults.begin(), one.faults.end(), [](const Diagnostic& fault) {
        return fault.code == "toolkit-not-linked" && fault.position->line == 1;
    }));
    one.options.images["r/x.json"] = "q.test/other@" + digest('c');
    one.faults.clear();
    map = one.map();
    CHECK(map.rows.at(0).toolkits.at(0).image == "q.test/other@" + digest('c'));
}

TEST_CASE("the 64k kernel of aarch64 and kernels as labels have them are found") {
    Files one;
    one.files = {
        {"image-references", references("4.19.0", 'a')},
        {"driver-toolkit-release.json", kernels("5.14.0-570.12.1.el9_6.aarch64", "5.14.0-570.12.1.el9_6.aarch64+rt")}};
    const auto map = one.map();
    CHECK(find_kernel(map, "5.14.0-570.12.1.el9_6.aarch64_64k") != nullptr);
    CHECK(find_kernel(map, "5.14.0-570.12.1.el9_6.aarch64_rt") != nullptr);
    CHECK(find_kernel(map, "5.14.0-570.12.1.el9_6.aarch64+64k")->flavour == "64k");
    CHECK(find_kernel(map, "5.14.0-570.12.1.el9_6.x86_64") == nullptr);
}

TEST_CASE("an image of several architectures belongs to the release that lists its index") {
    Files files;
    files.files.emplace_back("references", references("4.17.3", 'a'));
    const auto info = [](char own, const std::string& architecture) {
        return "{name: 'q.test/dtk:v1', digest: '" + digest(own) + "', listDigest: '" + digest('a') +
               "', config: {architecture: x, config: {Labels: {kernel-version: 5.14.0-427.40.1.el9_4." + architecture +
               "}}}}";
    };
    files.files.emplace_back("all.json", "[" + info('b', "x86_64") + ", " + info('c', "s390x") + "]\n");
    const auto map = files.map();
    CHECK(files.faults.empty());
    REQUIRE(map.rows.size() == 2);
    for (const auto& row : map.rows) {
        CHECK(row.releases == std::vector<std::string>{"4.17.3"});
        CHECK(row.toolkits.at(0).image == "q.test/dtk@" + digest('a'));
    }
}

TEST_CASE("podman inspect names an image by all its digests") {
    Files files;
    files.files.emplace_back("references", references("4.17.3", 'a'));
    files.files.emplace_back("elsewhere/inspect.json",
                             "[{Id: x, Digest: '" + digest('b') + "', RepoDigests: ['m.test/dtk@" + digest('b') +
                                 "', 'm.test/dtk@" + digest('a') + "'], Labels: {}, Architecture: amd64, "
                                 "Config: {Labels: {kernel-version: " + k_kernel + "}}}]\n");
    const auto map = files.map();
    CHECK(files.faults.empty());
    REQUIRE(map.rows.size() == 1);
    CHECK(map.rows[0].toolkits.at(0).image == "q.test/dtk@" + digest('a'));
    // A release for one architecture lists the image itself, another one the index that has it.
    files.files.emplace_back("single/references", references("4.17.4", 'b'));
    const auto both = files.map();
    CHECK(files.faults.empty());
    REQUIRE(both.rows.size() == 1);
    CHECK(both.rows[0].releases == std::vector<std::string>{"4.17.3", "4.17.4"});
    REQUIRE(both.rows[0].toolkits.size() == 2);
    CHECK(both.rows[0].toolkits[0].image == "q.test/dtk@" + digest('b'));
}

TEST_CASE("a realtime kernel that is written without its ending is one") {
    Files files;
    files.files.emplace_back("a/references", references("4.17.3", 'a'));
    files.files.emplace_back("a/dtk.json", "{architecture: amd64, rootfs: {}, config: {Labels: {kernel-version: "
                                           "5.14.0-427.40.1.el9_4, kernel-rt-version: 5.14.0-427.40.1.el9_4}}}\n");
    files.files.emplace_back("b/references", references("4.17.4", 'b'));
    files.files.emplace_back("b/dtk.json", kernels(k_other, k_other));
    files.files.emplace_back("c/references", references("4.13.1", 'c'));
    files.files.emplace_back("c/dtk.json",
                             kernels("5.14.0-284.1.1.el9_2.x86_64", "5.14.0-284.1.1.rt14.1.el9_2.x86_64"));
    const auto map = files.map();
    CHECK(files.faults.empty());
    CHECK(map.rows.size() == 6);
    for (const auto& kernel : {k_kernel + "+rt", k_other + "+rt", std::string("5.14.0-284.1.1.rt14.1.el9_2.x86_64")}) {
        REQUIRE(find_kernel(map, kernel) != nullptr);
        CHECK(find_kernel(map, kernel)->flavour == "rt");
    }
}

TEST_CASE("the kernel that a node of a system should have is one of its architecture and flavour") {
    Files files;
    const auto node = [&](const std::string& kernel) {
        files.faults.clear();
        files.files = {{"stream", okd_stream('a')},
                       {"1.json", kernels("5.14.0-460.el9.aarch64")},
                       {"2.json", kernels("5.14.0-460.el9.x86_64", "5.14.0-460.el9.x86_64+rt")},
                       {"node", okd_node("CentOS Stream", kernel)}};
        static_cast<void>(files.map());
        REQUIRE(files.faults.size() == 1);
        return files.faults[0].message.substr(files.faults[0].message.find(',') + 2);
    };
    for (const char* name : {"1.json", "2.json"}) { files.options.images[name] = "q.test/dtk@" + digest('a'); }
    const std::string other = "the toolkit of its system has kernel 5.14.0-460.el9.";
    CHECK(node("5.14.0-531.el9.x86_64") == other + "x86_64");
    CHECK(node("5.14.0-531.el9.x86_64+rt") == other + "x86_64+rt");
    CHECK(node("5.14.0-531.el9.aarch64") == other + "aarch64");
    CHECK(node("5.14.0-531.el9.aarch64+64k") == other + "aarch64+64k");
    CHECK(node("5.14.0-531.el9.s390x") == "of which no toolkit is known");
}

TEST_CASE("the toolkit of OKD need not be of the kernel of its system") {
    const std::string stream = okd_stream('a');
    const auto node = [](const std::string& system) { return okd_node(system, "5.14.0-531.el9.x86_64"); };
    Files files;
    files.files = {{"stream", stream}, {"node", node("CentOS Stream")}};
    CHECK(files.map().rows.empty());
    REQUIRE(files.faults.size() == 2);
    CHECK(files.faults[0].code == "toolkit-kernel-unknown");
    files.files.emplace_back("dtk.json", kernels("5.14.0-460.el9.x86_64"));
    files.options.images["dtk.json"] = "q.test/dtk@" + digest('a');
    files.faults.clear();
    CHECK(files.map().rows.size() == 1);
    REQUIRE(files.faults.size() == 1);
    CHECK(files.faults[0].message ==
          "node w runs kernel 5.14.0-531.el9.x86_64, the toolkit of its system has kernel 5.14.0-460.el9.x86_64");
    files.files = {{"stream", stream}, {"node", node("Red Hat Enterprise Linux")}};
    files.faults.clear();
    CHECK(files.map().rows.size() == 1);
    CHECK(files.faults.empty());
}

TEST_CASE("a toolkit image of one architecture has no kernel of another") {
    const auto faults_of = [](const std::string& architecture) {
        Files files;
        files.files = {{"dtk.json", "{architecture: " + architecture +
                                        ", config: {Labels: {kernel-version: " + k_kernel + "}}}"}};
        files.options.images["dtk.json"] = "q.test/dtk@" + digest('a');
        const auto rows = files.map().rows.size();
        return std::pair(rows, files.faults);
    };
    CHECK(faults_of("amd64").first == 1);
    CHECK(faults_of("amd64").second.empty());
    const auto [rows, faults] = faults_of("arm64");
    CHECK(rows == 0);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].code == "kernel-architecture");
    CHECK(faults[0].message == "kernel-version: kernel " + k_kernel + " is of x86_64, and the image of aarch64");
}
