// SPDX-License-Identifier: Apache-2.0
// Damaged documents from a fixed seed: whatever comes in, readers and the editor answer with a tree or with faults.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "mutate.hpp"
#include "edit/edit.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::edit;
using namespace kmm::value;

namespace {

void check_marks(const Node& node, const std::string& text) {
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    CHECK(node.mark().line >= 1);
    CHECK(node.mark().line <= lines);
    CHECK(node.mark().column >= 1);
    for (const auto& item : node.items()) check_marks(item, text);
    for (const auto& member : node.members()) {
        CHECK(member.key_mark.line >= 1);
        CHECK(member.key_mark.line <= lines);
        check_marks(member.value, text);
    }
}

}  // namespace

TEST_SUITE("value::mutation") {
    TEST_CASE("damaged documents are read or refused, and what was read can be written and read again") {
        std::mt19937 random(20261121);
        std::size_t read = 0;
        std::size_t refused = 0;
        for (int round = 0; round < 2500; ++round) {
            const auto text = mutate(random, k_samples[static_cast<std::size_t>(round) % k_samples.size()]);
            CAPTURE(text);
            for (const auto reader : {read_any, read_yaml, read_json}) {
                Diagnostics faults;
                const auto documents = reader(text, "f", faults, {});
                for (const auto& fault : faults) {
                    CHECK_FALSE(fault.code.empty());
                    CHECK(fault.message == std::string(fault.message.c_str()));
                    REQUIRE(fault.position);
                    CHECK(fault.position->line > 0);
                }
                refused += has_errors(faults) ? 1U : 0U;
                for (const auto& document : documents) {
                    ++read;
                    check_marks(document.root, text);
                    Diagnostics none;
                    const auto again = read_yaml(to_yaml(document.root), "g", none);
                    REQUIRE(again.size() == 1);
                    CHECK(none.empty());
                    CHECK(again[0].root.same_value(document.root));
                }
            }
        }
        CHECK(read > 1000);
        CHECK(refused > 1000);
    }

    TEST_CASE("the editor changes a damaged document rightly or not at all") {
        std::mt19937 random(42);
        const std::vector<std::vector<std::string>> paths = {
            {"metadata", "labels", "x"}, {"a", "b", "c"}, {"a"}, {"new", "b"}, {"b", "c"}, {"spec"}};
        std::size_t done = 0;
        for (int round = 0; round < 2000; ++round) {
            const auto& sample = k_samples[static_cast<std::size_t>(round) % k_samples.size()];
            const auto text = mutate(random, sample.substr(0, sample.find("---")));
            Edit edit{paths[static_cast<std::size_t>(random()) % paths.size()], std::nullopt};
            if (round % 3 != 0) edit.value = Node("on");
            CAPTURE(text);
            try {
                const auto changed = edit_text(text, "f", {edit});
                Diagnostics faults;
                const auto documents = read_any(changed, "g", faults);
                CHECK(faults.empty());
                const Node* node = documents.empty() ? nullptr : &documents[0].root;
                for (const auto& key : edit.path) node = node != nullptr ? node->find(key) : nullptr;
                CHECK((node != nullptr) == edit.value.has_value());
                if (node != nullptr) CHECK(node->same_value(*edit.value));
                ++done;
            } catch (const Error& error) {
                CHECK(error.exit() == Exit::data);
            }
        }
        CHECK(done > 300);
    }
}
