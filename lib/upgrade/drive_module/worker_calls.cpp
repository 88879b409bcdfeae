// SPDX-License-Identifier: Apache-2.0
// Questions to nodes that tell people when the answer takes long.
#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/actor_parts/worker_steps.hpp"
#include "upgrade/drive_module/worker_way.hpp"

namespace kmm::drive {

using upgrade::EventKind;

namespace {

/// How often a node is asked to check an image whose answers get lost.
constexpr int k_checks = 3;
constexpr std::chrono::milliseconds k_before_next_check{1000};

}  // namespace

Watchdog::Watch WorkerWay::watch(const std::string& name, const std::string& what, std::chrono::milliseconds patience,
                                  const Deadline& deadline) {
    const auto silence = silence_from_now(tools_.clock, what, deadline.left());
    return watchdog_.watch(patience, [this, name, silence] {
        auto told = tools_.event(EventKind::observed, name, "");
        told.message = silence.text();
        told.facts = silence.facts();
        tools_.recorder.record(told);
    });
}

void WorkerWay::end_watch(Watchdog::Watch& watched, const std::string& name, std::chrono::milliseconds begin) {
    if (!watched.end()) return;
    const auto took = std::chrono::floor<std::chrono::seconds>(tools_.clock.monotonic() - begin);
    tell(tools_.recorder, name, fmt::format("answered after {}", base::format_duration(took)));
}

Reply<WorkerResult> WorkerWay::call(const std::string& verb, const std::string& name, const std::string& text,
                                    const Deadline& deadline) {
    const auto begin = tools_.clock.monotonic();
    auto watched = watch(name, verb, k_silence_of_work, deadline);
    auto reply = tools_.worker.run(verb, name, text, deadline.left());
    if (reply.settled()) end_watch(watched, name, begin);
    else record_lost(name, *reply.error, "the node is asked what it runs");
    if (reply.value) record_warnings(name, reply.value->warnings);
    return reply;
}

void WorkerWay::record_warnings(const std::string& name, const std::vector<std::string>& warnings) {
    for (const auto& warning : warnings) {
        const auto text = warnings_.tell(name, warning);
        if (text) tell(tools_.recorder, name, *text);
    }
}

void WorkerWay::record_lost(const std::string& name, const Error& error, const std::string& then) {
    auto lost = tools_.event(EventKind::observed, name, "");
    lost.reason = error.code();
    lost.message = fmt::format("{}{}; {}", error.message(), transport_cause(error), then);
    tools_.recorder.record(lost);
}

Reply<WorkerResult> WorkerWay::check_again(const std::string& name, const std::string& text, const Deadline& deadline) {
    for (int tries = 1;; ++tries) {
        auto reply = call("check", name, text, deadline);
        if (reply.settled() || tries == k_checks || deadline.passed()) return reply;
        if (tools_.interrupted() || !tools_.clock.sleep_for(k_before_next_check) || tools_.interrupted())
            throw Leave{StepEnd::left};
        // Checked is a kernel: it may be another one when the node is back.
        const auto seen = must_look(name, deadline);
        tools_.require_same_boot(name, seen.facts);
    }
}

}  // namespace kmm::drive
