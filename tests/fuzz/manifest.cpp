// SPDX-License-Identifier: Apache-2.0
// What a registry says an image is: manifests, indexes, configurations.
#include <string>

#include "base/error.hpp"
#include "fuzz/target.hpp"
#include "image/manifest.hpp"
#include "registry/client/document_service.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const auto attempt = [](const auto& body) {
        try {
            body();
        } catch (const Error& error) {
            fuzz::require(error.exit() == Exit::data, "a bad manifest is bad data");
            fuzz::require(error.code() == "bad-manifest" || error.code() == "unsupported-image",
                          "a bad manifest has one of two codes");
        }
    };
    value::Node root;
    attempt([&] {
        root =
            registry::read_image_document(nullptr, std::string(fuzz::text_of(data, size)), "manifest", "bad-manifest");
    });
    for (const std::string_view type : {std::string_view(), image::k_oci_index, image::k_docker_manifest}) {
        attempt([&] { static_cast<void>(image::document_kind(root, type)); });
    }
    if (!root.is_mapping()) { return 0; }
    attempt([&] {
        for (const auto& entry : image::decode_index(root).manifests) {
            fuzz::require(image::parse_digest(entry.digest.to_string()) == entry.digest,
                          "a digest is read as it is written");
        }
    });
    attempt([&] {
        for (const auto& layer : image::decode_manifest(root).layers) {
            fuzz::require(!layer.media_type.empty(), "a layer has a type");
            attempt([&] { static_cast<void>(image::layer_compression(layer)); });
        }
    });
    attempt([&] { static_cast<void>(image::decode_config(root)); });
    return 0;
}
