// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kernel/reboot.hpp"

#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::drive {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_first_pause{250};
constexpr milliseconds k_question{15'000};    ///< for one question to a node that may be going down
constexpr milliseconds k_ask_again{120'000};  ///< a node that has not gone down by then is asked to reboot again

}  // namespace

SystemSight read_system(const std::string& node, const value::Node& document) {
    SystemSight sight{document.get_string({"kernel"}), document.get_string({"bootID"}),
                      document.get_string({"architecture"})};
    if (sight.kernel.empty() || sight.boot_id.empty())
        throw Error(Exit::other, "worker-failed", fmt::format("node {}: its facts have no kernel or no boot id", node));
    if (document.get_string({"job", "state"}) == "running") {
        sight.job = document.get_string({"job", "key"});
        if (sight.job.empty()) sight.job = "unknown";
    }
    return sight;
}

SystemAgent::SystemAgent(cluster::NodeRunner& runner, sys::Clock& clock, std::function<bool()> interrupted,
                         WorkerSteps::Teller tell, WorkerSteps::Unanswered unanswered)
    : clock_(clock),
      tell_(tell),
      steps_(runner, clock, std::move(interrupted), std::move(tell), {"node", "NodeSystem", "NodeSystemStep"},
             std::move(unanswered)) {}

SystemSight SystemAgent::facts(const std::string& node, const Deadline& deadline) {
    return read_system(node, steps_.facts(node, deadline));
}

std::optional<SystemSight> SystemAgent::glance(const std::string& node, milliseconds timeout) {
    const auto reply = steps_.facts_once(node, timeout);
    return reply.value ? std::optional(read_system(node, *reply.value)) : std::nullopt;
}

std::string SystemAgent::install(const std::string& node, const std::string& release, const std::string& command,
                                 const Deadline& deadline) {
    const auto document = steps_.step(node, {"install", "--to", release, "--command", command}, deadline);
    return document.get_string({"message"});
}

bool SystemAgent::ask_for_reboot(const std::string& node, const std::string& before, const Deadline& deadline) {
    const auto reply =
        steps_.step_once(node, {"reboot", "--boot-id", before}, std::min(deadline.left(), milliseconds(60'000)));
    if (reply.value) return true;
    if (reply.settled() && reply.has_result) throw Error(*reply.error);
    tell_(node, reply.error->message() + "; the node may be shutting down");
    return false;
}

SystemSight SystemAgent::reboot_into(const std::string& node, const std::string& release, const std::string& before,
                                     const SystemSight& now, const Deadline& deadline) {
    return now.kernel == release ? now : reboot(node, release, before, now, deadline);
}

SystemSight SystemAgent::reboot(const std::string& node, const std::string& release, const std::string& before,
                                const SystemSight& now, const Deadline& deadline) {
    auto seen = now;
    std::optional<Error> silence;
    auto asked = clock_.monotonic();
    bool is_asked = seen.boot_id == before && ask_for_reboot(node, before, deadline);
    for (auto pause = k_first_pause; seen.boot_id == before;) {
        if (deadline.passed()) break;
        steps_.pause(pause);
        const auto reply = steps_.facts_once(node, std::min(deadline.left(), k_question));
        silence = reply.error;
        if (reply.value) seen = read_system(node, *reply.value);
        if (!reply.value || seen.boot_id != before || clock_.monotonic() - asked < k_ask_again) continue;
        asked = clock_.monotonic();
        try {
            is_asked = ask_for_reboot(node, before, deadline) || is_asked;
        } catch (const Error& error) {
            // A node that is shutting down refuses a second reboot.
            tell_(node, error.message() + transport_cause(error) + "; the node may be shutting down");
        }
    }
    if (seen.boot_id != before) {
        require_kernel(node, seen, release);
        return seen;
    }
    if (silence) throw not_back(node, *silence, is_asked);
    throw Error(Exit::timeout, "node-not-rebooted",
                fmt::format("node {} was asked to reboot and still runs the same boot", node))
        .hint(fmt::format(
            "find out on the node what holds the shutdown up: systemctl list-jobs; then kmm-upgrade retry {}", node));
}

bool is_no_answer(const Error& error) {
    return error.code() == "node-unreachable" || error.code() == "worker-not-found" ||
           error.code() == "worker-not-brought" || error.code() == "worker-failed";
}

Error not_back(const std::string& node, const Error& cause, bool is_asked) {
    const auto retry = fmt::format("kmm-upgrade retry {}", node);
    Error error(Exit::timeout, "node-not-back",
                is_asked ? fmt::format("node {} did not come back after its reboot", node)
                         : fmt::format("node {} may have been asked to reboot, and cannot be reached", node));
    error.hint("look at its console; once it is up: " + retry);
    if (cause.code() != "node-unreachable") {
        // It is up: what was changed with the kernel has taken the worker, the login or the shell.
        std::string_view says = cause.message();
        const auto name = fmt::format("node {}: ", node);
        if (says.starts_with(name)) says.remove_prefix(name.size());
        error = Error(Exit::timeout, "node-not-back",
                      fmt::format("node {} {} asked to reboot, and its facts cannot be read: {}", node,
                                  is_asked ? "was" : "may have been", says));
        error.hint(cause.hint().empty() ? "find out on the node why; then " + retry : cause.hint() + "; then " + retry);
    }
    for (const auto& [key, text] : cause.details())
        if (key == "transport") error.detail(key, text);
    return error;
}

void require_kernel(const std::string& node, const SystemSight& seen, const std::string& release) {
    if (seen.kernel == release) return;
    throw Error(
        Exit::unhealthy, "kernel-not-booted",
        fmt::format("node {} runs kernel {} after its reboot, expected {}", node, base::escape(seen.kernel), release))
        .hint(fmt::format(
            "see on the node whether {} is installed and is the default of its boot loader; then kmm-upgrade retry {}",
            release, node));
}

}  // namespace kmm::drive
