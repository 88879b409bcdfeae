// SPDX-License-Identifier: Apache-2.0
// Caps on what an image may take.
#pragma once

#include <cstdint>

namespace kmm::registry {

/// Caps against hostile images; names as in `--limit NAME=VALUE` (facts: reliability-ux 2.4).
struct Limits {
    std::uint64_t manifest_bytes = 4U << 20U;
    std::uint64_t config_bytes = 4U << 20U;
    std::uint64_t index_entries = 1000;
    std::uint64_t index_depth = 2;
    std::uint64_t layers = 128;
    std::uint64_t blob_bytes = 2ULL << 30U;
    std::uint64_t image_bytes = 4ULL << 30U;
    std::uint64_t inflated_layer_bytes = 2ULL << 30U;
    std::uint64_t inflated_bytes = 4ULL << 30U;
    std::uint64_t ratio = 200;              ///< inflated : compressed after the first 16 MiB
    std::uint64_t entries = 100'000;
    std::uint64_t path_bytes = 4096;
    std::uint64_t component_bytes = 255;
    std::uint64_t depth = 64;
    std::uint64_t file_bytes = 512U << 20U;
};

}  // namespace kmm::registry
