// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/clean_path.hpp"

using namespace kmm::base;

TEST_SUITE("base::clean_path") {
    TEST_CASE("as Go's filepath.Clean") {
        // The table of Go's own path_test.go, without what only Windows does.
        const std::vector<std::pair<std::string, std::string>> table{
            {"abc", "abc"},
            {"abc/def", "abc/def"},
            {"a/b/c", "a/b/c"},
            {".", "."},
            {"..", ".."},
            {"../..", "../.."},
            {"../../abc", "../../abc"},
            {"/abc", "/abc"},
            {"/", "/"},
            {"", "."},
            {"abc/", "abc"},
            {"abc/def/", "abc/def"},
            {"./", "."},
            {"../", ".."},
            {"/abc/", "/abc"},
            {"abc//def//ghi", "abc/def/ghi"},
            {"//abc", "/abc"},
            {"///abc", "/abc"},
            {"//abc//", "/abc"},
            {"abc/./def", "abc/def"},
            {"/./abc/def", "/abc/def"},
            {"abc/.", "abc"},
            {"abc/def/ghi/../jkl", "abc/def/jkl"},
            {"abc/def/../ghi/../jkl", "abc/jkl"},
            {"abc/def/..", "abc"},
            {"abc/def/../..", "."},
            {"/abc/def/../..", "/"},
            {"abc/def/../../..", ".."},
            {"/abc/def/../../..", "/"},
            {"abc/def/../../../ghi/jkl/../../../mno", "../../mno"},
            {"/../abc", "/abc"},
            {"abc/./../def", "def"},
            {"abc//./../def", "def"},
            {"abc/../../././../def", "../../def"}};
        for (const auto& [path, expected] : table) {
            CAPTURE(path);
            CHECK(clean_path(path) == expected);
            CHECK(clean_path(clean_path(path)) == expected);
        }
    }

    TEST_CASE("as Go's filepath.Join") {
        CHECK(join_paths({}).empty());
        CHECK(join_paths({"", ""}).empty());
        CHECK(join_paths({"a", ""}) == "a");
        CHECK(join_paths({"", "a"}) == "a");
        CHECK(join_paths({"/", ""}) == "/");
        CHECK(join_paths({"a/", "b"}) == "a/b");
        CHECK(join_paths({"/tmp", "firmwareDir/updates"}) == "/tmp/firmwareDir/updates");
        CHECK(join_paths({"/tmp", "/usr//local/", "lib/modules"}) == "/tmp/usr/local/lib/modules");
        CHECK(join_paths({"/tmp", "/fw/.."}) == "/tmp");
        CHECK(join_paths({"/tmp", "../../etc"}) == "/etc");
    }

    TEST_CASE("what a path is below a root") {
        for (const auto& [path, below] : std::vector<std::pair<std::string, std::string>>{{"/opt", "opt"},
                                                                                          {"opt//x/", "opt/x"},
                                                                                          {"/opt/../usr/./x", "usr/x"},
                                                                                          {"a/..", ""},
                                                                                          {"/", ""},
                                                                                          {"", ""},
                                                                                          {"/..x/y", "..x/y"}}) {
            CHECK(path_below(path) == below);
        }
        for (const char* out : {"..", "/..", "../x", "/../opt", "a/../../b", "//../.."}) {
            CHECK_FALSE(path_below(out));
        }
    }
}
