// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/file_cache.hpp"

#include <doctest/doctest.h>

#include "cluster/folder/directory_store.hpp"
#include "sys/file_ops.hpp"
#include "unit/cluster/tree.hpp"

using namespace kmm;
using namespace kmm::cluster;

TEST_SUITE("cluster::unit") {
    TEST_CASE("what was asked for last is kept, as much as may weigh together") {
        Recent<int> recent(10);
        recent.put("a", 1, 4);
        recent.put("b", 2, 4);
        CHECK(*recent.find("a") == 1);
        recent.put("c", 3, 4);
        CHECK(recent.find("b") == nullptr);
        CHECK(*recent.find("a") == 1);
        CHECK(recent.put("a", 7, 2) == 7);
        recent.put("d", 4, 4);
        CHECK(*recent.find("c") == 3);
        CHECK(*recent.find("a") == 7);
        recent.erase_if([](const std::string& file) { return file == "c"; });
        CHECK(recent.find("c") == nullptr);
        CHECK(recent.put("huge", 9, 99) == 9);
        CHECK(recent.find("a") == nullptr);
        recent.put("e", 5, 1);
        CHECK(recent.find("huge") == nullptr);
        CHECK(*recent.find("e") == 5);
    }

    TEST_CASE("bytes that are others are read again, the same ones are not") {
        FileCache cache;
        const auto& text = test::k_node_a;
        const auto first = cache.document("n.yaml", text);
        REQUIRE(first);
        CHECK(cache.document("n.yaml", text) == first);
        auto other = text;
        other.replace(other.find("zone: eu"), 8, "zone: us");
        const auto second = cache.document("n.yaml", other);
        REQUIRE(second);
        CHECK(second->root.get_string({"metadata", "labels", "zone"}) == "us");
        api::Objects objects;
        Diagnostics faults;
        cache.append("n.yaml", other, objects, faults);
        cache.append("n.yaml", text, objects, faults);
        CHECK(faults.empty());
        REQUIRE(objects.nodes.size() == 2);
        CHECK(objects.nodes[0].meta.labels.at("zone") == "us");
        CHECK(objects.nodes[1].meta.labels.at("zone") == "eu");
        CHECK(objects.nodes[0].meta.origin.file == "n.yaml");
        CHECK_FALSE(cache.document("n.yaml", text + "---\n" + other));
        CHECK_THROWS_AS(static_cast<void>(cache.document("n.yaml", "a: [\n")), Error);
    }

    TEST_CASE("a file that is named as JSON and is none stays a fault after it was looked at as a tree") {
        const test::Tree tree;
        tree.put("a.json", test::k_node_a);
        FileCache cache;
        REQUIRE(cache.document("a.json", test::k_node_a));
        api::Objects objects;
        Diagnostics faults;
        cache.append("a.json", test::k_node_a, objects, faults);
        CHECK(has_errors(faults));
        CHECK(objects.nodes.empty());
    }

    TEST_CASE("a change is what the next look finds, also where somebody else changes the file as well") {
        const test::Tree tree;
        tree.put("nodes/a.yaml", test::k_node_a);
        sys::LinuxFileOps ops;
        DirectoryStore store(tree.path(), ops);
        (void)store.read();
        const auto zone = [&] {
            return store.read_about({"node-a", "", ""}).objects.nodes.at(0).meta.labels.at("zone");
        };
        for (const auto* wanted : {"us", "eu", "us"}) {
            store.patch_node_labels("node-a", {{"zone", wanted}}, {});
            CHECK(zone() == wanted);
            auto text = tree.get("nodes/a.yaml");
            text.replace(text.find("zone: ") + 6, 2, "ap");
            tree.put("nodes/a.yaml", text);
            CHECK(zone() == "ap");
        }
    }
}
