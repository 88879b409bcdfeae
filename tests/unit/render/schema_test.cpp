// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.hpp"
#include "unit/render/schema.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

std::vector<value::Document> read(const std::string& text, const std::string& file) {
    Diagnostics diagnostics;
    auto documents = value::read_any(text, file, diagnostics);
    CHECK(diagnostics.empty());
    return documents;
}

std::string faults_text(const value::Node& node) { return base::join(schema::faults(node), "; "); }

}  // namespace

TEST_SUITE("render::schema") {
    TEST_CASE("the checker finds what it must") {
        const auto check = [](const std::string& text) { return faults_text(read(text, "t").at(0).root); };
        CHECK(check("{apiVersion: v1, kind: Namespace, metadata: {name: a}}").empty());
        CHECK(check("{apiVersion: v1, kind: Gadget, metadata: {name: a}}") == "v1/Gadget: unknown kind");
        CHECK(check("{apiVersion: v1, kind: Namespace, metadata: {nam: a, name: a}}") == "metadata.nam: unknown field");
        CHECK(check("{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {}}}") ==
              "metadata.labels: out of order");
        CHECK(check("{apiVersion: v1, kind: Pod, metadata: {name: a}}") == ": spec is missing");
        CHECK(check("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{image: 1, name: a}]}}") ==
              "spec.containers[0].image: expected type s, found integer");
        CHECK(check("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, volumeMounts: "
                    "[{mountPath: /a, name: v}]}]}}") == "containers: /a has no volume");
        CHECK(check("{apiVersion: v1, kind: Namespace, metadata: {labels: {a: b c}, name: A}}") ==
              "metadata.name: no name; a: no label value");
    }

    TEST_CASE("every object of every golden of render is what the API server takes") {
        const std::filesystem::path cases = std::filesystem::path(KMM_SOURCE_DIR) / "tests/golden/kmm-plan";
        std::size_t objects = 0;
        for (const auto& entry : std::filesystem::directory_iterator(cases)) {
            const auto path = entry.path() / "expect.out";
            if (entry.path().filename().native().find("render") == std::string::npos ||
                !std::filesystem::exists(path)) {
                continue;
            }
            std::ifstream file(path);
            const std::string text{std::istreambuf_iterator<char>(file), {}};
            if (!text.starts_with("apiVersion") && !text.starts_with('{')) { continue; }  // -o name, errors
            for (const auto& document : read(text, path.native())) {
                const value::Node* items =
                    document.root.get_string({"kind"}) == "List" ? document.root.find("items") : nullptr;
                const std::vector<value::Node> found =
                    items != nullptr ? items->items() : std::vector<value::Node>{document.root};
                for (const auto& object : found) {
                    INFO(path.native(), ": ", object.get_string({"kind"}), " ",
                         object.get_string({"metadata", "name"}));
                    CHECK(faults_text(object) == "");
                    ++objects;
                }
            }
        }
        CHECK(objects >= 40);
    }
}
