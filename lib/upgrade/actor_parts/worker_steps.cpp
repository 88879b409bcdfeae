// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/worker_steps.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "upgrade/drive/actor.hpp"

namespace kmm::drive {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_first_wait{1000}, k_longest_wait{10'000};
constexpr milliseconds k_question{60'000};  ///< a question takes at most this long; a step as long as there is time
constexpr int k_lost_jobs = 3;

/// How a command that hangs on the node is ended, if its process is known; it fails then, and is not begun again. Its
/// child alone would not do: that may be a shell, whose own children live on with what they have locked.
std::string way_to_end(const Error& error) {
    for (const auto& [key, text] : error.details())
        if (key == "pid")
            return fmt::format("; if it hangs, end everything below process {} on the node, pstree -p {} shows it",
                               text, text);
    return {};
}

}  // namespace

std::string transport_cause(const Error& error) {
    for (const auto& [key, text] : error.details())
        if (key == "transport") return ": " + text.substr(text.rfind('\n') + 1);
    return "";
}

Error node_gone(const std::string& node, std::string hint) {
    return Error(Exit::not_found, "node-gone", fmt::format("there is no Node {}, and it does not answer", node))
        .hint(std::move(hint));
}

void WorkerSteps::pause(milliseconds& wait) {
    if (interrupted_() || !clock_.sleep_for(wait) || interrupted_()) throw Leave{StepEnd::left};
    wait = std::min(wait * 2, k_longest_wait);
}

bool WorkerSteps::is_busy(const Error& error) const {
    return std::find(group_.busy.begin(), group_.busy.end(), error.code()) != group_.busy.end();
}

cluster::Reply<value::Node> WorkerSteps::call(const std::string& node, const std::vector<std::string>& words,
                                              const std::string& kind, milliseconds timeout,
                                              const std::string& input) {
    std::vector<std::string> arguments{group_.name};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const cluster::WorkerCall call{node, std::move(arguments), input, timeout};
    auto reply = runner_.run(call);
    if (auto failed = cluster::failure<value::Node>(reply, call, kind)) return std::move(*failed);
    cluster::Reply<value::Node> answer;
    answer.value = std::move(reply.document);
    return answer;
}

cluster::Reply<value::Node> WorkerSteps::facts_once(const std::string& node, milliseconds timeout,
                                                    const std::vector<std::string>& options) {
    std::vector<std::string> words{"facts"};
    words.insert(words.end(), options.begin(), options.end());
    auto reply = call(node, words, group_.facts_kind, timeout, "");
    const bool is_cut_off = reply.settled() && !reply.has_result && reply.error->code() == "worker-failed" &&
                            reply.error->exit() != Exit::no_permission;
    return is_cut_off && !interrupted_() ? call(node, words, group_.facts_kind, timeout, "") : std::move(reply);
}

cluster::Reply<value::Node> WorkerSteps::step_once(const std::string& node, const std::vector<std::string>& words,
                                                   milliseconds timeout, const std::string& input) {
    auto reply = call(node, words, group_.step_kind, timeout, input);
    if (reply.value) tell_warnings(node, *reply.value);
    return reply;
}

void WorkerSteps::tell_warnings(const std::string& node, const value::Node& document) {
    const auto* warnings = document.find("warnings");
    if (warnings == nullptr) return;
    for (const auto& warning : warnings->items())
        if (const auto text = warnings_.tell(node, warning.text())) tell_(node, *text);
}

value::Node WorkerSteps::facts(const std::string& node, const Deadline& deadline) {
    auto wait = k_first_wait;
    for (bool is_told = false;;) {
        auto reply = facts_once(node, std::min(deadline.left(), k_question));
        if (reply.value) return std::move(*reply.value);
        if (reply.settled() || deadline.passed()) throw Error(*reply.error);
        if (!is_told)
            tell_(node, fmt::format("{}{}; it is asked again", reply.error->message(), transport_cause(*reply.error)));
        is_told = true;
        if (unanswered_) unanswered_(node);
        pause(wait);
    }
}

value::Node WorkerSteps::step(const std::string& node, const std::vector<std::string>& words,
                              const Deadline& deadline, const std::string& input,
                              const std::function<void()>& before_again) {
    auto wait = k_first_wait;
    int lost_jobs = 0;
    bool may_go_on = false;
    std::string told;
    for (;;) {
        auto reply = step_once(node, words, deadline.left(), input);
        if (reply.value) return std::move(*reply.value);
        const auto& error = *reply.error;
        may_go_on = may_go_on || reply.has_begun;
        if (reply.settled() && reply.has_result && !is_busy(error)) {
            if (error.code() != "job-lost" || ++lost_jobs == k_lost_jobs) throw Error(error);
            tell_(node, error.message() + "; it is begun again");
        } else if (reply.settled() && !reply.has_begun && (error.exit() != Exit::other || deadline.passed())) {
            if (!may_go_on) throw Error(error);
            throw Error(error).hint(fmt::format("{}{}{} {} had begun there and may go on", error.hint(),
                                                error.hint().empty() ? "" : "; ", group_.name, words.front()));
        } else if (deadline.passed()) {
            if (!reply.settled() && !is_busy(error)) throw Error(error);
            throw Error(Exit::timeout, "step-timeout",
                        fmt::format("node {}: {} {} is still under way there after the time limit", node, group_.name,
                                    words.front()))
                .detail("last", error.message())
                .hint("kmm-upgrade resume waits for it; --node-timeout gives it more time" + way_to_end(error));
        } else {
            if (unanswered_ && !reply.settled()) unanswered_(node);
            const auto text = may_go_on ? error.message() + "; the step goes on there and is asked for again"
                                        : error.message() + transport_cause(error) + "; it is asked again";
            if (text != told) tell_(node, text);
            told = text;
        }
        pause(wait);
        if (before_again) before_again();
    }
}

}  // namespace kmm::drive
