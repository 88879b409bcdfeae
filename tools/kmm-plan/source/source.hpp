// SPDX-License-Identifier: Apache-2.0
// Where kmm-plan reads its objects from.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "cli/app.hpp"
#include "plan/lint/lint.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

class LiveCluster;

/// --cluster and its kin, and -f.
[[nodiscard]] std::vector<cli::Option> source_options();

/// Everything that was read, and what is wrong with it.
struct Source {
    api::Objects objects;
    Diagnostics diagnostics;
    std::vector<api::Module> replaced;  ///< Modules of the cluster in whose place documents of -f stand, sorted
    value::Node
        description;  ///< {"cluster": DIR, "context": NAME, "server": URL, "files": [...]}, absent parts left out
    std::string cluster;      ///< name of the context of a live cluster, "" otherwise
    plan::SecretNames absent_secrets;  ///< that Modules of a live cluster name, and that it does not have
    std::shared_ptr<LiveCluster> live;  ///< nullptr for anything but an API server
};

/// Reads the cluster, and on top of it -f and `more_files`: each context of --context, or one source. The cluster is
/// what an option says, else documents alone if there are any, else KMM_CLUSTER, else what kubectl would find. Faults
/// are in the diagnostics. Waiting for an API server is said on standard error. Errors: usage "no-source" if there is
/// none of them, usage "several-sources" for a directory and an API server at once, not_found "cluster-not-found",
/// "kmm-not-installed" when an API server has no Modules and -f adds none; those of kube. Files below directories of -f
/// for which `is_left_out` is true are left out, beside those of --ignore.
using IsLeftOut = std::function<bool(std::string_view path)>;
[[nodiscard]] std::vector<Source> read_sources(const cli::Args& args, cli::Context& context,
                                               const std::vector<std::string>& more_files = {},
                                               const IsLeftOut& is_left_out = {});

/// read_sources for verbs about one cluster. Errors: also usage "one-context".
[[nodiscard]] Source read_source(const cli::Args& args, cli::Context& context,
                                 const std::vector<std::string>& more_files = {}, const IsLeftOut& is_left_out = {});

/// The files that the objects and findings come from, and those that were named, sorted.
[[nodiscard]] std::vector<std::string> read_files(const Source& source);

/// The rules about Secrets, for documents or for what an API server has.
void check_secrets(Source& source);

/// Removes what only `validate` is asked for.
void drop_notes(Diagnostics& diagnostics);

/// read_source, and the rules of Modules. Errors: as read_source; data (or not_found) with all faults if there is any.
/// Warnings go to standard error unless -q is given; those with code `held` stay in the diagnostics for the caller.
[[nodiscard]] Source read_valid_source(const cli::Args& args, cli::Context& context, const IsLeftOut& is_left_out = {},
                                       std::string_view held = {});

/// The same for each context.
[[nodiscard]] std::vector<Source> read_valid_sources(const cli::Args& args, cli::Context& context);

/// The nodes that -l and `names` select, in order. Errors: not_found "node-not-found" with the nearest name; usage for
/// a bad selector. Empty `names`: all nodes.
[[nodiscard]] std::vector<const api::Node*> select_nodes(const Source& source, const cli::Args& args,
                                                         const std::vector<std::string>& names);

/// The same, for verbs that judge: an empty selection must not end as "all well". Errors: also checks_failed "no-nodes"
/// if -l leaves none of the nodes that were read.
[[nodiscard]] std::vector<const api::Node*> require_nodes(const Source& source, const cli::Args& args,
                                                          const std::vector<std::string>& names);

/// Removes the nodes that require_nodes leaves out. Errors: those of require_nodes.
void keep_nodes(Source& source, const cli::Args& args, const std::vector<std::string>& names);

/// The Module "NAMESPACE/NAME", or "NAME" if it is unique or -n is given. Errors: not_found "module-not-found" with the
/// nearest name, usage "ambiguous-module".
[[nodiscard]] const api::Module& find_module(const Source& source, const cli::Args& args, const std::string& name);

/// " --node node-a --cluster ./fleet": those of `options` that stand on the command line, as words of a shell, for a
/// command that is to be about the same nodes and the same cluster.
[[nodiscard]] std::string given_options(const cli::Args& args, const std::vector<std::string_view>& options);

/// The same for what names the cluster and what is assumed about its nodes; files that validate takes as -f.
[[nodiscard]] std::string place_options(const cli::Args& args, const cli::Context& context);

/// Adds `place` to hints that are a command `kmm-plan why ...`, which finds nothing without it.
void place_hints(Diagnostics& diagnostics, std::string_view place);

/// For verbs that take -n as a filter: a misspelt namespace must not end as "nothing to do". Errors: not_found
/// "no-modules" if something was read of namespaces and nothing of the one of -n.
void check_namespace(std::span<const Source> sources, const cli::Args& args);

}  // namespace kmm::tool_plan
