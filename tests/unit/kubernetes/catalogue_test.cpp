// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "kubernetes/versions/catalogue.hpp"
#include "kubernetes/versions/path.hpp"

using namespace kmm;
using namespace kmm::kubernetes;

namespace {

Catalogue catalogue_of(std::string_view text) {
    Diagnostics faults;
    auto catalogue = read_catalogue(text, "versions.yaml", faults);
    for (const auto& fault : faults) { FAIL_CHECK(fault.position->to_string() << ": " << fault.message); }
    return catalogue;
}

std::vector<std::string> faults_of(std::string_view text) {
    Diagnostics faults;
    (void)read_catalogue(text, "versions.yaml", faults);
    sort_and_merge(faults);
    std::vector<std::string> lines;
    for (const auto& fault : faults) { lines.push_back(fault.position->to_string() + ": " + fault.message); }
    return lines;
}

Version version_at(std::string_view text) { return Version::parse(text).value(); }

/// "1.32.0" or "1.32.0-1.32.4".
VersionRange range_at(std::string_view text) {
    const auto dash = text.find('-');
    return {version_at(text.substr(0, dash)), version_at(text.substr(dash == std::string_view::npos ? 0 : dash + 1))};
}

std::string way(const Catalogue& catalogue, std::string_view control_planes, std::string_view kubelets,
                std::string_view target) {
    const auto path = find_path(catalogue, range_at(control_planes), range_at(kubelets), version_at(target));
    if (!path.problem.empty()) { return "no: " + path.problem; }
    std::string text;
    for (const auto& step : path.steps) { text += (text.empty() ? "" : " | ") + to_string(step); }
    return text;
}

}  // namespace

TEST_SUITE("kubernetes::catalogue") {

TEST_CASE("what is built in") {
    const auto& built_in = builtin_catalogue();
    REQUIRE(built_in.versions.size() >= 7);
    CHECK(built_in.versions.front().version.line() == MinorVersion{1, 29});
    CHECK(built_in.versions.back().version.line() == MinorVersion{1, 35});
    const auto* entry = built_in.find(version_at("v1.34.4"));
    REQUIRE(entry != nullptr);
    CHECK(entry->etcd == "3.6.5-0");
    CHECK(built_in.find(version_at("v1.31.14"))->pause == "3.10");
    CHECK(built_in.facts_of({1, 35})->needs_cgroup_v2);
    CHECK_FALSE(built_in.facts_of({1, 34})->needs_cgroup_v2);
}

TEST_CASE("fields of an entry, sorted by version") {
    const auto catalogue = catalogue_of(
        "versions:\n"
        "- version: 1.43.2\n  upgrade_from: [v1.43.1, v1.42.2]\n  downgrade_to: [v1.43.1]\n  applied_patches: "
        "[KUBE.14, KUBE.15]\n  available_patches: [KUBE.16]\n"
        "- version: v1.42.2\n- {version: v1.43.1, upgrade_from: []}\n");
    REQUIRE(catalogue.versions.size() == 3);
    CHECK(catalogue.versions[0].version.text() == "v1.42.2");
    const auto& last = catalogue.versions[2];
    CHECK(last.upgrade_from->size() == 2);
    CHECK(last.downgrade_to == std::vector{version_at("v1.43.1")});
    CHECK(last.applied_patches == std::vector<std::string>{"KUBE.14", "KUBE.15"});
    CHECK(last.follows(version_at("1.42.2")));
    CHECK_FALSE(last.follows(version_at("1.42.3")));
    CHECK_FALSE(catalogue.versions[1].follows(version_at("1.42.2")));
    CHECK(catalogue.versions[0].follows(version_at("1.41.9")));
    CHECK(catalogue.versions[0].follows(version_at("1.42.1")));
    CHECK_FALSE(catalogue.versions[0].follows(version_at("1.40.0")));
    CHECK_FALSE(catalogue.versions[0].follows(version_at("1.42.2")));
}

TEST_CASE("every fault is reported, with its place") {
    const auto lines = faults_of(
        "versions:\n"
        "- version: v1.34\n"
        "- version: 1.34.1\n  upgrade_form: [v1.33.0]\n  upgrade_from: [v1.32.0, v1.35.0, v1.33.0, v1.33.0, 7]\n  "
        "downgrade_to: v1.33.0\n"
        "- version: v1.34.1\n  pause: 3.10\n  etcd: 3.x\n  downgrade_to: [v1.33.9]\n"
        "- etcd: ''\n"
        "- v1.2.3\n"
        "minors:\n"
        "- minor: 1.30\n  cgroup: v3\n  removed: {feature_gates: [A, A], complete: maybe, x: 1, "
        "locked_gates: [B, C=true, {D: e}]}\n"
        "- minor: v1.34\n  known_issues:\n  - {versions: [v1.34.0, v1.33.0, x], when: always, issues: a}\n  - "
        "{versions: [], issue: ''}\n  - v1.34.1\n");
    const std::vector<std::string> expected{
        "versions.yaml:2:12: version: expected MAJOR.MINOR.PATCH as v1.34.4, found 'v1.34'",
        "versions.yaml:4:3: v1.34.1: field upgrade_form is not known, expected one of version, upgrade_f"
        "rom, downgrade_to, applied_patches, available_patches, etcd, coredns, pause",
        "versions.yaml:5:18: upgrade_from of v1.34.1: expected a version of v1.34 or the minor below it,"
        " found v1.32.0",
        "versions.yaml:5:27: upgrade_from of v1.34.1: expected a lower version, found v1.35.0",
        "versions.yaml:5:45: upgrade_from: v1.33.0 is listed twice",
        "versions.yaml:5:54: upgrade_from: expected a string, found the integer '7'",
        "versions.yaml:6:17: downgrade_to: expected a list, found the string 'v1.33.0'",
        "versions.yaml:7:12: version v1.34.1 is listed twice, first at versions.yaml:3:12",
        "versions.yaml:8:10: pause: expected a string, found the number '3.10'",
        "versions.yaml:9:9: etcd: expected a version as 3.6.5-0, found '3.x'",
        "versions.yaml:10:18: downgrade_to of v1.34.1: expected a version of v1.34, found v1.33.9",
        "versions.yaml:11:3: version is missing, expected MAJOR.MINOR.PATCH as v1.34.4",
        "versions.yaml:11:9: etcd: expected a string, found the string ''",
        "versions.yaml:12:3: versions: expected a mapping with version, found the string 'v1.2.3'",
        "versions.yaml:14:10: minor: expected a string, found the number '1.30'",
        "versions.yaml:15:11: cgroup: expected any or v2, found 'v3'",
        "versions.yaml:16:32: feature_gates: A is listed twice",
        "versions.yaml:16:46: complete: expected true or false, found the string 'maybe'",
        "versions.yaml:16:53: removed: field x is not known, expected one of complete, apiserver_flags, "
        "controller_manager_flags, scheduler_flags, kubelet_flags, admission_plugins, feature_gates, locked_gates",
        "versions.yaml:16:74: locked_gates: expected NAME=true or NAME=false, found the string 'B'",
        "versions.yaml:16:85: locked_gates: expected a string, found a mapping",
        "versions.yaml:19:5: known_issues: issue is missing",
        "versions.yaml:19:26: known_issues: expected a version of v1.34, found v1.33.0",
        "versions.yaml:19:35: versions: expected MAJOR.MINOR.PATCH as v1.34.4, found 'x'",
        "versions.yaml:19:45: when: expected host-name-differs, found 'always'",
        "versions.yaml:19:53: known_issues: field issues is not known, expected one of versions, issue, when",
        "versions.yaml:20:16: known_issues: versions: expected a version, found none",
        "versions.yaml:20:27: issue: expected a string, found the string ''",
        "versions.yaml:21:5: known_issues: expected a mapping with versions and issue, found the string 'v1.34.1'",
    };
    CHECK(kmm::base::join(lines, "\n") == kmm::base::join(expected, "\n"));
}

TEST_CASE("files of another form") {
    CHECK(faults_of("") ==
          std::vector<std::string>{"versions.yaml: the file is empty, expected a mapping with versions"});
    CHECK(faults_of("[]") ==
          std::vector<std::string>{"versions.yaml:1:1: expected a mapping with versions, found a list"});
    CHECK(faults_of("minors: []") ==
          std::vector<std::string>{"versions.yaml:1:1: versions is missing, expected a list of versions"});
    CHECK(faults_of("versions: v1.2.3") ==
          std::vector<std::string>{"versions.yaml:1:11: versions: expected a list, found the string 'v1.2.3'"});
    CHECK(faults_of("versions: [").size() == 1);
}

TEST_CASE("ways over several minors") {
    const auto& built_in = builtin_catalogue();
    CHECK(way(built_in, "1.34.1", "1.34.1", "1.34.4") == "control planes v1.34.4 | kubelets v1.34.4");
    CHECK(way(built_in, "1.33.5", "1.33.5", "1.35.4") ==
          "control planes v1.34.4 | control planes v1.35.4 | kubelets v1.35.4");
    // Kubelets may stay three minors behind, not four.
    CHECK(way(built_in, "1.31.14", "1.31.14", "1.34.4") ==
          "control planes v1.32.13 | control planes v1.33.13 | control planes v1.34.4 | kubelets v1.34.4");
    CHECK(way(built_in, "1.31.14", "1.31.14", "1.35.4") ==
          "control planes v1.32.13 | control planes v1.33.13 | control planes v1.34.4 | kubelets v1.34.4 | control "
          "planes v1.35.4 | kubelets v1.35.4");
    CHECK(way(built_in, "1.32.13", "1.29.15", "1.33.13") ==
          "kubelets v1.32.13 | control planes v1.33.13 | kubelets v1.33.13");
    CHECK(way(built_in, "1.34.4", "1.33.13", "1.34.4") == "kubelets v1.34.4");
    CHECK(way(built_in, "1.34.4", "1.34.4", "1.34.4") == "");
    CHECK(way(built_in, "1.34.4", "1.34.4", "1.33.13") ==
          "no: v1.33.13 is below v1.34.4, which runs and does not list it in downgrade_to");
    CHECK(way(built_in, "1.34.4", "1.35.4", "1.35.4") ==
          "no: a kubelet runs v1.35.4, newer than the control plane's v1.34.4");
    CHECK(way(built_in, "1.27.0", "1.27.0", "1.31.14") ==
          "no: no way from v1.27.0 to v1.31.14 is known: kubeadm upgrades one minor at a time");
}

TEST_CASE("a way that upgrade_from ends is told apart from one that lacks a minor; tags of images are known anyway") {
    auto catalogue = catalogue_of(
        "versions:\n- version: v1.34.4\n- {version: v1.35.4, upgrade_from: [v1.34.3, v1.34.2]}\n- {version: v1.35.5, "
        "upgrade_from: []}\n");
    CHECK(way(catalogue, "1.34.4", "1.34.4", "1.35.4") ==
          "no: no way from v1.34.4 to v1.35.4 is known: its upgrade_from names v1.34.3, v1.34.2");
    CHECK(way(catalogue, "1.34.4", "1.34.4", "1.35.5") ==
          "no: no way from v1.34.4 to v1.35.5 is known: its upgrade_from names no version");
    catalogue.versions.front().coredns = "v9";
    add_known(catalogue, builtin_catalogue());
    CHECK(catalogue.find(version_at("1.35.4"))->etcd == builtin_catalogue().find(version_at("1.35.4"))->etcd);
    CHECK(catalogue.find(version_at("1.34.4"))->coredns == "v9");
    CHECK(catalogue.find(version_at("1.34.4"))->pause == builtin_catalogue().find(version_at("1.34.4"))->pause);
    CHECK(catalogue.find(version_at("1.35.5"))->etcd.empty());
}

TEST_CASE("ways follow upgrade_from and prefer high patches") {
    const auto catalogue = catalogue_of(
        "versions:\n- version: v1.30.1\n- version: v1.30.9\n- {version: v1.31.1, upgrade_from: [v1.30.1]}\n- version: "
        "v1.31.8\n"
        "- {version: v1.32.0, upgrade_from: [v1.31.1]}\n- {version: v1.32.4, downgrade_to: [v1.32.0]}\n");
    CHECK(way(catalogue, "1.30.0", "1.30.0", "1.31.8") == "control planes v1.31.8 | kubelets v1.31.8");
    CHECK(way(catalogue, "1.30.0", "1.30.0", "1.32.4") ==
          "control planes v1.31.8 | control planes v1.32.4 | kubelets v1.32.4");
    CHECK(way(catalogue, "1.30.0", "1.30.0", "1.32.0") ==
          "control planes v1.30.1 | control planes v1.31.1 | control planes v1.32.0 | kubelets v1.32.0");
    CHECK(way(catalogue, "1.32.4", "1.32.4", "1.32.0") == "kubelets v1.32.0 | control planes v1.32.0");
    // On the way back what is there already stays, and nothing else does.
    CHECK(way(catalogue, "1.32.4", "1.32.0", "1.32.0") == "control planes v1.32.0");
    CHECK(way(catalogue, "1.32.4", "1.32.0-1.32.4", "1.32.0") == "kubelets v1.32.0 | control planes v1.32.0");
    CHECK(way(catalogue, "1.32.0-1.32.4", "1.32.0", "1.32.0") == "control planes v1.32.0");
    CHECK(way(catalogue, "1.32.0", "1.32.0-1.32.4", "1.32.0") == "kubelets v1.32.0");
    CHECK(way(catalogue, "1.32.0", "1.32.0", "1.32.0") == "");
    CHECK(way(catalogue, "1.31.8-1.32.4", "1.31.8", "1.32.0") ==
          "no: control planes run v1.31.8 and v1.32.4, and v1.32.0 is between them");
    CHECK(way(catalogue, "1.32.2-1.32.4", "1.32.0", "1.32.0") ==
          "no: v1.32.0 is below v1.32.2, which runs and does not list it in downgrade_to");
    // On the way up, too.
    CHECK(way(catalogue, "1.31.8-1.32.4", "1.31.8-1.32.4", "1.32.4") ==
          "no: a kubelet runs v1.32.4, newer than the control plane's v1.31.8");
    CHECK(way(catalogue, "1.31.8-1.32.4", "1.31.8", "1.32.4") == "control planes v1.32.4 | kubelets v1.32.4");
    CHECK(way(catalogue, "1.32.4", "1.31.8-1.32.4", "1.32.4") == "kubelets v1.32.4");
    CHECK(kubelet_skew_max(version_at("1.24.9")) == 2);
    CHECK(kubelet_skew_max(version_at("1.25.0")) == 3);
}

}
