// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/hooks.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "sys/process.hpp"
#include "sys/trust.hpp"
#include "upgrade/actor_parts/program_end.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/programs.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {
namespace {

constexpr int k_try_again = 75;
constexpr std::chrono::milliseconds k_pause{5000};
constexpr std::size_t k_hook_output = 64U << 10U;
constexpr std::string_view k_any_node = "node";

std::string_view prefix_of(Hooks::When when) { return when == Hooks::When::before ? "pre-" : "post-"; }

Error hook_error(const std::string& name, const std::string& how, const sys::ProcessResult& result) {
    Error error(Exit::unhealthy, "hook-failed", fmt::format("hook {} {}", base::escape(name), how));
    auto printed = base::last_line(result.err);
    if (printed.empty()) printed = base::last_line(result.out);
    if (!printed.empty()) error.detail("output", base::escape(printed.substr(0, 300)));
    return std::move(error).hint("repair what the hook looks at, or move it out of the directory");
}

}  // namespace

Hooks::Hooks(std::string directory, const upgrade::Header& run, sys::Clock& clock, std::function<bool()> interrupted)
    : directory_(std::move(directory)),
      from_(upgrade::kubernetes::version_before(run)),
      to_(run.to_version),
      lineage_(run.lineage),
      clock_(clock),
      interrupted_(std::move(interrupted)) {}

std::vector<std::string> hooks_for(const std::string& directory, Hooks::When when, const std::string& state,
                                   const std::string& node) {
    std::vector<std::string> names;
    if (directory.empty()) return names;
    const std::string prefix(prefix_of(when));
    if (node.empty()) names = {prefix + state};
    else names = {prefix + std::string(k_any_node), prefix + state + "." + node};
    // What is for every node encloses what is for one.
    if (when == Hooks::When::after) std::reverse(names.begin(), names.end());
    std::erase_if(names, [&](const std::string& name) {
        std::error_code failed;
        const auto status = std::filesystem::status(directory + "/" + name, failed);
        if (failed && status.type() != std::filesystem::file_type::not_found)
            throw from_errno(failed.value(), fmt::format("cannot look for hook {}", base::escape(name)));
        return !std::filesystem::exists(status);
    });
    return names;
}

std::vector<std::string> Hooks::run(When when, const std::string& state, const std::string& node,
                                    const Deadline& deadline) const {
    auto names = hooks_for(directory_, when, state, node);
    for (const auto& name : names) run_one(name, state, node, deadline);
    return names;
}

void Hooks::run_one(const std::string& name, const std::string& state, const std::string& node,
                    const Deadline& deadline) const {
    sys::ProcessSpec spec;
    spec.argv = {directory_ + "/" + name};
    spec.extra_env = {{"FROM", from_}, {"TO", to_}, {"STATE", state}, {"NODE", node}, {"UUID", lineage_}};
    spec.output_max = k_hook_output;
    spec.keep_end = true;
    spec.cancelled = interrupted_;
    for (;;) {
        sys::require_trusted(spec.argv.front(), "program");
        spec.timeout = deadline.left();
        const auto result = sys::run_process(spec);
        if (result.cancelled) throw Leave{StepEnd::left};
        if (result.timed_out) throw hook_error(name, "did not end in time", result);
        const auto how = program_fault(result, spec.timeout.value_or(std::chrono::milliseconds(0)));
        if (how.empty()) return;
        const bool asks_for_more_time = result.signal == 0 && result.exit_code == k_try_again;
        if (!asks_for_more_time || deadline.passed()) throw hook_error(name, how, result);
        if (!clock_.sleep_for(std::min(k_pause, deadline.left())) || interrupted_()) throw Leave{StepEnd::left};
    }
}

void require_hooks(const std::string& directory, const upgrade::Table& table, const std::vector<std::string>& nodes) {
    const auto names = programs_of(directory, "hook-dir");
    std::vector<std::string> known{"pre-node", "post-node", "pre-upgrade-complete"}, unknown;
    for (const auto& stage : table.stages())
        for (const auto* prefix : {"pre-", "post-"}) known.push_back(prefix + stage.during);
    for (const auto& name : names) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        const auto dot = name.find('.');
        const auto state = name.substr(0, dot);
        const bool is_state = std::find(known.begin() + 3, known.end(), state) != known.end();
        if (dot == std::string::npos || !is_state ||
            std::find(nodes.begin(), nodes.end(), name.substr(dot + 1)) == nodes.end())
            unknown.push_back(name);
    }
    if (unknown.empty()) return;
    Error error(Exit::usage, "unknown-hook",
                fmt::format("--hook-dir: expected hooks in {}, found other names: they would never run",
                            base::escape(directory)));
    for (const auto& name : unknown) {
        const auto dot = name.find('.');
        const auto near = base::nearest(name.substr(0, dot), known);
        error.detail("found",
                     base::escape(name) + (near && (*near != name.substr(0, dot))
                                               ? fmt::format(" (did you mean {}?)",
                                                             *near + (dot == std::string::npos ? "" : name.substr(dot)))
                                               : ""));
    }
    throw std::move(error).hint(
        "pre-STATE or post-STATE, as pre-upgrading-kubelets; with .NODE for one node; pre-node and post-node for all");
}

}  // namespace kmm::drive
