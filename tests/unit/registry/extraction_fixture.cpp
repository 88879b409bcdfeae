// SPDX-License-Identifier: Apache-2.0
#include "unit/registry/extraction_fixture.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "registry/client/request.hpp"

namespace kmm::test {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

void put_bytes(const fs::path& path, const std::string& bytes) {
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

std::vector<TestLayer> rich_layers() {
    TarBuilder lower;
    lower.file(k_modules + "/a.ko", std::string(300'000, 'a'))
        .file(k_modules + "/gone.ko", "gone")
        .file("opt/lib/modules/other/x.ko", "x");
    lower.file(k_modules + "/modules.softdep", "install a /bin/sh\n")
        .file("firmware/one.bin", "fw")
        .dir("opt/lib/modules/empty/");
    TarBuilder upper;
    upper.file(k_modules + "/.wh.gone.ko", "")
        .file(k_modules + "/sub/b.ko", "b", 0755)
        .hardlink(k_modules + "/sub/c.ko", k_modules + "/sub/b.ko");
    upper.symlink(k_modules + "/link.ko", "sub/b.ko")
        .symlink(k_modules + "/nowhere.ko", "absent.ko")
        .symlink(k_modules + "/build", "/usr/src/x");
    upper.dir(k_modules + "/hollow/").file(k_modules + "/zero.ko", "").file("firmware/two.bin", "fw");
    return {gzip_layer(lower.finish()), plain_layer(upper.finish())};
}

Outcome ExtractionScene::pull(const Tweak& tweak, bool cached) {
    const std::size_t before = registry.server().count("/v2/team/");
    Outcome outcome = pull_from(registry, [&](registry::PullRequest& request) {
        request.cache_dir = cached ? directory : "";
        request.firmware_path = "/firmware";
        if (tweak) {
            tweak(request);
        }
    });
    requests = registry.server().count("/v2/team/") - before;
    return outcome;
}

fs::path ExtractionScene::blob(const std::string& bytes) const {
    return directory + "/blobs/sha256/" + sha256(bytes).substr(7);
}

void ExtractionScene::remove_layers() const {
    for (const TestLayer& layer : layers) {
        fs::remove(blob(layer.bytes));
    }
}

std::vector<fs::path> ExtractionScene::lists() const {
    std::vector<fs::path> result;
    for (const auto& item : fs::directory_iterator(directory + "/extractions")) {
        result.push_back(item.path());
    }
    return result;
}

void check_same(const Outcome& found, const Outcome& expected) {
    REQUIRE_MESSAGE(!found.error, found.message());
    CHECK(found.files == expected.files);
    CHECK(found.modes == expected.modes);
    CHECK(found.result.digest == expected.result.digest);
    CHECK(found.result.kernels_found == expected.result.kernels_found);
    REQUIRE(found.listed.size() == expected.listed.size());
    for (std::size_t i = 0; i < found.listed.size(); ++i) {
        CHECK(found.listed[i].path == expected.listed[i].path);
        CHECK(found.listed[i].size == expected.listed[i].size);
        CHECK(found.listed[i].sha256 == expected.listed[i].sha256);
    }
}

}  // namespace kmm::test
