// SPDX-License-Identifier: Apache-2.0
// What prune removes of earlier upgrades, and what always stays.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "digest/digest.hpp"
#include "kubeadm/step/backup.hpp"
#include "kubeadm/step/steps.hpp"
#include "place.hpp"

namespace kmm::kubeadm {
namespace {

std::string prune_code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return "";
}

constexpr const char* k_backups_directory = "/var/lib/kmm-node/backups";

struct Kept : test::Made {
    Kept() { write_rest(); }
    [[nodiscard]] std::string file(const std::string& name, const std::string& inside) const {
        return path(std::string(k_backups_directory) + "/" + name + inside);
    }
    void age(const std::string& name, int days) const {
        std::filesystem::last_write_time(
            file(name, ""), std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
    }
    /// A backup of an upgrade; with a snapshot, if there is text for it.
    void add(const std::string& name, int days, const std::string& snapshot = "") {
        static_cast<void>(make_backup(node(), name));
        if (!snapshot.empty()) {
            const auto path = file(name, "/backup.json");
            std::ifstream in(path);
            std::string text((std::istreambuf_iterator<char>(in)), {});
            text.insert(text.rfind('}'), ", \"etcdSnapshot\": {\"file\": \"etcd.db\", \"size\": " +
                                             std::to_string(snapshot.size()) + ", \"sha256\": \"" +
                                             digest::sha256_hex(snapshot) + "\", \"etcd\": \"3.6.5-0\"}");
            std::ofstream(path) << text;
            std::ofstream(file(name, "/etcd.db")) << snapshot;
        }
        age(name, days);
    }
    [[nodiscard]] std::vector<std::string> names() const { return place().list(k_backups_directory); }
    std::string prune(const std::string& name, std::size_t keep = 2) {
        const auto result = prune_node(node(), name, keep);
        CHECK(result.warnings.empty());
        CHECK(result.already == (result.message == "nothing was removed"));
        return result.message;
    }
};

using Names = std::vector<std::string>;
constexpr const char *k_now = "before-v1.35.4-00000005", *k_last = "before-v1.34.4-00000004",
                     *k_older = "before-v1.33.1-00000003", *k_oldest = "before-v1.32.0-rc.1-00000002";

}  // namespace

TEST_SUITE("prune") {
TEST_CASE("old copies of kubeadm go, but for the newest of each kind and what a manifest is restored from") {
    Made made;
    const std::string tmp = "/etc/kubernetes/tmp/";
    const auto at = [&](const std::string& name, int hours_ago) {
        std::filesystem::last_write_time(
            made.path(name), std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours_ago));
    };
    const auto manifest = [](const std::string& component, const std::string& image) {
        return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + component +
               ", namespace: kube-system}\nspec: {containers: [{name: " + component + ", image: 'r/" + image +
               "', command: [" + component + "]}]}\n";
    };
    made.write(tmp + "kubeadm-backup-manifests-2026-01-01-00-00-00/etcd.yaml", manifest("etcd", "etcd:3.5.24-0"));
    made.write(tmp + "kubeadm-backup-manifests-2026-02-01-00-00-00/kube-scheduler.yaml",
               manifest("kube-scheduler", "kube-scheduler:v1.33.1"));
    made.write(tmp + "kubeadm-backup-manifests-2026-03-01-00-00-00/kube-scheduler.yaml",
               manifest("kube-scheduler", "kube-scheduler:v1.34.1"));
    for (const char* name : {"kubeadm-backup-etcd-2026-01-01-00-00-00", "kubeadm-backup-etcd-2026-03-01-00-00-00",
                             "kubeadm-backup-etcd-2026-11-01-00-00-00", "kubeadm-kubelet-config123"})
        made.write(tmp + name + "/file", "x");
    made.write(tmp + "mine", "x");
    made.write_rest();
    const auto node = made.node();
    static_cast<void>(make_backup(node, "before"));
    at(tmp + "kubeadm-backup-manifests-2026-01-01-00-00-00", 90);
    at(tmp + "kubeadm-backup-manifests-2026-02-01-00-00-00", 80);
    at(tmp + "kubeadm-backup-manifests-2026-03-01-00-00-00", 70);
    at(tmp + "kubeadm-backup-etcd-2026-01-01-00-00-00", 90);
    at(tmp + "kubeadm-backup-etcd-2026-03-01-00-00-00", 70);
    at(tmp + "kubeadm-backup-etcd-2026-11-01-00-00-00", 1);
    at(tmp + "kubeadm-kubelet-config123", 60);
    at(tmp + "mine", 90);
    at("/var/lib/kmm-node/backups/before", 2);
    CHECK(prune_code_of([&] { static_cast<void>(prune_node(node, "another", 2)); }) == "backup-not-found");
    const auto result = prune_node(node, "before", 2);
    CHECK(result.warnings.empty());
    CHECK(result.message == "removed 3 old copies of kubeadm in /etc/kubernetes/tmp");
    CHECK(made.place().list("/etc/kubernetes/tmp") ==
          std::vector<std::string>{"kubeadm-backup-etcd-2026-11-01-00-00-00",
                                   "kubeadm-backup-manifests-2026-01-01-00-00-00",
                                   "kubeadm-backup-manifests-2026-03-01-00-00-00", "kubeadm-kubelet-config123",
                                   "mine"});
    CHECK(prune_node(node, "before", 2).already);
}

TEST_CASE("backups of earlier upgrades go, but for the newest ones") {
    Kept kept;
    kept.add(k_oldest, 90);
    kept.add(k_older, 60);
    kept.add(k_last, 30);
    kept.add(k_now, 0);
    CHECK(kept.prune(k_now, 4) == "nothing was removed");
    CHECK(kept.prune(k_now) == "removed 2 old backups");
    CHECK(kept.names() == Names{k_last, k_now});
    CHECK(kept.prune(k_now) == "nothing was removed");
    CHECK(kept.prune(k_now, 1) == "removed 1 old backup");
    CHECK(!verify_backup(kept.node(), k_now).message.empty());
}

TEST_CASE("backups made by hand stay, and what a killed call has left goes") {
    Kept kept;
    for (const char* name : {"before-v1.33.1", "mine", "before-the-move-deadbeef", "before-v1.33.1-0000000g"})
        kept.add(name, 90);
    for (const char* name : {".before-v1.33.1-00000003.partial", ".mine.partial"})
        kept.write(std::string(k_backups_directory) + "/" + name + "/etcd.db", "half");
    kept.add(k_now, 0);
    CHECK(kept.prune(k_now, 1) == "nothing was removed");
    CHECK(kept.names() == Names{".mine.partial", "before-the-move-deadbeef", "before-v1.33.1",
                                "before-v1.33.1-0000000g", k_now, "mine"});
}

TEST_CASE("the only whole snapshot of etcd stays, and the only whole backup") {
    Kept kept;
    kept.add(k_oldest, 90, "snapshot of 90 days");
    kept.add(k_older, 60, "snapshot of 60 days");
    kept.add(k_last, 30);
    kept.add(k_now, 0);
    // The newest one that is whole: that of 60 days has lost bytes.
    std::ofstream(kept.file(k_older, "/etcd.db")) << "snapshot of 60";
    kept.age(k_older, 60);
    CHECK(kept.prune(k_now) == "removed 1 old backup");
    CHECK(kept.names() == Names{k_oldest, k_last, k_now});
    // That of this upgrade is damaged: what is whole stays beside it.
    std::ofstream(kept.file(k_now, "/backup.json")) << "{";
    CHECK(kept.prune(k_now, 1) == "nothing was removed");
    std::ofstream(kept.file(k_last, "/backup.json")) << "{";
    kept.age(k_last, 30);
    CHECK(kept.prune(k_now, 1) == "removed 1 old backup");
    CHECK(kept.names() == Names{k_oldest, k_now});
    std::ofstream(kept.file(k_oldest, "/backup.json")) << "{";
    CHECK(kept.prune(k_now, 1) == "nothing was removed");
}

TEST_CASE("damaged ones do not count as kept") {
    Kept kept;
    kept.add(k_oldest, 90, "snapshot of 90 days");
    kept.add(k_older, 60, "snapshot of 60 days");
    kept.add(k_last, 30, "snapshot of 30 days");
    kept.add(k_now, 0, "snapshot of now");
    std::filesystem::remove(kept.file(k_last, "/etcd.db"));
    kept.age(k_last, 30);
    CHECK(kept.prune(k_now) == "removed 2 old backups");
    CHECK(kept.names() == Names{k_older, k_now});
}

TEST_CASE("nothing is removed while the data of etcd is restored") {
    Kept kept;
    kept.add(k_last, 30);
    kept.add(k_now, 0);
    kept.write("/var/lib/kmm-node/etcd-restore/run-1/phase", "stopped\n");
    CHECK(prune_code_of([&] { static_cast<void>(kept.prune(k_now, 1)); }) == "etcd-restore-under-way");
    CHECK(kept.names() == Names{k_last, k_now});
}
}

}  // namespace kmm::kubeadm
