// SPDX-License-Identifier: Apache-2.0
// Pulls a kmod image: resolves, authenticates, verifies every digest while streaming, extracts only what is wanted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "image/mirrors.hpp"
#include "net/http.hpp"
#include "sys/clock.hpp"
#include "sys/confined.hpp"
#include "trust/policy.hpp"

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

/// One credential: for `key` "HOST", "HOST/ns" or "HOST/ns/repo" (longest match wins). A helper's key may be "", for
/// every registry.
struct Credential {
    std::string key, user, password, identity_token;
    std::string registry_token{};  ///< goes to the registry itself, as it is
    std::string helper{};          ///< no credential: the program that would know one
};

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
    sys::Confined* parser = nullptr;  ///< where layers are inflated and their tars are read; nullptr: in this process
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

struct ExtractedFile {
    std::string path;     ///< inside the image, absolute: "/opt/lib/modules/K/x.ko"
    std::uint64_t size = 0;
    std::string sha256;   ///< lower-case hex of the bytes on disk; "" if nobody asked for it

    /// The same for whoever needs it: none is a bug.
    [[nodiscard]] const std::string& digest() const;
};

struct ExtractedTree;

/// The files that a pull extracted. Each is made when it is asked for, from the tree of the pull: an image may have
/// 100,000.
class ExtractedFiles {
public:
    ExtractedFiles() = default;  ///< none
    explicit ExtractedFiles(std::shared_ptr<const ExtractedTree> tree);
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Gives the first `most` files to `take`, sorted by path.
    void each(const std::function<void(const ExtractedFile&)>& take, std::size_t most = SIZE_MAX) const;

private:
    std::shared_ptr<const ExtractedTree> tree_;
    std::size_t size_ = 0;
};

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

/// True if `directory` holds what a pull into it that was killed has left: pull() removes that first.
[[nodiscard]] bool has_unfinished_pull(const std::string& directory);

/// Reads Docker's config.json / .dockerconfigjson or legacy .dockercfg text. Errors: data "bad-auth-file" with `file`'s
/// name and never its content.
[[nodiscard]] std::vector<Credential> parse_credentials(const std::string& text, const std::string& file);
/// Credentials of a pull Secret's data, decoded: its members .dockerconfigjson and .dockercfg. `shown` names it in
/// errors.
[[nodiscard]] std::vector<Credential> secret_credentials(const std::map<std::string, std::string>& data,
                                                         const std::string& shown);
/// The files in which docker, podman and skopeo keep logins, in order of precedence. `variable` gives environment
/// variables, "" for none; without XDG_RUNTIME_DIR, as in a service of root, podman login writes below /run/containers,
/// under the number of `user`.
[[nodiscard]] std::vector<std::string> credential_places(const std::function<std::string(const std::string&)>& variable,
                                                         unsigned user);
struct FoundCredentials {
    std::vector<Credential> credentials;
    std::vector<std::string> skipped;  ///< as PullRequest::skipped_secrets
};
/// Credentials of `authfile`, or, if it is "", of the usual places in order of precedence (facts: reliability-ux 2.6).
/// An entry that cannot be understood is passed over and named, also in `warnings`, as it costs other programs that
/// entry alone. `warnings` also names files that rely on credential helpers: those are programs, and none is run.
/// Errors: data "bad-auth-file" for a file that is none; io; timeout if `authfile` is a pipe from which nothing comes
/// for `patience`.
[[nodiscard]] FoundCredentials default_credentials(
    const std::string& authfile, std::vector<std::string>& warnings,
    std::chrono::milliseconds patience = std::chrono::milliseconds::max());
/// Credentials of every .dockerconfigjson and .dockercfg below `directory`, as the kubelet mounts Secrets and as KMM's
/// worker read them; other names are passed over. A file that cannot be read or understood, and an entry that cannot,
/// is passed over and named, also in `warnings`. Errors: from_errno if there is no such directory.
[[nodiscard]] FoundCredentials mounted_credentials(const std::string& directory, std::vector<std::string>& warnings);

}  // namespace kmm::registry
