// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "cluster/folder/directory_store.hpp"
#include "unit/cluster/tree.hpp"

using namespace kmm;
using namespace kmm::cluster;
using test::Tree;

namespace {

std::string bare_node_text(const std::string& name) {
    return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\n";
}

/// "FILE:LINE:COL code" lines, FILE relative to the tree.
std::string faults_of(const Snapshot& snapshot, const Tree& tree) {
    std::string out;
    for (const auto& d : snapshot.diagnostics) {
        REQUIRE(d.position);
        auto place = d.position->to_string();
        if (place.find(tree.path() + "/") == 0) place = place.substr(tree.path().size() + 1);
        out += place + " " + d.code + "\n";
    }
    return out;
}

std::string node_names(const Snapshot& snapshot) {
    std::string out;
    for (const auto& node : snapshot.objects.nodes) out += node.meta.name + " ";
    return out;
}

/// Runs `body` in a child without root's rights; its result is the exit code.
int without_root(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(99);
        int code = 98;
        try {
            code = body();
        } catch (const std::exception&) {
            code = 97;
        }
        ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}

}  // namespace

TEST_SUITE("cluster::directory_read") {
    TEST_CASE("objects are found by kind and name wherever they lie") {
        const Tree tree;
        tree.put("nodes/node-a.yaml", test::k_node_a);
        tree.put("my/own/place.yml", "---\n" + bare_node_text("node-b"));
        tree.put("c.json", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"node-c"}})");
        tree.put("secrets/ns/s.yaml",
                 "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\ntype: Opaque\n");
        tree.put("empty.yaml", "# nothing yet\n");
        tree.put("README.md", "not: [yaml\n");
        tree.put(".git/x.yaml", "a: [\n");
        tree.put("nodes/.node-a.yaml.swp.yaml", "a: [\n");
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path() + "/", ops);
        const auto snapshot = store.read();
        CHECK(faults_of(snapshot, tree) == "");
        CHECK(node_names(snapshot) == "node-a node-b node-c ");
        CHECK(snapshot.objects.secrets.size() == 1);
        CHECK(snapshot.objects.nodes[0].meta.origin.file == tree.path("nodes/node-a.yaml"));
        CHECK(store.describe() == "directory " + tree.path());
    }

    TEST_CASE("every reading sees the files as they are, whatever their times say") {
        namespace fs = std::filesystem;
        const Tree tree;
        tree.put("a.yaml", bare_node_text("node-a"));
        tree.put("b.yaml", bare_node_text("node-b"));
        tree.put("bad.yaml", "a: [\n");
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        CHECK(node_names(store.read()) == "node-a node-b ");
        CHECK(node_names(store.read()) == "node-a node-b ");
        CHECK(faults_of(store.read(), tree) == "bad.yaml:2:1 yaml-syntax\n");
        // Another text of the same length, the same file, the same time.
        const auto time = fs::last_write_time(tree.path("a.yaml"));
        tree.put("a.yaml", bare_node_text("node-x"));
        fs::last_write_time(tree.path("a.yaml"), time);
        tree.put("bad.yaml", bare_node_text("node-c"));
        fs::rename(tree.path("b.yaml"), tree.path("d.yaml"));
        const auto snapshot = store.read();
        CHECK(node_names(snapshot) == "node-b node-c node-x ");
        CHECK(faults_of(snapshot, tree) == "");
        CHECK(snapshot.objects.nodes[0].meta.origin.file == tree.path("d.yaml"));
        fs::remove(tree.path("d.yaml"));
        CHECK(node_names(store.read()) == "node-c node-x ");
    }

    TEST_CASE("one node and one Module are read as they are, and without the others") {
        namespace fs = std::filesystem;
        const Tree tree;
        const auto config = [](const std::string& name, const std::string& version) {
            return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: NodeModulesConfig\nmetadata: {name: " + name +
                   "}\nspec:\n  modules:\n    - name: km\n      namespace: ns\n      serviceAccountName: default\n     "
                   " version: " +
                   version +
                   "\n      config: {kernelVersion: '6.1', containerImage: 'r.example/km:1', imagePullPolicy: Always, "
                   "insecurePull: false, modprobe: {moduleName: km}}\n";
        };
        const auto module = [](const std::string& name) {
            return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: " + name +
                   ", namespace: ns}\nspec:\n  moduleLoader:\n"
                   "    container:\n      modprobe: {moduleName: " +
                   name +
                   "}\n"
                   "      kernelMappings: [{regexp: '^.+$', containerImage: 'r.example/km:1'}]\n  selector: {role: "
                   "worker}\n";
        };
        tree.put("a.yaml", bare_node_text("node-a"));
        tree.put("b.yaml", bare_node_text("node-b"));
        tree.put("m.yaml", module("km"));
        tree.put("n.yaml", module("kn"));
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        const auto about = [&] { return store.read_about({"node-a", "ns", "km"}); };
        CHECK(node_names(about()) == "node-a node-b ");  // the first reading takes everything
        auto snapshot = about();
        CHECK(node_names(snapshot) == "node-a ");
        CHECK(snapshot.objects.node_modules_configs.empty());
        REQUIRE(snapshot.objects.modules.size() == 1);
        CHECK(node_names(store.read_about({"", "ns", "km"})).empty());

        // What others change meanwhile is seen: a new NodeModulesConfig, other text, a file that was moved.
        tree.put("nodemodulesconfigs/node-a.yaml", config("node-a", "v1"));
        snapshot = about();
        REQUIRE(snapshot.objects.node_modules_configs.size() == 1);
        CHECK(snapshot.objects.node_modules_configs[0].spec.at(0).version == "v1");
        tree.put("nodemodulesconfigs/node-a.yaml", config("node-a", "v2"));
        snapshot = about();
        CHECK(node_names(snapshot) == "node-a ");
        CHECK(snapshot.objects.node_modules_configs.at(0).spec.at(0).version == "v2");
        fs::rename(tree.path("a.yaml"), tree.path("c.yaml"));
        CHECK(node_names(about()) == "node-a node-b ");
        CHECK(node_names(about()) == "node-a ");

        // Faults of other files matter to nobody here; those of its own files do, and so do all when it is not found.
        tree.put("b.yaml", "a: [\n");
        CHECK(faults_of(about(), tree) == "");
        tree.put("m.yaml", "a: [\n");
        snapshot = about();
        CHECK(snapshot.objects.modules.size() == 1);  // kn
        CHECK(faults_of(snapshot, tree) == "b.yaml:2:1 yaml-syntax\nm.yaml:2:1 yaml-syntax\n");
        tree.put("m.yaml", module("km"));
        tree.put("b.yaml", bare_node_text("node-b"));
        tree.put("c.yaml", bare_node_text("node-x"));
        snapshot = about();
        CHECK(node_names(snapshot) == "node-b node-x ");
        CHECK(faults_of(snapshot, tree) == "");
    }

    TEST_CASE("all faults of all files come at once, each with its place") {
        const Tree tree;
        tree.put("a.yaml", "a: [\n");
        tree.put("b.yaml", bare_node_text("x") + "---\n" + bare_node_text("w"));
        tree.put("c.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
        tree.put("d.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: z\n  name: w\n  lables: {}\n");
        tree.put("e/f.json", "{\"kind\": }");
        tree.put("n1.yaml", bare_node_text("same"));
        tree.put("n2.yaml", bare_node_text("same"));
        std::filesystem::create_symlink("nowhere", tree.path("g.yaml"));
        std::filesystem::create_symlink("h.yaml", tree.path("h.yaml"));
        std::filesystem::create_directory_symlink("..", tree.path("e/up"));
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        const auto snapshot = store.read();
        CHECK(faults_of(snapshot, tree) ==
              "a.yaml:2:1 yaml-syntax\nb.yaml:5:1 one-object-per-file\nc.yaml:1:1 one-object-per-file\nd.yaml:5:3 "
              "duplicate-key\n"
              "d.yaml:6:3 unknown-field\ne/f.json:1:10 json-syntax\ne/up symlink-loop\ng.yaml unreadable-file\nh.yaml "
              "unreadable-file\n"
              "n2.yaml:1:1 duplicate-object\n");
        CHECK(Error::from_diagnostics(snapshot.diagnostics).exit() == Exit::data);
    }

    TEST_CASE("a link to a file or a directory is followed once") {
        const Tree tree;
        tree.put("real/n.yaml", bare_node_text("m"));
        std::filesystem::create_symlink("real/n.yaml", tree.path("a.yaml"));
        std::filesystem::create_directory_symlink("real", tree.path("other"));
        sys::LinuxFileOps ops;
        const auto snapshot = DirectoryStore(tree.path(), ops).read();
        CHECK(faults_of(snapshot, tree) == "");
        CHECK(node_names(snapshot) == "m ");
    }

    TEST_CASE("links that multiply the paths to a directory are walked in no time") {
        const Tree tree;
        tree.put("end/n.yaml", bare_node_text("m"));
        std::string next = "end";
        for (int level = 0; level < 28; ++level) {
            const auto name = "level-" + std::to_string(level);
            std::filesystem::create_directory(tree.path(name));
            for (const auto* link : {"/one", "/two", "/three"})
                std::filesystem::create_directory_symlink("../" + next, tree.path(name + link));
            next = name;
        }
        sys::LinuxFileOps ops;
        const auto snapshot = DirectoryStore(tree.path(), ops).read();
        CHECK(faults_of(snapshot, tree) == "");
        CHECK(node_names(snapshot) == "m ");
    }

    TEST_CASE("no directory: exit 66 and what one looks like") {
        const Tree tree;
        tree.put("file", "x");
        sys::LinuxFileOps ops;
        for (const std::string name : {"absent", "file", "file/below"}) {
            CAPTURE(name);
            try {
                (void)DirectoryStore(tree.path(name), ops).read();
                FAIL_CHECK("read");
            } catch (const Error& error) {
                CHECK(error.exit() == Exit::not_found);
                CHECK(error.code() == "cluster-not-found");
                CHECK(error.hint().find("nodes/") != std::string::npos);
            }
        }
    }

    TEST_CASE("a pipe is a fault, and nobody waits for its other end") {
        const Tree tree;
        tree.put("nodes/a.yaml", bare_node_text("a"));
        REQUIRE(::mkfifo((tree.path() + "/nodes/pipe.yaml").c_str(), 0600) == 0);
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        const auto snapshot = store.read();
        REQUIRE(snapshot.diagnostics.size() == 1);
        CHECK(snapshot.diagnostics[0].code == "unreadable-file");
        CHECK(snapshot.diagnostics[0].position->file == tree.path() + "/nodes/pipe.yaml");
        CHECK(snapshot.objects.nodes.size() == 1);
    }

    TEST_CASE("what must not be read or written is said before anything happens") {
        const Tree tree;
        tree.put("nodes/a.yaml", bare_node_text("a"));
        tree.put("secret.yaml", bare_node_text("b"));
        tree.put("closed/x.yaml", bare_node_text("c"));
        std::filesystem::permissions(std::filesystem::path(tree.path()).parent_path(), std::filesystem::perms(0755));
        std::filesystem::permissions(tree.path("secret.yaml"), std::filesystem::perms(0));
        std::filesystem::permissions(tree.path("closed"), std::filesystem::perms(0));
        std::filesystem::permissions(tree.path(), std::filesystem::perms(0555));
        sys::LinuxFileOps ops;
        CHECK(without_root([&] {
                  DirectoryStore store(tree.path(), ops);
                  const auto snapshot = store.read();
                  if (snapshot.diagnostics.size() != 2 || snapshot.objects.nodes.size() != 1) return 1;
                  for (const auto& d : snapshot.diagnostics) {
                      if (d.code != "unreadable-file" || d.exit != Exit::no_permission) return 2;
                  }
                  try {
                      store.check_writable();
                      return 3;
                  } catch (const Error& error) {
                      if (error.exit() != Exit::no_permission || error.hint().empty()) return 4;
                  }
                  try {
                      store.patch_node_labels("a", {{"x", "1"}}, {});
                      return ::geteuid() == 65534 ? 5 : 0;  // the owner may still write below nodes/
                  } catch (const Error& error) {
                      return error.exit() == Exit::no_permission && !error.hint().empty() ? 0 : 6;
                  }
              }) == 0);
        std::filesystem::permissions(tree.path(), std::filesystem::perms(0755));
        std::filesystem::permissions(tree.path("closed"), std::filesystem::perms(0755));
        CHECK(tree.get("nodes/a.yaml") == bare_node_text("a"));
    }
}
