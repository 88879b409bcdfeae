// SPDX-License-Identifier: Apache-2.0
// Where the manifests and blobs of one image come from: a registry with its mirrors, or files. Also reads them
// verified.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/manifest.hpp"
#include "image/reference.hpp"
#include "net/http.hpp"
#include "registry/client/request.hpp"
#include "registry/layer/source.hpp"
#include "registry/layer/target.hpp"
#include "sys/clock.hpp"

namespace kmm::registry {

/// A manifest as it came, and what was said about it.
struct ManifestText {
    std::string body;
    std::string content_type;      ///< "" if nothing was said
    std::string announced_digest;  ///< the registry's Docker-Content-Digest header, "" without one
    bool of_file = false;          ///< no answer of a server: OCI manifests need not say themselves what they are
};

using ByteCount = std::function<void(std::uint64_t)>;

class ImageStore {
public:
    virtual ~ImageStore() = default;
    /// The name of the image's first manifest: a tag or a digest.
    [[nodiscard]] virtual std::string first_name() const = 0;
    /// The digest that the first manifest must have; nullopt if only a tag is known.
    [[nodiscard]] virtual std::optional<image::Digest> first_digest() const = 0;
    /// What identifies the image if its manifest was made up by the store; nullopt for the manifest's digest.
    [[nodiscard]] virtual std::optional<image::Digest> identity() const { return std::nullopt; }
    /// The manifest `name`; at most `cap` bytes and one more. With `expected`, its bytes have that digest.
    /// Errors: not_found "image-not-found", integrity "digest-mismatch", those of the transport.
    [[nodiscard]] virtual ManifestText manifest(const std::string& name, const std::optional<image::Digest>& expected,
                                                std::uint64_t cap) = 0;
    /// The index of what refers to the manifest `digest`, as the registry lists it under /referrers/; "" where nobody
    /// lists that. Errors: those of the transport.
    [[nodiscard]] virtual std::string referrers(const image::Digest& /*digest*/, std::uint64_t /*cap*/) { return {}; }
    /// Puts the bytes of a blob into `target`; on return they had the size and the digest that `wanted` says.
    /// `on_bytes` (may be empty) is called with the byte count after each chunk. Errors: integrity "digest-mismatch",
    /// "size-mismatch", those of the transport and of the target.
    virtual void blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& warnings,
                      const ByteCount& on_bytes) = 0;
    /// Throws timeout "pull-timeout" when the deadline of the pull is over.
    virtual void check_deadline() const = 0;
};

/// The digest of `body`. Errors: integrity "digest-mismatch" if `expected` is another one.
[[nodiscard]] image::Digest verified_manifest(std::string_view body, const std::optional<image::Digest>& expected);

/// Copies `source` into `target`, held to the size and the digest of `wanted`. Errors: integrity "digest-mismatch",
/// "size-mismatch"; those of the parts.
void copy_verified(ByteSource& source, const image::Descriptor& wanted, BlobTarget& target, const ByteCount& on_bytes,
                   const std::function<void()>& check_deadline);

/// A registry, its mirrors first (PullRequest::mirrors). What a mirror cannot give, or gives wrongly, the next one is
/// asked for; `warnings` says so. Errors: no_permission "registry-blocked" if nobody may be asked.
[[nodiscard]] std::unique_ptr<ImageStore> open_registry(const image::Reference& reference, const PullRequest& request,
                                                        net::HttpClient& http, sys::Clock& clock,
                                                        std::vector<std::string>& warnings);

}  // namespace kmm::registry
