// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "api/codec.hpp"
#include "cluster/documents.hpp"
#include "cluster/object_facts.hpp"
#include "sys/directory.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

std::string node_text(const std::string& name, const std::string& label = "x") {
    return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {is: " + label + "}}\n";
}

void write(const std::string& path, const std::string& text) {
    sys::make_directories(sys::parent_of(path), 0755);
    std::ofstream(path) << text;
}

}  // namespace

TEST_SUITE("cluster::unit") {
    TEST_CASE("a directory stands for its documents at any depth, hidden ones left out") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/b.yaml", node_text("b"));
        write(top.path() + "/deep/er/a.yml", node_text("a"));
        write(top.path() + "/c.json", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"c"}})");
        write(top.path() + "/.hidden.yaml", "nonsense: [");
        write(top.path() + "/.git/x.yaml", "nonsense: [");
        write(top.path() + "/readme.txt", "nonsense: [");
        api::Objects objects;
        Diagnostics diagnostics;
        const auto files = cluster::read_documents({top.path()}, objects, diagnostics);
        api::finish(objects, diagnostics);
        CHECK(diagnostics.empty());
        CHECK(files.size() == 3);
        REQUIRE(objects.nodes.size() == 3);
        CHECK(objects.nodes[0].meta.name == "a");
    }

    TEST_CASE("links in a directory are followed, as those of a mounted ConfigMap; one that leads nowhere is a fault") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/in/..data/a.yaml", node_text("a"));
        write(top.path() + "/elsewhere/b.yaml", node_text("b"));
        std::filesystem::create_symlink("..data/a.yaml", top.path() + "/in/a.yaml");
        std::filesystem::create_symlink("../elsewhere", top.path() + "/in/more");
        std::filesystem::create_symlink("../elsewhere", top.path() + "/in/twice");
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path() + "/in"}, objects, diagnostics));
        api::finish(objects, diagnostics);
        CHECK(diagnostics.empty());
        CHECK(objects.nodes.size() == 2);
        std::filesystem::create_symlink("nowhere", top.path() + "/in/dead.yaml");
        std::filesystem::create_symlink("..", top.path() + "/in/loop");
        static_cast<void>(cluster::read_documents({top.path() + "/in/"}, objects, diagnostics));
        REQUIRE(diagnostics.size() == 2);
        CHECK(diagnostics[0].code == "unreadable-file");
        CHECK(diagnostics[0].position->file == top.path() + "/in/dead.yaml");
        CHECK(diagnostics[1].code == "symlink-loop");
    }

    TEST_CASE("faults of all files come at once") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/bad.yaml", "a: [");
        write(top.path() + "/good.yaml", node_text("a"));
        sys::make_directories(top.path() + "/empty", 0755);
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path() + "/absent.yaml", top.path() + "/bad.yaml",
                                                   top.path() + "/empty", top.path() + "/good.yaml"},
                                                  objects, diagnostics));
        REQUIRE(diagnostics.size() == 3);
        CHECK(diagnostics[0].code == "file-not-found");
        CHECK(diagnostics[0].exit == Exit::not_found);
        CHECK(diagnostics[1].code == "yaml-syntax");
        CHECK(diagnostics[2].code == "no-documents");
        CHECK(diagnostics[2].severity == Severity::warning);
        CHECK(objects.nodes.size() == 1);
    }

    TEST_CASE("a file that is named twice is read once") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/a.yaml", node_text("a"));
        api::Objects objects;
        Diagnostics diagnostics;
        const auto files =
            cluster::read_documents({top.path() + "/a.yaml", top.path() + "/a.yaml"}, objects, diagnostics);
        CHECK(files.size() == 1);
        CHECK(objects.nodes.size() == 1);
    }

    TEST_CASE("an overlay replaces and adds") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/base.yaml", node_text("a") + "---\n" + node_text("b"));
        write(top.path() + "/over.yaml", node_text("b", "new") + "---\n" + node_text("c"));
        api::Objects base, over;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path() + "/base.yaml"}, base, diagnostics));
        static_cast<void>(cluster::read_documents({top.path() + "/over.yaml"}, over, diagnostics));
        api::finish(base, diagnostics);
        api::finish(over, diagnostics);
        cluster::overlay(base, std::move(over));
        REQUIRE(base.nodes.size() == 3);
        CHECK(base.nodes[0].meta.name == "a");
        CHECK(base.nodes[1].meta.labels.at("is") == "new");
        CHECK(base.nodes[2].meta.name == "c");
    }

    TEST_CASE("facts of an object that has them, and of one that has not") {
        using value::Node;
        const auto with = [](const char* status) {
            const Node condition = Node::mapping({{"type", "Ready"}, {"status", status}});
            return Node::mapping(
                {{"metadata", Node::mapping({{"annotations", Node::mapping({{"a/b", "c"}})}})},
                 {"status",
                  Node::mapping({{"conditions", Node::sequence({Node::mapping({{"type", "Other"}}), condition})}})}});
        };
        CHECK(cluster::is_ready(with("True")));
        CHECK_FALSE(cluster::is_ready(with("Unknown")));
        CHECK_FALSE(cluster::is_ready(Node::mapping()));
        CHECK(cluster::condition_of(with("True"), "None") == nullptr);
        CHECK(cluster::annotation_of(with("True"), "a/b") == "c");
        CHECK(cluster::annotation_of(with("True"), "b").empty());
        CHECK(cluster::annotation_of(Node(), "b").empty());
    }
}
