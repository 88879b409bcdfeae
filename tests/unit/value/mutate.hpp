// SPDX-License-Identifier: Apache-2.0
// Damaged documents from a seed.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace kmm::value {

inline const std::vector<std::string> k_samples = {
    "# c\napiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  labels: {x: 'it''s', \"y\": [1, 2.5, null, ~]} # d\n  "
    "annotations:\n"
    "    k: |\n      text\n       more\n    f: >-\n      a\n      b\nspec:\n- &one\n  a: b\n- *one\n- ? q\n  : "
    "r\n---\nb: !!str 1\n...\n",
    R"({"a":[1,2.5e3,true,null,"x\n\ud83d\ude00"],"b":{"c":{},"d":[[]]},"e":-0.1})",
    "a:\n  b:\n    c: \"x # y\"   # z\n    d: plain over\n      two lines\n  e: [a, {b: c}]\r\nf: 'q'\r\n",
};

/// Pieces that matter to the grammars, besides random bytes.
inline const std::vector<std::string> k_pieces = {
    "{",    "}",     "[",        "]",           ":",  ": ",   "- ",      "#",
    " #",   "'",     "\"",       "\\",          "\n", "\r\n", "\t",      "  ",
    "&a ",  "*a",    "!",        "!!int ",      "|",  ">",    "|2-",     "? ",
    "<<: ", "---\n", "...\n",    "%YAML 1.1\n", ",",  "~",    "0x",      "\xEF\xBB\xBF",
    "\xFF", "\xC3",  "\xC2\x85", "@",           "`",  "\\u",  "\\ud800", "1e999",
    "null"};

inline std::string mutate(std::mt19937& random, std::string text) {
    const auto roll = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random()) % n; };
    for (auto changes = 1 + roll(3); changes > 0; --changes) {
        const auto at = roll(text.size() + 1);
        switch (roll(6)) {
            case 0: text.insert(at, k_pieces[roll(k_pieces.size())]); break;
            case 1: text.erase(at, 1 + roll(8)); break;
            case 2: text.insert(at, 1, static_cast<char>(roll(256))); break;
            case 3: text = text.substr(0, at); break;
            case 4: text.insert(at, text.substr(roll(text.size() + 1), roll(40))); break;
            default: if (at < text.size()) text[at] = static_cast<char>(roll(256)); break;
        }
    }
    return text;
}

}  // namespace kmm::value
