// SPDX-License-Identifier: Apache-2.0
// Documents and links of an image that gets one more layer.
#pragma once

#include <string>

#include "image/digest.hpp"
#include "registry/layer/layer_view.hpp"
#include "value/node.hpp"

namespace kmm::registry {

/// A manifest as it will be written.
struct NewDocument {
    std::string text, media_type;
    image::Digest digest;
};

/// `root` as a document of `media_type`, with its digest.
[[nodiscard]] NewDocument rewritten(const value::Node& root, const std::string& media_type);

/// Has a descriptor name other content.
void set_content(value::Node& descriptor, const image::Digest& digest, std::uint64_t size);

/// The configuration with one more layer. Without a history for the layers before, none is begun: it would not fit
/// them.
[[nodiscard]] value::Node with_layer(value::Node config, std::size_t layers, const image::Digest& diff_id,
                                     const std::string& created_by);

/// Where `path` of the finished view, in which no link leads round, leads by its links.
[[nodiscard]] std::string end_of_link(const LayerView& view, std::string path);

}  // namespace kmm::registry
