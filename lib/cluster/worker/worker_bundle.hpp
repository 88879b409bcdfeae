// SPDX-License-Identifier: Apache-2.0
// kmm-worker in one file, and the shell scripts that start it on a node and bring it there. The scripts need a POSIX sh
// and of tools what busybox has.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kmm::cluster {

/// What `kmm-worker bundle` writes.
struct WorkerBundle {
    std::string bytes;
    std::string digest;   ///< SHA-256 of the bytes, hexadecimal
    std::string machine;  ///< that it is for, as uname -m
};

/// On a node the file is kmm-worker-DIGEST.run in this directory; KMM_BUNDLE_DIR in the node's environment names
/// another.
inline constexpr const char* k_bundle_directory = "/var/lib/kmm-tools";

/// Starts the node's own kmm-worker if it has `version`, or says that there is none, and which there is instead. The
/// worker's arguments follow the script's name.
[[nodiscard]] std::string own_worker_script(const std::string& version);
/// Starts the bundle that the first argument, a digest, names, or says that it is not there.
[[nodiscard]] std::string bundle_script();
/// Takes a bundle from standard input into its place: a file that is cut off or altered leaves nothing. Arguments: its
/// digest and machine. Then earlier bundles go that this script brought and no process runs. Says what is in the way
/// after k_not_brought_marker.
[[nodiscard]] std::string bring_script();

/// Written to stderr on the node, before what is in the way of a bundle.
inline constexpr std::string_view k_not_brought_marker = "kmm-worker-not-brought ";
/// Written to stderr on the node, before what a worker of another version prints for --version.
inline constexpr std::string_view k_version_marker = "kmm-worker-version ";

/// Why a bundle could not be brought to `node`: "worker-not-brought". `words` follow k_not_brought_marker.
[[nodiscard]] Error not_brought(const std::string& node, const std::string& words, const WorkerBundle& bundle);

}  // namespace kmm::cluster
