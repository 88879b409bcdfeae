// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/step/etcd_restore.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kubeadm/step/etcd_restore_parts.hpp"
#include "unit/kubeadm/place.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::kubeadm;

namespace {

constexpr const char* k_etcd = R"(apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: kube-system}
spec:
  containers:
  - name: etcd
    image: registry.example/etcd:TAG
    command:
    - etcd
    - --name=cp1
    - --data-dir=/var/lib/etcd
    - --initial-advertise-peer-urls=https://10.0.0.1:2380
)";

std::string etcd_of(const std::string& tag) {
    std::string text = k_etcd;
    return text.replace(text.find("TAG"), 3, tag);
}

std::string error_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        return error.code();
    }
    return "none";
}

bool has(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

const EtcdRestore k_restore{"run-1", "before", std::string(64, 'a'),
                            "cp1=https://10.0.0.1:2380,cp2=https://10.0.0.2:2380"};

}  // namespace

TEST_CASE("a manifest that does not tell what a member is restores nothing") {
    const auto member = member_place(etcd_of("3.6.5-0"));
    CHECK(member.name == "cp1");
    CHECK(member.peer_url == "https://10.0.0.1:2380");
    CHECK(member.image == "registry.example/etcd:3.6.5-0");
    for (const char* option : {"--name=cp1", "--data-dir=/var/lib/etcd", "--initial-advertise-peer-urls="}) {
        auto text = etcd_of("3.6.5-0");
        text.replace(text.find(option), 3, "--x");
        CHECK(error_of([&] { static_cast<void>(member_place(text)); }) == "etcd-not-found");
    }
}

TEST_CASE("the etcd of the backup restores, with new names and revisions that no client has seen") {
    const auto words_of = [](const char* tag) {
        return restore_words(member_place(etcd_of(tag)), k_restore, "/b/etcd.db", "/var/lib/etcd/kmm-restore-run-1");
    };
    const auto words = words_of("3.6.5-0");
    CHECK(words[0] == "etcdutl");
    CHECK(words[3] == "/b/etcd.db");
    CHECK(has(words, "--initial-cluster=" + k_restore.initial_cluster));
    CHECK(has(words, "--initial-cluster-token=kmm-run-1"));
    CHECK(has(words, "--mark-compacted"));
    CHECK(has(words, "--bump-revision=1000000000"));
    CHECK(has(words_of("3.5.10-0"), "--mark-compacted"));
    CHECK(words_of("3.5.9-0")[0] == "etcdutl");
    CHECK_FALSE(has(words_of("3.5.9-0"), "--mark-compacted"));
    CHECK(words_of("3.4.13-0")[0] == "etcdctl");
}

TEST_CASE("the Pod that restores sees the data and the snapshot, and runs once") {
    const auto member = member_place(etcd_of("3.6.5-0"));
    Diagnostics faults;
    const auto documents =
        value::read_json(restore_pod(member, {"etcdutl"}, "/backups/etcd.db", "kmm-restore-1"), "pod", faults);
    REQUIRE(documents.size() == 1);
    const auto& pod = documents.front().root;
    CHECK(pod.get_string({"spec", "restartPolicy"}) == "Never");
    const auto& container = pod.find_path({"spec", "containers"})->items().front();
    CHECK(container.get_string({"name"}) == "kmm-restore-1");
    CHECK(container.get_string({"image"}) == member.image);
    CHECK(container.find("volumeMounts")->items()[1].find("readOnly")->as_bool() == true);
    CHECK(container.find("volumeMounts")->items()[1].get_string({"mountPath"}) == "/backups");
}

TEST_CASE("while data is exchanged nobody else touches the control plane") {
    test::Made made;
    auto node = made.node();
    CHECK(error_of([&] { require_no_etcd_restore(node.place); }) == "none");
    const auto directory = std::string("/var/lib/kmm-node/etcd-restore/run-1/");
    for (const char* phase : {"prepared", "stopping", "stopped", "swapped", "started", "done"}) {
        made.write(directory + "phase", std::string(phase) + "\n");
        CHECK(to_string(restore_phase(node.place, "run-1")) == phase);
        const bool is_free = std::string_view(phase) == "prepared" || std::string_view(phase) == "done";
        CHECK(error_of([&] { require_no_etcd_restore(node.place); }) == (is_free ? "none" : "etcd-restore-under-way"));
    }
    made.write(directory + "phase", "");
    CHECK(error_of([&] { require_no_etcd_restore(node.place); }) == "etcd-restore-damaged");
    CHECK(error_of([&] { static_cast<void>(restore_directory("../x")); }) == "bad-value");
}

TEST_CASE("a snapshot arrives in pieces, any of them twice, and is proven as a whole") {
    test::Made made;
    made.write("/proc/sys/kernel/random/boot_id", "11111111-2222-4333-8444-555555555555\n");
    auto node = made.node();
    const std::string bytes(1000, 'x');
    EtcdRestore restore{"run-1", "", digest::sha256_hex(bytes), ""};
    const auto take = [&](std::size_t at, std::size_t length, const std::string& text) {
        const auto result = take_snapshot(node, restore, at, bytes.size(), base::to_base64(text.substr(at, length)));
        return result.facts.front().second;
    };
    const auto whole = made.path("/var/lib/kmm-node/etcd-restore/run-1/snapshot.db");
    CHECK(take(0, 400, bytes) == "400");
    CHECK(take(400, 400, bytes) == "800");
    CHECK(take(400, 300, bytes) == "700");
    CHECK_FALSE(std::filesystem::exists(whole));
    auto damaged = bytes;
    damaged[900] = 'y';
    CHECK(error_of([&] { take(700, 300, damaged); }) == "snapshot-damaged");
    CHECK_FALSE(std::filesystem::exists(whole));
    CHECK(take(0, 600, bytes) == "600");
    CHECK(take(600, 400, bytes) == "1000");
    CHECK(node.place.read("/var/lib/kmm-node/etcd-restore/run-1/snapshot.db") == bytes);
    // It is there: whatever is sent, nothing is to be sent any more.
    CHECK(take(0, 100, bytes) == "1000");
    CHECK(error_of([&] { static_cast<void>(take_snapshot(node, restore, 0, 10, "no base64!")); }) == "bad-value");
}
