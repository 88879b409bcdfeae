// SPDX-License-Identifier: Apache-2.0
// The files that a pull extracted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kmm::registry {

struct ExtractedFile {
    std::string path;     ///< inside the image, absolute: "/opt/lib/modules/K/x.ko"
    std::uint64_t size = 0;
    std::string sha256;   ///< lower-case hex of the bytes on disk; "" if nobody asked for it

    /// The same for whoever needs it: none is a bug.
    [[nodiscard]] const std::string& digest() const;
};

struct ExtractedTree;

/// The files that a pull extracted. Each is made when it is asked for, from the tree of the pull: an image may have
/// 100,000.
class ExtractedFiles {
public:
    ExtractedFiles() = default;  ///< none
    explicit ExtractedFiles(std::shared_ptr<const ExtractedTree> tree);
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Gives the first `most` files to `take`, sorted by path.
    void each(const std::function<void(const ExtractedFile&)>& take, std::size_t most = SIZE_MAX) const;

private:
    std::shared_ptr<const ExtractedTree> tree_;
    std::size_t size_ = 0;
};

}  // namespace kmm::registry
