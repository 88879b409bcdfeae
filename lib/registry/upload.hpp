// SPDX-License-Identifier: Apache-2.0
// Where an image goes: a repository of a registry (distribution-spec, "Push") or an OCI image layout.
#pragma once

#include <memory>
#include <string>

#include "image/manifest.hpp"
#include "image/reference.hpp"
#include "net/http.hpp"
#include "registry/local.hpp"
#include "registry/puller.hpp"
#include "sys/clock.hpp"
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

/// Refuses what nothing can be written to, before any work is done. Errors: data "bad-reference"; usage "usage" for a
/// reference by digest, "unsupported" for another transport than "oci:" and "oci-archive:".
void check_destination(const std::string& to);

/// The repository and tag of `reference`. `request` says how to get there (credentials, TLS, deadline, tries);
/// `mount_from` is a repository of the same registry whose blobs may be taken over, "" for none.
[[nodiscard]] std::unique_ptr<ImageSink> open_registry_sink(const image::Reference& reference,
                                                            const PullRequest& request, const std::string& mount_from,
                                                            net::HttpClient& http, sys::Clock& clock);

/// "oci:DIR[:TAG]": the directory is made if it is absent; other images in it stay, one of the same tag (without a tag:
/// one without) is replaced. Errors: data "bad-layout" for a directory that is no layout; io.
[[nodiscard]] std::unique_ptr<ImageSink> open_layout_sink(const LocalReference& reference, const Limits& limits,
                                                          sys::Confined* parser = nullptr);

/// "oci-archive:FILE[:TAG]": a new archive with this image alone, in the place of a file that is there, once it is
/// whole. Errors: data "bad-layout" for something else than a file; io.
[[nodiscard]] std::unique_ptr<ImageSink> open_archive_sink(const LocalReference& reference);

/// The entry of an image in a layout's index.json; without the name if `tag` is "".
[[nodiscard]] value::Node layout_entry(const std::string& media_type, std::size_t size, const image::Digest& digest,
                                       const std::string& tag);

}  // namespace kmm::registry
