// SPDX-License-Identifier: Apache-2.0
// Pulling a job's image into a private directory and indexing its modules.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cli/table.hpp"
#include "kmm-worker/job.hpp"
#include "kmod/host/firmware.hpp"
#include "kmod/host/image_config.hpp"
#include "kmod/host/module_index.hpp"
#include "registry/client/credentials.hpp"
#include "registry/client/request.hpp"
#include "registry/pull/puller.hpp"
#include "sandbox/sandbox.hpp"
#include "sys/clock.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::tool_worker {

/// Where private directories are made: $TMPDIR; for root a directory of our own below /run; else "", the system's
/// default.
[[nodiscard]] std::string scratch_base(const kmod::HostPaths& host);
/// Lets `request` draw how far it is into `area`, and end at an interrupt.
void show_progress(registry::PullRequest& request, cli::LiveArea& area, cli::Context& context);

/// An image on disk; the directory is removed with it.
struct PulledImage {
    std::shared_ptr<sandbox::Confined> parser;  ///< of `index`
    sys::TempDir directory;
    registry::PullResult pulled;
    kmod::ModuleIndex index;
    std::string firmware;  ///< directory on this host with the image's firmware, "" for none
    std::vector<kmod::ImageConfigFile> config;  ///< of its modprobedDir
};

/// Where the modprobe.d files of the image of `job` are in a tree at `root`.
[[nodiscard]] kmod::ImageConfigPlace config_place(const Job& job, const std::string& root);

/// Pulls what `job` needs for the running kernel. First removes what killed runs left behind. The directory of the
/// kernel's full release is wanted; without one, that of the release without its "+".
/// Errors: of registry::pull and kmod::ModuleIndex::build; interrupted (130).
/// Where nothing names dirName, modules are in /opt, which is what KMM's Modules have, or in the root, which is what
/// KMM's worker then means: `run` is called with `directory` set to one after the other, until it does not end with
/// "kernel-not-in-image". The first error counts.
void in_default_directories(std::string& directory, bool any_directory, const std::function<void()>& run);

/// Warns of the module files of an image that cannot be used: they are no hindrance to what is wanted.
void warn_of_left_out(const kmod::ModuleIndex& index, std::vector<std::string>& warnings);

/// Digests of the files that the pull extracted; none for an image without firmware.
[[nodiscard]] kmod::FileDigests proven_files(const PulledImage& image);

[[nodiscard]] PulledImage pull_image(const Job& job, const cli::Args& args, cli::Context& context, sys::Clock& clock);

/// A request for `reference` with everything that the pull options say: limits, platform, credentials (those of `input`
/// after
/// --authfile), mirrors, certificates, cache. `warnings` is added to. Kernels, dirName and firmware are left to the
/// caller. Errors: usage (64) for bad options; those of the files named.
[[nodiscard]] registry::PullRequest prepare_request(const cli::Args& args, const std::string& reference,
                                                    std::chrono::milliseconds deadline, const kmod::HostPaths& host,
                                                    const std::vector<registry::Credential>& input,
                                                    std::vector<std::string>& warnings);

/// Lets `request` take the kernels of --kernel: one or several, or "all" by itself; without the option that of
/// `otherwise`. Errors: usage (64) for "all" and others, and for what uname -r cannot print.
void want_kernels(registry::PullRequest& request, const cli::Args& args, const std::string& otherwise);

/// The cache's directory: --cache-dir, else /var/lib/kmm-worker below --host-root.
[[nodiscard]] std::string cache_place(const cli::Args& args);
/// --cache-size in bytes. Errors: usage (64).
[[nodiscard]] std::uint64_t cache_size(const cli::Args& args);
/// imagePullPolicy as `text` says it, "" for Always; `position` is where it stands. Errors: config (78) "bad-value".
[[nodiscard]] registry::PullPolicy pull_policy(const std::string& text,
                                               const std::optional<Position>& position = std::nullopt);

/// Asked while a parser is waited for: throws interrupted, and timeout (124) "timeout" when `timeout` has passed since
/// `start`; 0 is none.
[[nodiscard]] std::function<void()> stop_of_parser(std::chrono::milliseconds timeout,
                                                   std::chrono::steady_clock::time_point start);

/// With -v, what of the sandbox is in force and what is not, on standard error. `of` is whose, "" for this process.
void tell_sandbox(const sandbox::SandboxReport& report, cli::Context& context, const std::string& of = "");
/// The same of the process that parses, if it has parsed.
void tell_parser(const sandbox::Confined& parser, cli::Context& context);

/// Runs registry::pull with progress on a terminal.
[[nodiscard]] registry::PullResult run_pull(registry::PullRequest request, const std::string& directory,
                                            cli::Context& context, sys::Clock& clock);

}  // namespace kmm::tool_worker
