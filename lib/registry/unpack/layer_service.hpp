// SPDX-License-Identifier: Apache-2.0
// Layers and archives of images, inflated and taken apart in a confined process: compressed bytes go in, entries of the
// tar come out.
#pragma once

#include <cstdint>

#include "image/manifest.hpp"
#include "registry/layer/source.hpp"
#include "registry/unpack/extract.hpp"
#include "sandbox/confined.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

/// What a confined process needs to be asked by extract_confined() and read_archive().
[[nodiscard]] sandbox::Service layer_service();

/// extract_layer() with everything in `parser` that reads the bytes of `blob`: inflating, limits, the diff id and the
/// tar. What its entries mean for the view, and the files, are this process's matter. `blob` is read in another thread.
/// Errors: as extract_layer; what `blob` throws before those; sandbox::Confined::lost().
void extract_confined(sandbox::Confined& parser, ByteSource& blob, const image::Descriptor& layer,
                      const image::Digest& diff_id, Extraction& into);

/// Asks `parser` for the entries of the archive in `file`, which is open for reading only: it reads that itself, from
/// the start. A ConfinedReader takes the entries, whose content comes through the ring in `ring`. Errors: as
/// sandbox::Confined::send().
void send_archive_request(sandbox::Confined& parser, image::Compression compression, std::uint64_t bytes_max,
                          const sys::Fd& ring, int file);

}  // namespace kmm::registry
