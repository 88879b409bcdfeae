// SPDX-License-Identifier: Apache-2.0
// Lists as kubectl and the API server print them: read item by item, and with every fault where it is.
#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "api/codec.hpp"
#include "cluster/folder/documents.hpp"
#include "sys/temp_dir.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

struct Read {
    std::string names;   ///< Nodes and Modules with their places
    std::string faults;  ///< CODE LINE:COL of each
};

std::string place(const Position& position) {
    return std::to_string(position.line) + ":" + std::to_string(position.column);
}

Read summarise(api::Objects& objects, Diagnostics& diagnostics) {
    api::finish(objects, diagnostics);
    sort_and_merge(diagnostics);
    Read read;
    for (const auto& node : objects.nodes) {
        read.names += node.meta.name + "@" + place(node.meta.origin) + "=" + node.kernel_version + "," +
                      std::to_string(node.meta.labels.size()) + "," + std::to_string(node.taints.size()) + "," +
                      node.ready.value_or("-") + " ";
    }
    for (const auto& module : objects.modules) {
        read.names += module.full_name() + "@" + place(module.meta.origin) + " ";
    }
    for (const auto& fault : diagnostics) {
        read.faults += fault.code + " " + (fault.position ? place(*fault.position) : "-") + " ";
    }
    return read;
}

Read read_file(const std::string& text) {
    const sys::TempDir top("kmm-lists");
    const std::string path = top.path() + "/list.json";
    std::ofstream(path) << text;
    api::Objects objects;
    Diagnostics diagnostics;
    (void)cluster::read_documents({path}, objects, diagnostics);
    return summarise(objects, diagnostics);
}

/// As a pipe on standard input; the text must fit into a pipe.
Read read_pipe(const std::string& text) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    const int saved = ::dup(STDIN_FILENO);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    api::Objects objects;
    Diagnostics diagnostics;
    (void)cluster::read_documents({"-"}, objects, diagnostics);
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
    return summarise(objects, diagnostics);
}

/// As the readers of whole texts have it.
Read read_whole(const std::string& text) {
    api::Objects objects;
    Diagnostics diagnostics;
    for (const auto& document : value::read_any(text, "f", diagnostics)) api::decode(document, objects, diagnostics);
    return summarise(objects, diagnostics);
}

std::string node(const std::string& name, const std::string& head = R"("apiVersion":"v1","kind":"Node",)",
                 const std::string& more = "") {
    return "{" + head + R"("metadata":{"labels":{"a":"b","c":"d"},"managedFields":[{"x":{"y\"":[1,{}]}}],"name":")" +
           name +
           R"(","uid":"u"},"spec":{"podCIDR":"x","taints":[{"effect":"NoSchedule","key":"k","timeAdded":"t"}]},)" +
           R"("status":{"conditions":[{"type":"Ready","status":"True","message":"m"}],"images":[{"names":["a"],"sizeBytes":12}],)" +
           R"("nodeInfo":{"kernelVersion":"6.1"}})" + more + "}";
}

std::string list(const std::string& items, const std::string& head = R"("apiVersion":"v1",)",
                 const std::string& tail = R"(,"kind":"List")") {
    return "{" + head + "\n\"items\":[" + items + "]\n" + tail + "}\n";
}

const std::string k_module =
    R"({"apiVersion":"kmm.sigs.x-k8s.io/v1beta1","kind":"Module","metadata":{"name":"m","namespace":"n"},)"
    R"("spec":{"selector":{},"modul":{}}})";

}  // namespace

TEST_SUITE("cluster::lists") {
    TEST_CASE("every form of a list is read as the readers of whole texts read it") {
        const std::string bare = R"("x":1,)";
        const std::vector<std::string> texts = {
            list(node("a") + ",\n" + node("b")),
            list(""),
            list(node("a", "") + "," + node("b", ""), R"("kind":"NodeList","apiVersion":"v1","metadata":{},)", ""),
            list(node("a", "") + "," + node("b", ""), R"("metadata":{},)", R"(,"kind":"NodeList","apiVersion":"v1")"),
            list(node("a", "") + "," + node("b")),
            list(node("a"), "", R"(,"kind":"Foo","apiVersion":"v1")"),
            list(node("a"), R"("kind":"Foo","apiVersion":"v1",)", ""),
            list(node("a"), "", ""),
            list(node("a"), R"("apiVersion":"v1",)", R"(,"kind":"List","surplus":1)"),
            list(list(node("a")) + "," + node("b")),
            list(node("a") + "," + node("a")),
            list(node("a") + ",null,1,[]"),
            list(node("a") + ",\n  " + k_module),
            list(k_module + "," + node("b", R"("kind":"Node","apiVersion":"v1",)", R"(,"unknwon":{"x":1})")),
            list(node("a", R"("apiVersion":"v1","kind":"Pod",)")),
            list(node("a", R"("apiVersion":"v2","kind":"Node",)")),
            list(node("a", bare)),
            list(node("a") + "," + node("b", R"("apiVersion":"v1","kind":"Node","kind":"Node",)")),
            list(node("a") + "," + node("b").substr(0, 90)),
            list(node("a")) + "x",
            list(node("a") + ","),
            "{\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":1}}}],"
            "\"kind\":\"List\",\"apiVersion\":\"v1\"}",
            "[" + node("a") + "]",
            node("a"),
            "",
            "{apiVersion: v1, kind: Node, metadata: {name: a}}",
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    managedFields: [x]\n    name: "
            "a\n- " +
                k_module +
                "\nkind: List\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b, \"labels\": {e: \xC3\xA9, f: g "
                "h}}\n",
            "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a}\n- metadata: {name: b, nam: c}\n",
            "kind: NodeList\nitems:\n- &a\n  metadata: {name: a}\n- *a\n",
        };
        for (const auto& text : texts) {
            CAPTURE(text);
            const auto expected = read_whole(text);
            const auto file = read_file(text);
            CHECK(file.names == expected.names);
            // Nothing is a command that failed.
            const auto faults = text.empty() ? "no-documents 0:0 " : expected.faults;
            CHECK(file.faults == faults);
            const auto pipe = read_pipe(text);
            CHECK(pipe.names == expected.names);
            CHECK(pipe.faults == faults);
        }
    }
}
