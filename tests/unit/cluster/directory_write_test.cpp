// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "api/labels.hpp"
#include "cluster/folder/directory_store.hpp"
#include "unit/cluster/tree.hpp"

using namespace kmm;
using namespace kmm::cluster;
using test::Tree;

namespace {

/// The real operations; something happens, or fails, right before one of them.
class HookedOps final : public sys::FileOps {
public:
    std::function<void(int)> before = [](int) {};  ///< called with the operation's number, from 1
    int count = 0;

    int create(const std::string& path, unsigned mode) override { return next(), inner_.create(path, mode); }
    int open_append(const std::string& path) override { return next(), inner_.open_append(path); }
    void write(int fd, std::string_view bytes) override { next(), inner_.write(fd, bytes); }
    void sync(int fd) override { next(), inner_.sync(fd); }
    void rename(const std::string& from, const std::string& to) override { next(), inner_.rename(from, to); }
    void sync_dir(const std::string& directory) override { next(), inner_.sync_dir(directory); }

private:
    void next() { before(++count); }
    sys::LinuxFileOps inner_;
};

api::NodeModule entry(const std::string& version, const std::string& boot_id = "") {
    api::NodeModule module;
    module.name = "hello";
    module.namespace_ = "drivers";
    module.service_account_name = "default";
    module.version = version;
    module.boot_id = boot_id;
    module.config.edit().container_image = "quay.io/x/y:" + version;
    module.config.edit().image_pull_policy = "IfNotPresent";
    module.config.edit().kernel_version = "6.1.0-1-amd64";
    module.config.edit().modprobe.module_name = "kmm_hello";
    module.config.edit().modprobe.dir_name = "/opt";
    return module;
}

std::string code_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.code() + (error.is_retryable() ? " retryable " : " ") +
               std::to_string(static_cast<int>(error.exit()));
    }
    return "done";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_SUITE("cluster::directory_write") {
    TEST_CASE("labels change, everything else stays to the byte") {
        const Tree tree;
        tree.put("own/place.yml", test::k_node_a);
        std::filesystem::permissions(tree.path("own/place.yml"), std::filesystem::perms(0640));
        HookedOps ops;
        DirectoryStore store(tree.path(), ops);
        store.patch_node_labels(
            "node-a", {{"kmm.node.kubernetes.io/version-module.drivers.hello", "v2"}, {"absent", std::nullopt}},
            {{"zone", "eu"}, {"kmm.node.kubernetes.io/version-module.drivers.hello", std::nullopt}});
        const auto with_label =
            replaced(test::k_node_a, "# do not move\n",
                     "# do not move\n    kmm.node.kubernetes.io/version-module.drivers.hello: v2\n");
        CHECK(tree.get("own/place.yml") == with_label);
        CHECK(std::filesystem::status(tree.path("own/place.yml")).permissions() == std::filesystem::perms(0640));
        CHECK(tree.names() == "own/place.yml ");
        store.patch_node_labels("node-a", {{"kmm.node.kubernetes.io/version-module.drivers.hello", std::nullopt}}, {});
        CHECK(tree.get("own/place.yml") == test::k_node_a);
    }

    TEST_CASE("what is already so writes nothing") {
        const Tree tree;
        tree.put("a.yaml", test::k_node_a);
        HookedOps ops;
        DirectoryStore store(tree.path(), ops);
        store.patch_node_labels("node-a", {{"zone", "eu"}, {"x", std::nullopt}}, {{"zone", "us"}});
        store.put_node_info("node-a", "6.1.0-1-amd64", "", "");
        store.put_node_module("node-a", "drivers", "hello", std::optional<api::NodeModule>(),
                              std::optional<api::NodeModule>());
        CHECK(ops.count == 0);
        CHECK(tree.names() == "a.yaml ");
    }

    TEST_CASE("a label that differs from what was expected stops the write") {
        const Tree tree;
        tree.put("a.yaml", test::k_node_a);
        HookedOps ops;
        DirectoryStore store(tree.path(), ops);
        CHECK(code_of([&] { store.patch_node_labels("node-a", {{"zone", "us"}}, {{"zone", "asia"}}); }) ==
              "conflict retryable 75");
        CHECK(code_of([&] { store.patch_node_labels("node-a", {{"x", "1"}}, {{"zone", std::nullopt}}); }) ==
              "conflict retryable 75");
        CHECK(code_of([&] { store.patch_node_labels("node-a", {{"x", "1"}}, {{"other", "1"}}); }) ==
              "conflict retryable 75");
        CHECK(ops.count == 0);
        CHECK(tree.get("a.yaml") == test::k_node_a);
    }

    TEST_CASE("an edit between the reading and the rename is never lost") {
        const std::string edited = replaced(test::k_node_a, "zone: eu", "zone: us");
        for (int step = 1; step <= 4; ++step) {
            CAPTURE(step);
            const Tree tree;
            tree.put("a.yaml", test::k_node_a);
            HookedOps ops;
            ops.before = [&](int number) {
                if (number == step) tree.put("a.yaml", edited);
            };
            DirectoryStore store(tree.path(), ops);
            const auto outcome = code_of([&] { store.patch_node_labels("node-a", {{"x", "1"}}, {}); });
            if (step < 4) {
                CHECK(outcome == "conflict retryable 75");
                CHECK(tree.get("a.yaml") == edited);
                ops.before = [](int) {};
                store.patch_node_labels("node-a", {{"x", "1"}}, {});
                CHECK(tree.get("a.yaml") == replaced(edited, "# do not move\n", "# do not move\n    x: \"1\"\n"));
            }
            CHECK(tree.names() == "a.yaml ");
        }
    }

    TEST_CASE("an edit before the write is kept, a moved file is found, a vanished one is said") {
        const Tree tree;
        tree.put("a.yaml", test::k_node_a);
        HookedOps ops;
        DirectoryStore store(tree.path(), ops);
        (void)store.read();
        const auto edited = replaced(test::k_node_a, "# rack 7", "# rack 8");
        std::filesystem::remove(tree.path("a.yaml"));
        tree.put("nodes/b.yaml", edited);
        store.patch_node_labels("node-a", {{"zone", "us"}}, {{"zone", "eu"}});
        CHECK(tree.get("nodes/b.yaml") == replaced(edited, "zone: eu", "zone: us"));
        std::filesystem::remove(tree.path("nodes/b.yaml"));
        CHECK(code_of([&] { store.patch_node_labels("node-a", {{"x", "1"}}, {}); }) == "node-not-found 66");
        tree.put("a.yaml", "a: [\n");
        CHECK(code_of([&] { store.put_node_info("node-a", "k", "b", "amd64"); }) == "yaml-syntax 65");
        CHECK(code_of([&] { store.put_node_module("node-a", "n", "m", std::optional(entry("v1")), std::nullopt); }) ==
              "yaml-syntax 65");
        CHECK(tree.names() == "a.yaml ");
    }

    TEST_CASE("a failing operation leaves the old or the new file, and no litter") {
        const auto wanted = replaced(test::k_node_a, "zone: eu", "zone: us");
        int last = 0;
        for (int step = 1; step < 10; ++step) {
            CAPTURE(step);
            const Tree tree;
            tree.put("a.yaml", test::k_node_a);
            HookedOps ops;
            ops.before = [&](int number) {
                if (number == step) throw Error(Exit::io, "io", "no space left");
            };
            DirectoryStore store(tree.path(), ops);
            const auto outcome = code_of([&] { store.patch_node_labels("node-a", {{"zone", "us"}}, {}); });
            CHECK(tree.get("a.yaml") == (step < 5 ? test::k_node_a : wanted));
            CHECK(tree.names() == "a.yaml ");
            if (outcome == "done") break;
            CHECK(outcome == "io 74");
            last = step;
        }
        CHECK(last == 5);
    }

    TEST_CASE("a NodeModulesConfig that somebody else has made meanwhile is changed, not made again") {
        const Tree tree;
        tree.put("nodes/node-a.yaml", test::k_node_a);
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        (void)store.read();
        tree.put("theirs.yaml",
                 "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: NodeModulesConfig\nmetadata:\n  name: node-a\n");
        store.put_node_module("node-a", "drivers", "hello", std::optional(entry("v1")), std::nullopt);
        CHECK(tree.names() == "nodes/node-a.yaml theirs.yaml ");
        CHECK(tree.get("theirs.yaml").find("quay.io/x/y:v1") != std::string::npos);
        // One that could not be read is read again once it can be.
        const Tree mended;
        mended.put("nodes/node-a.yaml", test::k_node_a);
        mended.put("theirs.yaml", "a: [\n");
        DirectoryStore other(mended.path(), ops);
        (void)other.read();
        mended.put("theirs.yaml",
                   "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: NodeModulesConfig\nmetadata:\n  name: node-a\n");
        other.put_node_module("node-a", "drivers", "hello", std::optional(entry("v1")), std::nullopt);
        CHECK(mended.names() == "nodes/node-a.yaml theirs.yaml ");
        tree.put("odd.yaml", "a: [\n");
        CHECK(code_of([&] { store.put_node_module("node-b", "n", "m", std::optional(entry("v1")), std::nullopt); }) ==
              "yaml-syntax 65");
    }

    TEST_CASE("a NodeModulesConfig is made, changed and emptied as KMM does it") {
        const Tree tree;
        tree.put("nodes/node-a.yaml", test::k_node_a);
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        const auto configured = api::label_module_configured("drivers", "hello");
        const auto in_use = api::label_module_in_use("drivers", "hello");
        const auto config = [&] {
            const auto snapshot = store.read();
            CHECK(snapshot.diagnostics.empty());
            REQUIRE(snapshot.objects.node_modules_configs.size() == 1);
            return snapshot.objects.node_modules_configs[0];
        };
        store.put_node_module("node-a", "drivers", "hello", std::optional(entry("v1")), std::nullopt);
        CHECK(tree.names() == "nodemodulesconfigs/node-a.yaml nodes/node-a.yaml ");
        CHECK(config().meta.name == "node-a");
        CHECK(config().spec == std::vector{entry("v1")});
        CHECK(config().status.empty());
        CHECK(config().meta.labels == api::Labels{{configured, ""}, {in_use, ""}});

        store.put_node_module("node-a", "drivers", "hello", std::nullopt, std::optional(entry("v1", "b-1")));
        CHECK(config().status == std::vector{entry("v1", "b-1")});
        auto other = entry("v9");
        other.name = "other";
        store.put_node_module("node-a", "drivers", "other", std::optional(other), std::nullopt);
        store.put_node_module("node-a", "drivers", "hello", std::optional(entry("v2")), std::nullopt);
        CHECK(config().spec == std::vector{entry("v2"), other});

        store.put_node_module("node-a", "drivers", "hello", std::optional<api::NodeModule>(), std::nullopt);
        CHECK(config().spec == std::vector{other});
        CHECK(config().meta.labels.count(configured) == 0);
        CHECK(config().meta.labels.count(in_use) == 1);
        store.put_node_module("node-a", "drivers", "hello", std::nullopt, std::optional<api::NodeModule>());
        CHECK(config().status.empty());
        CHECK(config().meta.labels.count(in_use) == 0);
        const auto before = tree.get("nodemodulesconfigs/node-a.yaml");
        store.put_node_module("node-a", "drivers", "other", std::optional(other), std::nullopt);
        CHECK(tree.get("nodemodulesconfigs/node-a.yaml") == before);
    }

    TEST_CASE("a hand-written NodeModulesConfig keeps its comments and fields") {
        const Tree tree;
        tree.put("x.yaml",
                 "# by hand\napiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: NodeModulesConfig\nmetadata:\n  name: node-a "
                 "# n\n");
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        store.put_node_module("node-a", "drivers", "hello", std::optional(entry("v1")), std::nullopt);
        CHECK(tree.get("x.yaml").find("# by hand\napiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: "
                                      "NodeModulesConfig\nmetadata:\n  name: node-a # n\n") == 0);
        const auto snapshot = store.read();
        CHECK(snapshot.diagnostics.empty());
        REQUIRE(snapshot.objects.node_modules_configs.size() == 1);
        CHECK(snapshot.objects.node_modules_configs[0].spec == std::vector{entry("v1")});
    }

    TEST_CASE("documents that cannot be changed in their text are found without a change") {
        const Tree tree;
        tree.put("nodes/a.yaml",
                 "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  annotations: &same\n    x: y\n  labels: *same\n");
        tree.put("nodes/b.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: b}\n");
        const auto before = tree.get("nodes/a.yaml") + tree.get("nodes/b.yaml");
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        CHECK(code_of([&] { store.check_editable({"b", "unknown"}, "l/v"); }) == "done");
        CHECK(code_of([&] { store.check_editable({"b", "a"}, "l/v"); }) == "cannot-edit 65");
        CHECK(tree.get("nodes/a.yaml") + tree.get("nodes/b.yaml") == before);
    }

    TEST_CASE("a foreign file in the place of a new object is not overwritten") {
        const Tree tree;
        tree.put("nodemodulesconfigs/node-a.yaml", test::k_node_a);
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        CHECK(code_of([&] { store.put_node_module("node-a", "n", "m", std::optional(entry("v1")), std::nullopt); }) ==
              "conflict 75");
        CHECK(tree.get("nodemodulesconfigs/node-a.yaml") == test::k_node_a);
        CHECK(code_of([&] { store.put_node_module("../x", "n", "m", std::optional(entry("v1")), std::nullopt); }) ==
              "bad-value 65");
    }

    TEST_CASE("node facts are written as a kubelet would") {
        const Tree tree;
        tree.put("a.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n");
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        store.put_node_info("a", "6.1.0-2", "boot-1", "amd64");
        const auto snapshot = store.read();
        CHECK(snapshot.objects.nodes.at(0).kernel_version == "6.1.0-2");
        CHECK(snapshot.objects.nodes.at(0).boot_id == "boot-1");
        CHECK(snapshot.objects.nodes.at(0).architecture == "amd64");
    }

    TEST_CASE("the write goes through a link, not over it") {
        const Tree tree;
        tree.put(".real/a.yaml", test::k_node_a);
        std::filesystem::create_symlink(".real/a.yaml", tree.path("a.yaml"));
        sys::LinuxFileOps ops;
        DirectoryStore(tree.path(), ops).patch_node_labels("node-a", {{"zone", "us"}}, {});
        CHECK(std::filesystem::is_symlink(tree.path("a.yaml")));
        CHECK(tree.get(".real/a.yaml") == replaced(test::k_node_a, "zone: eu", "zone: us"));
    }

    TEST_CASE("the identity is made once and kept") {
        const Tree tree;
        tree.put("a.yaml", test::k_node_a);
        tree.put(".a.yaml.999999999-1.kmm-tmp", "left by a killed process");
        tree.put(".a.yaml.999999999-2.kmm-tmp", "being written by a process of another pid namespace");
        std::filesystem::last_write_time(tree.path(".a.yaml.999999999-1.kmm-tmp"),
                                         std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        CHECK(store.identity(false) == "");
        CHECK(tree.names() == ".a.yaml.999999999-1.kmm-tmp .a.yaml.999999999-2.kmm-tmp a.yaml ");
        const auto id = store.identity(true);
        CHECK(id.size() == 36);
        CHECK(tree.names() == ".a.yaml.999999999-2.kmm-tmp .kmm-cluster-id a.yaml ");
        CHECK(store.identity(true) == id);
        CHECK(DirectoryStore(tree.path(), ops).identity(false) == id);
        tree.put(".kmm-cluster-id", "garbage");
        CHECK(code_of([&] { (void)store.identity(true); }) == "bad-cluster-id 78");
    }

    TEST_CASE("many threads, one store: every label arrives") {
        const Tree tree;
        tree.put("a.yaml", test::k_node_a);
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back(
                [&store, i] { store.patch_node_labels("node-a", {{"l" + std::to_string(i), "x"}}, {}); });
        }
        for (auto& thread : threads) thread.join();
        CHECK(store.read().objects.nodes.at(0).meta.labels.size() == 9);
    }
}
