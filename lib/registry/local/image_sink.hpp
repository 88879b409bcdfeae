// SPDX-License-Identifier: Apache-2.0
// Where an image goes: a layout or an archive here, or what upload.hpp makes of a repository.
#pragma once

#include <memory>
#include <string>

#include "image/manifest.hpp"
#include "image/reference.hpp"
#include "registry/layer/limits.hpp"
#include "registry/local/local.hpp"
#include "sandbox/confined.hpp"
#include "value/node.hpp"

namespace kmm::registry {

/// Takes an image, blobs before manifests. Nobody sees anything of it before publish().
class ImageSink {
public:
    virtual ~ImageSink() = default;
    /// How messages name it: "reg.example.com/team/driver:v2", "oci:DIR:TAG".
    [[nodiscard]] virtual std::string name() const = 0;
    /// True if the blob is there already, or could be taken over from another repository of the registry.
    [[nodiscard]] virtual bool has(const image::Descriptor& blob) = 0;
    /// Stores a blob: the bytes of the file `fd`, which are those that `blob` says. Errors: no_permission
    /// "registry-auth", unavailable "registry-error", timeout "push-timeout", io.
    virtual void put_blob(const image::Descriptor& blob, int fd) = 0;
    /// Stores a manifest under its digest. Errors: as put_blob.
    virtual void put_manifest(const std::string& media_type, const std::string& text, const image::Digest& digest) = 0;
    /// Stores the image's first manifest under the name that users know: the last step. Errors: as put_blob; integrity
    /// "digest-mismatch" if the registry says that it got something else.
    virtual void publish(const std::string& media_type, const std::string& text, const image::Digest& digest) = 0;
};

/// "oci:DIR[:TAG]": the directory is made if it is absent; other images in it stay, one of the same tag (without a tag:
/// one without) is replaced. Errors: data "bad-layout" for a directory that is no layout; io.
[[nodiscard]] std::unique_ptr<ImageSink> open_layout_sink(const LocalReference& reference, const Limits& limits,
                                                          sandbox::Confined* parser = nullptr);

/// "oci-archive:FILE[:TAG]": a new archive with this image alone, in the place of a file that is there, once it is
/// whole. Errors: data "bad-layout" for something else than a file; io.
[[nodiscard]] std::unique_ptr<ImageSink> open_archive_sink(const LocalReference& reference);

/// The entry of an image in a layout's index.json; without the name if `tag` is "".
[[nodiscard]] value::Node layout_entry(const std::string& media_type, std::size_t size, const image::Digest& digest,
                                       const std::string& tag);

}  // namespace kmm::registry
