// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/folder/envsubst.hpp"

using namespace kmm;

namespace {

cluster::Substitution substitute_all(std::string_view text) {
    static const std::map<std::string, std::string, std::less<>> values = {
        {"v", "6.1.0-x86"},      {"mixed", "abcdEFGH28ij"}, {"upper", "ABC"}, {"path", "/path/to/file"}, {"empty", ""},
        {"file", "bash.string.txt"}, {"z", "abcABC123ABCabc"}, {"utf", "\xC3\xA4x"}};
    return cluster::substitute(text, [](std::string_view name) -> std::optional<std::string_view> {
        const auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional<std::string_view>(found->second);
    });
}

}  // namespace

TEST_SUITE("functions of Flux's variables") {
    TEST_CASE("each is done as envsubst does it") {
        const std::map<std::string, std::string> k_rows = {
            {"a ${v} b", "a 6.1.0-x86 b"},
            {"$${v} $$ $v $", "${v} $ $v $"},
            {"$$${v}", "$6.1.0-x86"},
            {"${#mixed}", "12"},
            {"${mixed^}${mixed^^}", "AbcdEFGH28ijABCDEFGH28IJ"},
            {"${upper,}${upper,,}", "aBCabc"},
            {"${path:6}", "to/file"},
            {"${path:1:4}", "path"},
            {"${path:-4:2}", "/path/to/file"},  // a default
            {"${path:50}${path:50:1}", ""},
            {"${path: -4}", "/path/to/file"},
            {"${none=x}${none:=y}${none:-z}${empty:-e}", "xyze"},
            {"${v:+set}${none:?unset}", "6.1.0-x86unset"},
            {"${none:=${v}-suffix}", "6.1.0-x86-suffix"},
            {"${none=a${none=b}c}", "abc"},
            {"${none:-}", ""},
            {"${v/./-}${v//./-}", "6-1.0-x866-1-0-x86"},
            {"${z/%abc/XYZ} ${z/#abc/XYZ}", "abcABC123ABCXYZ XYZABC123ABCabc"},
            {"${path/\\//-} ${path//\\//-}", "-path/to/file -path-to-file"},
            {"${v/./}${v//x86/}", "61.0-x866.1.0-"},
            {"${file#*.} ${file##*.}", "string.txt txt"},
            {"${file%.*} ${file%%.*}", "bash.string bash"},
            {"${path##*/} ${path#*/}", "file path/to/file"},
            {"${v%-x?6}", "6.1.0"},
        };
        for (const auto& [text, expected] : k_rows) {
            CAPTURE(text);
            const auto made = substitute_all(text);
            CHECK(made.fault == "");
            CHECK(made.text == expected);
            CHECK(made.unknown.empty());
        }
    }
    TEST_CASE("variables without a value are named, those of a default that does not count are not") {
        const auto made = substitute_all("${none} ${other^^} ${#third}");
        CHECK(made.unknown == std::set<std::string>{"none", "other", "third"});
        CHECK(substitute_all("${v:-${none}}").unknown.empty());
        CHECK(substitute_all("${none:-${other}}").unknown == std::set<std::string>{"other"});
    }
    TEST_CASE("what Flux refuses is refused") {
        for (const auto* text : {"${v", "${}", "${v.x}", "${v-x}", "${v[0]}", "${ v }", "${v/a}", "${v#}", "${v:}",
                                 "${#v:1}", "x ${arr[@]} y", "${v:1:-2}", "${none:-x"}) {
            CAPTURE(text);
            const auto made = substitute_all(text);
            CHECK(made.fault != "");
            CHECK(made.is_refused);
        }
        CHECK(substitute_all("a ${v.x} b").fault == "bad substitution in '${v.x} b'");
    }
    TEST_CASE("what is not followed is said") {
        for (const auto* text : {"${v#[0-9]}", "${utf^^}", "${utf:1}", "${v#*a*b*c*d*e}", "${v/${empty}/x}"}) {
            CAPTURE(text);
            const auto made = substitute_all(text);
            CHECK(made.fault != "");
            CHECK_FALSE(made.is_refused);
        }
        std::string deep = "x";
        for (int i = 0; i < 200; ++i) { deep = "${none:-" + deep + "}"; }
        CHECK(substitute_all(deep).fault != "");
    }
}
