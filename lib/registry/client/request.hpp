// SPDX-License-Identifier: Apache-2.0
// What is pulled, and how to get there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "image/mirrors.hpp"
#include "net/http.hpp"
#include "registry/client/credentials.hpp"
#include "registry/layer/limits.hpp"
#include "registry/layer/path_rules.hpp"
#include "sandbox/confined.hpp"
#include "trust/policy.hpp"

namespace kmm::registry {

/// imagePullPolicy as Kubernetes means it. Blobs come from the cache under every one of them.
enum class PullPolicy {
    always,          ///< the registry is asked what the tag means
    if_not_present,  ///< what the tag meant when it was pulled last, if that is in the cache
    never,           ///< only the cache
};

/// What becomes of an image whose configuration says another platform than is wanted (row M20).
enum class OtherPlatform { refuse, warn };

struct PullRequest {
    std::string reference;                 ///< image reference as the user wrote it
    std::string dir_name = "/opt";         ///< where <dir_name>/lib/modules/<kernel> lies in the image
    std::vector<std::string> kernels;      ///< wanted kernel directories; empty with all_kernels = every one
    bool all_kernels = false;
    std::string firmware_path;             ///< directory inside the image, "" for none
    std::string modprobed_dir = {};        ///< the same of modprobe.d files
    std::string architecture = "amd64", os = "linux", variant;
    OtherPlatform other_platform = OtherPlatform::refuse;
    std::vector<std::string>
        skipped_secrets;  ///< what of credentials could not be read, for people: said beside a refused login
    std::vector<Credential> credentials;
    net::TlsSettings tls;                  ///< of the registry itself; a mirror has its own
    std::vector<image::MirrorRule> mirrors;
    trust::Requirements
        requirements{};  ///< what the image must meet before anything of it is kept; empty: no signature is looked for
    PullPolicy policy = PullPolicy::always;
    std::string cache_dir;                 ///< "" for no cache
    std::uint64_t cache_bytes = 4ULL << 30U;  ///< what the cache may hold after the pull
    std::vector<std::string> certs_dirs;   ///< as /etc/docker/certs.d, the first that knows the host counts
    /// False: nobody will ask for ExtractedFile::sha256, and only files whose digest the pull itself needs are hashed.
    /// Those of blobs and layers are always verified.
    bool file_digests = true;
    bool durable = false;             ///< the files are on the disk when pull() returns: `out_dir` outlives the program
    sandbox::Confined* parser = nullptr;  ///< inflates layers and reads their tars; nullptr: this process does
    Limits limits;
    std::chrono::milliseconds deadline{600'000};
    int attempts = 5;
    /// Called with (bytes so far, total bytes) of compressed data, perhaps in another thread, never in two at once; may
    /// be empty.
    std::function<void(std::uint64_t, std::uint64_t)> progress;
    /// Called before a wait between two tries, with what the last one said and how long the wait is; as `progress`.
    std::function<void(const std::string&, std::chrono::milliseconds)> waiting;
    /// Asked about once a second, perhaps in another thread, while the network is waited for: true ends the pull. May
    /// be empty.
    std::function<bool()> cancelled;
};

/// The part of the image that is extracted. Errors: data "bad-path" for a dir_name, kernel or firmware path that holds
/// ".." or a slash where none may be.
[[nodiscard]] Wanted wanted_from(const PullRequest& request);

/// Errors: not_found "kernel-not-in-image" unless every kernel that `request` wants (any, with all_kernels) is among
/// `found`, which is sorted. `reference` is for the message.
void check_kernels(const PullRequest& request, const std::vector<std::string>& found, const std::string& reference);

}  // namespace kmm::registry
