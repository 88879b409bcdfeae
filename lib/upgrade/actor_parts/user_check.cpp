// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/user_check.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "upgrade/actor_parts/program_end.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/engine/pace.hpp"
#include "value/writer.hpp"

namespace kmm::drive {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t k_output_lines = 3;
constexpr std::size_t k_line_max = 300;
constexpr std::size_t k_output_max = 64U << 10U;  ///< the end of each stream

/// The beginning of `line`, as much as is k_line_max bytes on a screen: a program may print anything.
std::string bounded(std::string_view line) {
    if (line.size() <= k_line_max && base::escape(line).size() <= k_line_max) return std::string(line);
    std::size_t size = std::min(line.size(), k_line_max);
    const auto is_in_character = [&] {
        return size < line.size() && (static_cast<unsigned char>(line[size]) & 0xc0U) == 0x80U && base::is_utf8(line);
    };
    while (size > 0 && (base::escape(line.substr(0, size)).size() > k_line_max || is_in_character())) --size;
    return std::string(line.substr(0, size)) + "...";
}

/// The last lines, in one.
std::string end_of_output(const std::string& text) {
    std::vector<std::string> lines;
    for (const auto line : base::last_lines(text, k_output_lines)) lines.push_back(bounded(line));
    return base::join(lines, " | ");
}

}  // namespace

void ask_user_check(const upgrade::Options& options, const value::Node& document, const Deadline& deadline,
                    const std::function<bool()>& interrupted) {
    if (options.check.empty()) return;
    const auto words = upgrade::command_words(options.check);
    if (!words)
        throw Error(Exit::config, "bad-value", fmt::format("the record has the check command \"{}\"", options.check));
    sys::ProcessSpec spec;
    spec.argv = *words;
    spec.directory = options.command_directory;
    spec.stdin_text = value::to_json(document) + "\n";
    spec.timeout = deadline.left();
    spec.output_max = k_output_max;
    spec.keep_end = true;
    spec.cancelled = interrupted;
    sys::require_trusted_program(words->front(), spec.directory);
    const auto result = sys::run_process(spec);
    if (result.cancelled) throw Leave{StepEnd::left};
    const auto how = program_fault(result, milliseconds(options.node_timeout_ms));
    if (how.empty()) return;
    Error error(Exit::unhealthy, "check-failed", fmt::format("the check {} {}", words->front(), how));
    const auto output = end_of_output(result.out + "\n" + result.err);
    if (!output.empty()) error.detail("output", output);
    throw error.hint("find out what it wants: " + options.check);
}

void soak(Recorder& recorder, sys::Clock& clock, const std::string& node, value::Node facts,
          const std::function<bool()>& interrupted) {
    const milliseconds duration(recorder.header().options.soak_ms);
    auto begun = node_event(recorder, upgrade::EventKind::observed, node, "");
    begun.message = "watched for " + base::format_duration(duration);
    if (!facts.is_null()) begun.facts = std::move(facts);
    recorder.record(begun);
    const auto end = clock.monotonic() + duration;
    while (clock.monotonic() < end) {
        const auto pause = std::min(end - clock.monotonic(), milliseconds(1000));
        if (interrupted() || !clock.sleep_for(pause) || interrupted()) throw Leave{StepEnd::left};
    }
}

}  // namespace kmm::drive
