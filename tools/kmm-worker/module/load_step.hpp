// SPDX-License-Identifier: Apache-2.0
// Loading and unloading as steps of their own, for the verbs that do more than one.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/load/procedure.hpp"
#include "sys/clock.hpp"

namespace kmm::tool_worker {

/// Pulls, checks and loads what `job` says, under the node's lock. Errors: those of `load`.
[[nodiscard]] WorkerResult load_job(const Job& job, const cli::Args& args, cli::Context& context);
/// Unloads what `job` says, under the node's lock. Errors: those of `unload`.
[[nodiscard]] WorkerResult unload_job(const Job& job, const cli::Args& args);
/// --verify-after.
[[nodiscard]] cli::Option verify_option();
/// --wait, --policy and --restore-in-tree.
[[nodiscard]] std::vector<cli::Option> unload_options();

/// CONFIG.
[[nodiscard]] cli::Positional config_positional();
/// --firmware-path.
[[nodiscard]] cli::Option firmware_option();
/// Under the names by which KMM calls its worker, CONFIG is the operator's.
[[nodiscard]] UnknownFields unknown_fields(const cli::Context& context);

/// Milliseconds since `start`.
[[nodiscard]] std::uint64_t since(const sys::Clock& clock, std::chrono::milliseconds start);
/// What is left of --timeout; the default without one. A system call that has begun cannot be taken back, so none is
/// begun with less than two seconds to go, or half of a short --timeout. Errors: timeout (124).
[[nodiscard]] std::chrono::milliseconds left(const Job& job, const sys::Clock& clock, std::chrono::milliseconds start,
                                             std::chrono::milliseconds otherwise);
/// The result of `verb` on this node, with nothing done yet and the warnings about CONFIG.
[[nodiscard]] WorkerResult start_result(const std::string& verb, const Job& job);
/// What became of the main module.
[[nodiscard]] std::string outcome_of(const kmod::Report& report);
/// Adds what was done with modules.
void take(WorkerResult& result, kmod::Report report);
/// modprobe --first-time: success without a change is an error. Errors: refused (13)
/// "module-refused".
void require_first_time(bool wanted, const std::string& outcome, const std::string& module);

}  // namespace kmm::tool_worker
