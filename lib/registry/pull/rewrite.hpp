// SPDX-License-Identifier: Apache-2.0
// Changes files of an image: whatever must be different lies in one new layer on top, everything below stays as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "image/platform.hpp"
#include "net/http.hpp"
#include "registry/client/request.hpp"
#include "sys/clock.hpp"

namespace kmm::registry {

/// What becomes of one file: its new bytes, or nullopt if it stays. `path` is absolute inside the image.
using FileChange = std::function<std::optional<std::string>(const std::string& path, std::string bytes)>;

struct RewriteRequest {
    PullRequest source;   ///< which image, whose kernels, and how to get it; not "dir:"
    std::string to;       ///< where it goes: a registry's reference, "oci:DIR[:TAG]" or "oci-archive:FILE[:TAG]"
    std::optional<image::Platform> platform;  ///< the one image of an index that is changed; nullopt for every one
    /// Shell patterns of absolute paths; "*" does not match "/". Empty for the .ko files (also .ko.gz, .ko.xz, .ko.zst)
    /// of the wanted kernels.
    std::vector<std::string> files;
    std::string created_by;  ///< of the new layer's entry in the image's history
    FileChange change;
};

struct RewrittenFile {
    std::string path, platform;
    std::uint64_t size = 0;      ///< afterwards
    std::string before, after;   ///< sha256, lower-case hex
};

struct RewriteResult {
    std::string source, source_digest;  ///< normalised reference; digest of the manifest or index
    std::string reference, digest;      ///< of what was written
    std::vector<RewrittenFile> files;   ///< in the order of the calls of `change`: by image, then by path
    std::vector<std::string> warnings;
};

/// Reads the image, changes its files, writes the result: blobs, then manifests, the name last. What cannot be changed
/// ends it before anything was written. Everything that is read is verified as pull() does. Blobs that the destination
/// has are not sent. The same image and the same changes give the same digest; without a change the image is only
/// copied. `work_dir` is an empty, private directory. Errors: as pull() and the sink (upload.hpp); not_found
/// "file-not-in-image" for a pattern without a match, "module-not-in-image" without any file; data "bad-path" for a
/// pattern outside of dir_name; usage "unsupported" for "dir:".
[[nodiscard]] RewriteResult rewrite_image(const RewriteRequest& request, const std::string& work_dir,
                                          net::HttpClient& http, sys::Clock& clock);

}  // namespace kmm::registry
