// SPDX-License-Identifier: Apache-2.0
// Pulls a kmod image: resolves, authenticates, verifies every digest while streaming, extracts only what is wanted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/http.hpp"
#include "registry/client/request.hpp"
#include "registry/unpack/extracted.hpp"
#include "sys/clock.hpp"

namespace kmm::registry {

struct PullResult {
    std::string reference;        ///< normalised
    std::string digest;           ///< of the platform manifest, "sha256:…"
    std::string index_digest;     ///< of the list or index, "" if there was none
    ExtractedFiles files;
    std::vector<std::string> kernels_found; ///< directories below <dir_name>/lib/modules, sorted
    std::vector<std::string> warnings;      ///< e.g. "image-command-ignored: modules.softdep"
    std::uint64_t bytes_downloaded = 0;
};

/// Pulls into `out_dir` (an existing, private directory, empty or with what a killed pull left): files land at OUT +
/// their path in the image, modes 0644 and 0755, nothing else is written. On any Error everything below `out_dir` that
/// was written has been removed again, and nothing that others put there. Errors: those of require_trust; facts
/// reliability-ux 2.8: integrity 76, unsafe 16 ("image-unsafe", "image-limit"), data 65, not_found 66
/// ("no-platform", "image-not-found", "kernel-not-in-image"), no_permission 77 ("registry-auth"), unavailable 69, io
/// 74, timeout 124; usage "unsupported" for the transports of container engines. `reference` may also be
/// "oci:DIR[:TAG]", "oci-archive:FILE[:TAG]", "docker-archive:FILE[:NAME:TAG]" or "dir:DIR": the same rules, limits and
/// digests apply.
[[nodiscard]] PullResult
pull(const PullRequest& request, const std::string& out_dir, net::HttpClient& http, sys::Clock& clock);

}  // namespace kmm::registry
