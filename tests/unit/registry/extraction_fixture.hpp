// SPDX-License-Identifier: Apache-2.0
// An image that is pulled into a cache, again and again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "registry/client/request.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

namespace kmm::test {

using Tweak = std::function<void(registry::PullRequest&)>;

[[nodiscard]] std::string bytes_of(const std::filesystem::path& path);
void put_bytes(const std::filesystem::path& path, const std::string& bytes);
/// `text` with the first `from` in it, which must be there, replaced.
[[nodiscard]] std::string replaced(std::string text, const std::string& from, const std::string& to);

/// An image with all that an extraction can hold, in two layers.
[[nodiscard]] std::vector<TestLayer> rich_layers();

/// A registry with the image "v1" of these layers, and a cache.
struct ExtractionScene {
    sys::TempDir top{"kmm-test-"};
    FakeRegistry registry;
    std::string directory = top.path() + "/cache";
    std::vector<TestLayer> layers = rich_layers();
    std::size_t requests = 0;  ///< of the last pull

    ExtractionScene() { registry.add_image("v1", layers); }
    [[nodiscard]] Outcome pull(const Tweak& tweak = nullptr, bool cached = true);
    /// Where the cache has a file with these bytes.
    [[nodiscard]] std::filesystem::path blob(const std::string& bytes) const;
    /// Takes the layers out of the cache.
    void remove_layers() const;
    /// The files with lists of extracted files.
    [[nodiscard]] std::vector<std::filesystem::path> lists() const;
};

/// CHECKs that both pulls had the same result, byte for byte.
void check_same(const Outcome& found, const Outcome& expected);

}  // namespace kmm::test
