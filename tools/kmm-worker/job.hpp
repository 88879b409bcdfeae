// SPDX-License-Identifier: Apache-2.0
// What one run of the worker is asked to do: a ModuleConfig from a file, standard input or options, and its
// credentials.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "cli/app.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/host/host.hpp"
#include "registry/client/credentials.hpp"
#include "registry/client/request.hpp"
#include "registry/local/policy_files.hpp"
#include "sandbox/confined.hpp"

namespace kmm::tool_worker {

/// Everything a verb needs.
struct Job {
    api::ModuleConfig config;
    bool is_of_options = false;                     ///< `config` is from the command line, not from CONFIG
    /// Of the fields in CONFIG, by their paths in small letters, as "modprobe.dirname"; "" is the whole.
    std::map<std::string, Position> places;
    std::vector<registry::Credential> credentials;  ///< pull secrets of the input
    std::vector<registry::ImagePolicy> policies;    ///< who must have signed the image, of the input
    std::string host_firmware_path;                 ///< --firmware-path, "" leaves the kernel's search path alone
    kmod::HostPaths host;
    kmod::NodeFacts node;
    std::chrono::milliseconds deadline{0};          ///< --timeout; 0 for none
    kmod::ModprobeCommand load, unload;             ///< what `args` or `rawArgs` say
    enum class Modules { of_image, of_host_first };
    Modules modules = Modules::of_image;            ///< rawArgs without -d name the host's own modules
    std::vector<std::string> warnings;              ///< about the config
    /// What is given up once the image is there and before anything in it is parsed (docs/sandbox.md).
    enum class Sandbox {
        none,   ///< more images or programs follow
        calls,  ///< what a load needs stays: the host's network for the module, files, a look at other processes
        whole,  ///< nothing is loaded: no network at all, no writes, no look into other processes
    };
    Sandbox sandbox = Sandbox::none;
    std::string report;  ///< a file that is written at the end, "" for none: the whole sandbox leaves that possible
    std::shared_ptr<sandbox::Confined>
        parser;  ///< where the bytes of images are parsed; begun before there was anything else of the job
};

/// The process that parses the bytes of images. To be called first thing, before credentials are read.
[[nodiscard]] std::shared_ptr<sandbox::Confined> start_parser();

enum class Needs { image, module_name };

/// --i-understand-this-taints.
[[nodiscard]] cli::Option force_option();

/// Options that describe a module when there is no CONFIG.
[[nodiscard]] std::vector<cli::Option> module_options();
/// --input-size, hidden: the caller's word on how long standard input is.
[[nodiscard]] cli::Option input_size_option();
/// --policy-in-input, hidden: the caller's word that an ImagePolicy follows CONFIG. A worker that does not know the
/// option refuses it.
[[nodiscard]] cli::Option policy_in_input_option();
/// Options of pulling.
[[nodiscard]] std::vector<cli::Option> pull_options();
/// --host-root.
[[nodiscard]] std::vector<cli::Option> host_options();

/// A job of this node with nothing to do yet.
[[nodiscard]] Job empty_job(const cli::Args& args);

/// A field that is not in KMM's ModuleConfig: a fault in a file that a user wrote; as KMM's own worker (kmod load), of
/// an operator that may be newer than this, only a warning, as Go's decoder passes over it.
enum class UnknownFields { refuse, warn };

/// Reads CONFIG, or the module options without it. Errors: usage (64) when there is neither or both; data (65) with all
/// faults of the document; "unsupported" for unknown modprobe arguments, "force-refused" for forcing ones without the
/// confirmation. rawArgs replace moduleName, parameters and order, as in KMM.
/// `unknown` says what a field of CONFIG is that nobody knows here.
[[nodiscard]] Job read_job(const cli::Args& args, Needs needs, UnknownFields unknown = UnknownFields::refuse);

/// read_job() of what needs an image, with a parser that was started before.
[[nodiscard]] Job read_image_job(const cli::Args& args, UnknownFields unknown = UnknownFields::refuse);

/// The same error as usage (64) if it says that a path or reference is wrong (65): for those of the command line.
[[nodiscard]] Error as_usage_fault(const Error& error);

/// Where the host's facts are, with --host-root applied. Errors: io (74) "host-not-mounted" unless that is a directory.
[[nodiscard]] kmod::HostPaths host_paths(const cli::Args& args);

/// Before a verb runs programs: as sys::take_trusted_path, with a warning for each directory that is taken out.
void take_trusted_path(const std::string& root, cli::Context& context);
/// Facts of this node; its name is $NODE_NAME (set by worker Pods) if there is one.
[[nodiscard]] kmod::NodeFacts this_node(const kmod::HostPaths& host);
/// Where neither /proc nor /sys of the node can be seen, "no module is live" would be a guess. Errors: io (74)
/// "host-not-mounted".
void require_host(const kmod::HostPaths& host);
/// A kernel without a release would be taken for another one. Errors: io (74) "host-not-mounted".
void require_release(const kmod::HostPaths& host, const kmod::NodeFacts& node);
/// Refuses what uname -r cannot print: it becomes a part of paths and of commands. `option` is for the message. Errors:
/// usage (64) "bad-value".
void require_release_name(const std::string& option, const std::string& release);
/// --timeout, 0 if not given.
[[nodiscard]] std::chrono::milliseconds timeout_of(const cli::Args& args);

/// Refuses a config that is for another kernel than the running one: checks_failed (10) "kernel-differs". A "+" at the
/// end does not count.
void require_kernel(const Job& job);
/// Errors: no_permission (77) "no-permission" without CAP_SYS_MODULE.
void require_capability(const kmod::HostPaths& host, const std::string& what);

/// The part of the config that decides what is loaded.
[[nodiscard]] kmod::LoadRequest request_of(const Job& job);

/// A request for `reference` with the pull options applied; kernels and firmware are left to the caller.
/// Errors: usage (64) for a bad --limit or --platform.
[[nodiscard]] registry::PullRequest pull_request(const cli::Args& args, const std::string& reference,
                                                 std::chrono::milliseconds deadline);

/// Whether a file of this name is a YAML or JSON document: by its end.
[[nodiscard]] bool is_document_name(std::string_view name);

}  // namespace kmm::tool_worker
