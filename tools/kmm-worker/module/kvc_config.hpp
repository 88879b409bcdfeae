// SPDX-License-Identifier: Apache-2.0
// Configuration of kmods-via-containers, read as data. There it is sourced by a shell; here nothing of it is ever run
// or expanded.
#pragma once

#include <string>
#include <vector>

#include "kmod/host/host.hpp"

namespace kmm::tool_worker {

/// /etc/kvc/kmods-via-containers.conf and /etc/kvc/NAME.conf.
struct KvcConfig {
    std::string name;
    std::string runtime = "podman";   ///< KVC_CONTAINER_RUNTIME
    std::string build_context;        ///< KMOD_CONTAINER_BUILD_CONTEXT
    std::string build_file;           ///< KMOD_CONTAINER_BUILD_FILE, "" for the runtime's default
    std::string version;              ///< KMOD_SOFTWARE_VERSION
    std::vector<std::string> modules; ///< KMOD_NAMES, in load order
    std::string image;                ///< KMOD_CONTAINER_IMAGE: an image in a registry; this tool's own addition
    std::vector<std::string>
        doubts;  ///< keys that look like misspelt ones, each a warning with its place; they are not used
};

/// Errors: usage (64) for a name that is none; not_found (66) "config-not-found"; data (65) "bad-config" with position
/// for anything but comments and KEY=VALUE as a shell reads them, without expansions, "missing-field" without
/// KMOD_NAMES, "bad-value" for a name that is no module's, and for a value that a container runtime would take for an
/// option or for another image.
[[nodiscard]] KvcConfig read_kvc_config(const kmod::HostPaths& host, const std::string& name);

/// As root: what an image is built of is run as root later. A build context and a build file that are no URLs, with all
/// that they consist of, may be changed by root alone. Errors: no_permission (77) "untrusted-file".
void require_trusted_build(const KvcConfig& config);

/// The image that KVC's build makes: NAME-VERSION:KERNEL, with "_" for the "+" that tags cannot have.
[[nodiscard]] std::string kvc_image(const KvcConfig& config, const std::string& kernel);

}  // namespace kmm::tool_worker
