// SPDX-License-Identifier: Apache-2.0
// The documents kmm-worker prints, and their form for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmod/host/host.hpp"
#include "kmod/load/procedure.hpp"
#include "registry/pull/rewrite.hpp"
#include "registry/unpack/extracted.hpp"
#include "value/node.hpp"

namespace kmm::tool_worker {

/// A module file of an image that was signed, or looked at for that.
struct SignedFile {
    registry::RewrittenFile file;
    std::string action;  ///< signed, replaced (an older signature), kept, unchanged (it had this very signature)
    std::optional<kmod::ModuleSignature> kept;  ///< the signature of a file that was kept
};

/// kind WorkerResult.
struct WorkerResult {
    std::string verb;     ///< check, load, unload, pull, sign
    std::string outcome;  ///< passed, loaded, already-loaded, unloaded, not-loaded, kept, pulled, signed, unchanged
    kmod::NodeFacts node;
    std::string image, digest;
    std::vector<kmod::ModuleReport> modules;
    registry::ExtractedFiles files;     ///< of pull
    std::string source, source_digest;  ///< of sign: the image as it was
    std::optional<kmod::ModuleSignature> signature;  ///< of sign: what the modules have now that were not kept
    std::vector<SignedFile> signed_files;
    std::map<std::string, std::uint64_t> durations_ms;
    std::vector<std::string> warnings;
    std::string new_taint;  ///< as in kmod::Report
    bool forced = false;    ///< checks of the kernel were switched off, as the user confirmed
};

/// The document, with at most `files` of the extracted files.
[[nodiscard]] value::Node to_node(const WorkerResult& result, std::size_t files);
/// kind ModuleStatus of one module; `live` nullopt is state absent.
[[nodiscard]] value::Node module_node(const std::string& name, const std::optional<kmod::LiveModule>& live);
/// {"name","kernel","bootID","architecture"}.
[[nodiscard]] value::Node node_node(const kmod::NodeFacts& node);

/// `text`, or "-" for none, in a table.
[[nodiscard]] inline std::string dash(const std::string& text) { return text.empty() ? "-" : text; }
/// Prints the result in the format of -o; warnings go to standard error for people.
void print_result(const WorkerResult& result, cli::Context& context);

/// The document as JSON of at most 4096 bytes, which is what the kubelet reads. Of what is too much, warnings and files
/// go first, then findings, of which the first stay as far as there is room ("codes" names those of all), then modules
/// but the main one, then the ends of long texts; verb, outcome, code, exit and message never go. Then "truncated" is
/// true.
[[nodiscard]] std::string termination_text(const value::Node& document);

/// True if somebody will see the digests of a result's files: in its document, in its wide table, or in the termination
/// message.
[[nodiscard]] bool shows_digests(const cli::Context& context);

/// Leaves the result, or the error, where the kubelet looks for it (/dev/termination-log, or $KMM_TERMINATION_LOG where
/// the Pod has another terminationMessagePath). Does nothing
/// outside of a Pod; failures are ignored.
void leave_termination_message(const value::Node& document);

/// As leave_termination_message, of a document that is read whole or not at all and that is printed, too: where it is
/// longer than a message, that is {"kind": "PodLog", "bytes": of its shortest JSON}, and who has made the Pod reads its
/// log.
void leave_whole_message(const value::Node& document);
/// The file of the termination message stays within reach of a process that enters another root.
void keep_termination_log();

/// The result that `fill` writes. If it throws Error, the warnings written so far go with the error: they may say what
/// is behind it.
[[nodiscard]] WorkerResult with_warnings(const std::function<void(WorkerResult&)>& fill);

/// Runs `body`, which returns a WorkerResult; leaves the termination message, prints, returns ok. An Error passes
/// through: the program leaves that of every error, those of the command line too.
[[nodiscard]] Exit run_and_report(cli::Context& context, const std::function<WorkerResult()>& body);

}  // namespace kmm::tool_worker
