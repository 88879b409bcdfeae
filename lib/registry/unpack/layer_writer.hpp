// SPDX-License-Identifier: Apache-2.0
// Makes a layer: a tar of regular files, compressed, with both digests. The same files give the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "image/digest.hpp"
#include "image/manifest.hpp"

namespace kmm::registry {

/// One file of the new layer; its bytes are asked for when they are needed.
struct LayerFile {
    std::string path;  ///< inside the image, without "/" in front
    bool executable = false;
    std::function<std::string()> bytes;
};

struct WrittenLayer {
    image::Digest digest;   ///< of the bytes in the file
    image::Digest diff_id;  ///< of the tar
    std::uint64_t size = 0;
};

/// Writes a layer of `files` (sorted by path, owned by root, dated 1970) into the empty file `fd`, compressed by zlib
/// if `compression` is gzip, by libzstd if it is zstd. Errors: io; what `bytes` throws.
[[nodiscard]] WrittenLayer write_layer(const std::vector<LayerFile>& files, image::Compression compression, int fd);

}  // namespace kmm::registry
