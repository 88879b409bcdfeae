// SPDX-License-Identifier: Apache-2.0
// YAML that is read line by line, against libyaml alone: what the sink gets is the same, or both have a doubt.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "mutate.hpp"
#include "support/stream_text.hpp"
#include "value/yaml_stream.hpp"

using namespace kmm;
using namespace kmm::value;

namespace {

constexpr const char* k_list = R"(apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  left-out:
    f:metadata:
      .: {}
      'k:{"type":"Ready"}':
        f:b: {}
  metadata:
    name: node-a
  labels:
    a/b: "true"
    c.d: v1.2.3
    empty: ""
    long: a label that is as long as any
  list:
  - text that is as long as any text in this list, so that it counts: 1
    other: 'it''s one that nobody would write, and it is as long as that'
  - plain text that goes
    on in the next line, and
    on
  - |
    a literal
      with spaces

    and a blank line

  spec:
    entries:
    - -1
    - 0x1F
    - {}
  status:
    entries:
    - id: one
      name: a name
    - id: two
      list: []
- kind: Node
  labels:
    a/b: "true"
    c.d: v1.2.3
  text: 'quoted text: it
    goes on'
  last: |-
    stripped
  "quoted": "with \"escapes\" and\na line\t"
kind: List
metadata:
  resourceVersion: ""
)";

std::string agreed(std::string_view text, std::size_t piece = 100'000) {
    const auto expected = tests::stream_text(stream_libyaml, text, piece);
    const auto found = tests::stream_text(stream_yaml, text, piece);
    CAPTURE(text);
    CHECK(found == expected);
    return found;
}

}  // namespace

TEST_SUITE("value::yaml_lines") {
    TEST_CASE("lines of every sort are what libyaml makes of them") {
        CHECK(agreed(k_list) != "");
        CHECK(agreed(k_list, 1) != "");
        for (const std::string_view value :
             {"b", "\"b\"", "'b'", "", "~", "yes", "1.10", "0x1F", "-1", "-", "- b", "--- b", "b c", "b: c", "b:c",
              "b:", "b #c", "b#c", "#c", "{}", "[]", "{a: b}", "[a]", "&a b", "*a", "!t b", "|", "|-", "|+", "|2", ">",
              "? b", "?b", ": b", ":b", ", b", "%b", "@b", "`b", "\"b", "'b", "\"a\\\"b\"", "\"a\\x41\"", "\"a\\",
              "'a''b'", "'a' b", "\"a\" b", "b ", " b", "\tb", "b\tc", "b\r", "<<", "=", ".nan", "...", "a\xC3\xA9"}) {
            for (const std::string_view more :
                 {"", "\n", "\n    c", "\n    c: d", "\n  c", "\n\n    c", "\n    #c", "\n   ", "\n    c\n\n     d",
                  "\n    c\n   d", "\n  - c", "\n  c: d", "\n\nz: y", "\n...", "\n---\nb: c", "\n    \tc", "\n    'c'",
                  "\n    c'", "\n    c\"", "\n    c''\n    d'", "\n- c", "\n    - c\n    - d"}) {
                for (const std::string_view front :
                     {"a:\n  b: ", "a:\n- b: ", "a:\n  - ", "a: ", "items:\n- b: ", "items:\n  - a: b\n  - ",
                      "a:\n  'b': ", "a:\n  - b: c\n    d: "}) {
                    for (const std::string_view end : {"\n", "\nkind: List\n", ""}) {
                        agreed(std::string(front).append(value).append(more).append(end));
                    }
                }
            }
        }
    }

    TEST_CASE("damaged lists are what libyaml makes of them") {
        std::mt19937 random(5);
        std::size_t taken = 0;
        for (int round = 0; round < 6000; ++round) {
            taken += agreed(mutate(random, k_list)).empty() ? 0U : 1U;
        }
        CHECK(taken > 600);
    }

    TEST_CASE("a large list that libyaml takes over in the middle") {
        const std::string item = "- kind: Node\n  labels:\n    a: \"1\"\n    b: 1.10\n  text: some text\n";
        std::string text = "items:\n";
        for (int i = 0; i < 10'000; ++i) text += item;
        text += "kind: List\n";
        CHECK(agreed(text) != "");
        for (const char* odd : {"- kind: Node\n  text: >\n    folded\n    text\n", "# a comment\n",
                                "- kind: Node\n  text: [a, b]\n", "- {kind: Node}\n", "-\n  kind: Node\n"}) {
            CAPTURE(odd);
            auto other = text;
            other.insert(7 + 9'012 * item.size(), odd);
            CHECK(agreed(other) != "");
        }
        CHECK(agreed(text + "metadata: {a: b}\n") != "");
        CHECK(agreed(text + "---\na: b\n") != "");
        CHECK(agreed(text + "items: b\n") == "");
    }
}
