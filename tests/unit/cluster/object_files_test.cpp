// SPDX-License-Identifier: Apache-2.0
// Which files below a directory are read, and where the walk ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "api/codec.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/folder/object_files.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/input_deadline.hpp"
#include "sys/signals.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

std::string labelled_node(const std::string& name) {
    return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {is: x}}\n";
}

void put(const std::string& path, const std::string& text) {
    sys::make_directories(sys::parent_of(path), 0755);
    std::ofstream(path) << text;
}

}  // namespace

TEST_SUITE("cluster::unit") {
    TEST_CASE("links in a directory are followed, as those of a mounted ConfigMap; one that leads nowhere is a fault") {
        const sys::TempDir top("kmm-documents");
        put(top.path() + "/..data/a.yaml", labelled_node("a"));
        put(top.path() + "/elsewhere/b.yaml", labelled_node("b"));
        std::filesystem::create_symlink("..data/a.yaml", top.path() + "/a.yaml");
        std::filesystem::create_symlink("elsewhere", top.path() + "/more");
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path()}, objects, diagnostics));
        api::finish(objects, diagnostics);
        CHECK(diagnostics.empty());
        CHECK(objects.nodes.size() == 2);
        std::filesystem::create_symlink("nowhere", top.path() + "/dead.yaml");
        std::filesystem::create_symlink("..", top.path() + "/elsewhere/loop");
        static_cast<void>(cluster::read_documents({top.path() + "/"}, objects, diagnostics));
        REQUIRE(diagnostics.size() == 2);
        CHECK(diagnostics[0].code == "unreadable-file");
        CHECK(diagnostics[0].position->file == top.path() + "/dead.yaml");
        CHECK(diagnostics[1].code == "symlink-loop");
    }

    TEST_CASE("links that leave the directory are faults, unless what they lead to is read for itself") {
        const sys::TempDir top("kmm-documents");
        put(top.path() + "/in/..data/a.yaml", labelled_node("a"));
        put(top.path() + "/elsewhere/b.yaml", labelled_node("b"));
        std::filesystem::create_symlink("..data/a.yaml", top.path() + "/in/a.yaml");
        std::filesystem::create_symlink("../elsewhere/b.yaml", top.path() + "/in/b.yaml");
        std::filesystem::create_symlink("../elsewhere", top.path() + "/in/more");
        std::filesystem::create_symlink("../elsewhere/b.yaml", top.path() + "/in/notes.txt");
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path() + "/in"}, objects, diagnostics));
        CHECK(objects.nodes.size() == 1);
        REQUIRE(diagnostics.size() == 2);
        CHECK(diagnostics[0].code == "link-leaves");
        CHECK(diagnostics[0].severity == Severity::error);
        CHECK(diagnostics[0].position->file == top.path() + "/in/b.yaml");
        CHECK(diagnostics[1].position->file == top.path() + "/in/more");

        diagnostics.clear();
        objects = {};
        static_cast<void>(
            cluster::read_documents({top.path() + "/in", top.path() + "/elsewhere"}, objects, diagnostics));
        CHECK(diagnostics.empty());
        CHECK(objects.nodes.size() == 2);

        // Nothing is read for itself here.
        std::filesystem::create_symlink("/proc/self", top.path() + "/in/proc");
        static_cast<void>(cluster::object_files(top.path() + "/in", diagnostics));
        CHECK(std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& fault) {
            return fault.code == "link-leaves" && fault.position->file.ends_with("/in/proc");
        }));
    }

    TEST_CASE("the walk through a directory ends with the limit of time, and with a signal") {
        const sys::TempDir top("kmm-documents");
        put(top.path() + "/in/a.yaml", labelled_node("a"));
        Diagnostics diagnostics;
        const auto code = [&]() -> std::string {
            try {
                static_cast<void>(cluster::object_files(top.path(), diagnostics));
                return "";
            } catch (const Error& error) { return error.code(); }
        };
        CHECK(code().empty());
        sys::limit_input_waits(std::chrono::milliseconds(0));
        CHECK(code() == "timeout");
        sys::limit_input_waits(sys::k_patient);
        sys::request_interrupt(SIGTERM);
        CHECK(code() == "interrupted");
        sys::clear_interrupt();
        CHECK(code().empty());
        CHECK(diagnostics.empty());
    }
}
