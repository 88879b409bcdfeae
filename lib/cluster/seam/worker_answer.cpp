// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/worker_answer.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace kmm::cluster {
namespace {

/// For messages: the verb, of two words where it has two.
std::string verb_of(const WorkerCall& call) {
    if (call.args.empty()) return "";
    return call.args.front() == "kubernetes" && call.args.size() > 1 ? "kubernetes " + call.args[1] : call.args.front();
}

constexpr std::string_view k_format = "kmmtools/v1";

Exit exit_of(int number) {
    for (const auto& row : exit_code_table())
        if (static_cast<int>(row.code) == number) return row.code;
    return Exit::other;
}

/// A worker of another version: it refuses the command line, or answers in another format.
Error versions_differ(const std::string& node, const std::string& text) {
    return Error(Exit::config, "worker-failed",
                 fmt::format("node {}: kmm-worker there and kmm-upgrade here have different versions: {}", node, text))
        .hint(fmt::format("install kmm-tools {} on the node (its version: kmm-worker --version)", KMM_VERSION));
}

constexpr std::string_view k_says = "kmm-worker says: ";
/// Codes by which this program decides what to do, and by which no worker speaks: a node that uses them is not
/// believed.
constexpr std::string_view k_reserved_codes[] = {
    "already-exists",   "api-error",        "api-unreachable", "bad-answer",    "bug",           "conflict",
    "exec-plugin",      "forbidden",        "interrupted",     "lease-lost",    "locked",        "node-not-found",
    "node-unreachable", "object-not-found", "rejected",        "state-changed", "state-damaged", "unauthorized"};

bool is_code(std::string_view text) {
    constexpr std::size_t k_code_max = 40;
    return !text.empty() && text.size() <= k_code_max &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

/// A detail that this program reads, or that stands in a place of its own in its output, keeps its name only if it is
/// what it says.
std::string detail_name(const std::string& key, const std::string& text) {
    if (key == "errno")
        return text.size() < 16 && text.starts_with('E') &&
                       text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string::npos
                   ? key
                   : "worker-errno";
    const bool is_ours =
        key == "code" || key == "hint" || key == "error" || key == "warning" || key == "transport" || key == "found";
    return is_ours ? "worker-" + key : base::printable(key);
}

/// The Error a worker printed, rebuilt from its document: its words are marked as such, and its code is none of this
/// program's.
Error decode_error(const std::string& node, const WorkerReply& reply, int exit_code) {
    const auto& document = reply.document;
    auto code = document.get_string({"code"});
    const auto text = base::printable(document.get_string({"message"}));
    if (reply.of_worker && code == "usage") return versions_differ(node, std::string(k_says) + text);
    const auto said = code;
    const bool is_reserved =
        std::find(std::begin(k_reserved_codes), std::end(k_reserved_codes), code) != std::end(k_reserved_codes);
    if (reply.of_worker && (is_reserved || !is_code(code))) code = "worker-failed";
    const std::string mark(reply.of_worker ? k_says : "");
    Error error(exit_of(exit_code), code, mark + text);
    if (const auto hint = document.get_string({"hint"}); !hint.empty()) error.hint(mark + base::printable(hint));
    const auto add = [&](const std::string& key, const std::string& words) {
        error.detail(reply.of_worker ? detail_name(key, words) : key, words);
    };
    if (const auto* details = document.find("details")) {
        for (const auto& member : details->members()) add(member.key, member.value.text());
        for (const auto& item : details->items()) add(item.get_string({"key"}), item.get_string({"value"}));
    }
    if (const auto* diagnostics = document.find("diagnostics"))
        for (const auto& item : diagnostics->items()) add(item.get_string({"code"}), item.get_string({"message"}));
    if (code != said) error.detail("worker-code", base::printable(said));
    return error;
}

std::string signal_name(int signal) {
    const char* name = signal > 0 ? ::sigabbrev_np(signal) : nullptr;
    return name == nullptr ? "a signal" : fmt::format("SIG{}", name);
}

/// Why a call that ended by itself has no document.
Error no_result(const WorkerReply& reply, const WorkerCall& call) {
    constexpr int k_signal_base = 128;  // shells add it to the number of the signal that ended a program
    constexpr int k_signal_last = 64;
    constexpr int k_bundle_failed = 74;                               // what a bundle exits with that cannot start,
    constexpr std::string_view k_bundle_code = "bundle-not-started";  // and the code that it prints
    const auto verb = verb_of(call);
    const auto says = [&](std::string_view words) { return reply.transport.find(words) != std::string::npos; };
    const auto make = [&](Exit exit, const char* code, const std::string& text) {
        return Error(exit, code, fmt::format("node {}: {}", call.node, text));
    };
    const bool is_told_by_shell = reply.exit_code > k_signal_base && reply.exit_code <= k_signal_base + k_signal_last;
    bool is_transport_shown = true;
    auto error = make(Exit::other, "worker-failed",
                      fmt::format("kmm-worker {} ended with exit code {} and without a result", verb, reply.exit_code));
    if (says("a password is required") || says("must have a tty") || says("a terminal is required")) {
        error = make(Exit::no_permission, "worker-failed", "sudo on the node asks for a password")
                    .hint("allow it without one in the node's sudoers: USER ALL=(root) NOPASSWD: ALL; where "
                          "kmm-worker is installed, its path alone");
    } else if (reply.exit_code == 127 || reply.exit_code == 126 || (says("sudo: ") && says(": command not found"))) {
        error = make(Exit::not_found, "worker-not-found", "kmm-worker cannot be run there")
                    .hint(
                        "install kmm-worker on the node, name it with --worker COMMAND, or have it brought along: "
                        "--worker bundle");
    } else if (reply.is_brought && reply.exit_code == k_bundle_failed && says(k_bundle_code)) {
        const auto after = [&](std::string_view word) {
            const auto at = reply.transport.find(word);
            if (at == std::string::npos) return std::string();
            const auto text = std::string_view(reply.transport).substr(at + word.size());
            return std::string(k_says) + base::printable(base::trim(text.substr(0, text.find('\n'))));
        };
        const auto hint = after("hint: ");
        error = make(Exit::io, "worker-not-brought",
                     "kmm-worker was brought there and does not start: " + after("error: "))
                    .hint(hint.find("KMM_BUNDLE_DIR") == std::string::npos
                              ? hint
                              : "name another directory: --worker \"env KMM_BUNDLE_DIR=DIR bundle\"");
        is_transport_shown = false;
    } else if (reply.signal != 0 || is_told_by_shell) {
        const auto signal = reply.signal != 0 ? reply.signal : reply.exit_code - k_signal_base;
        error = make(Exit::other, "worker-failed",
                     fmt::format("kmm-worker {} was killed by {} on the node", verb, signal_name(signal)))
                    .hint("find out what killed it in the node's log: journalctl -k | grep -i -e oom -e killed");
    } else if (!reply.started) {
        error =
            make(Exit::other, "worker-failed",
                 fmt::format("the login shell ended with exit code {} before it started kmm-worker", reply.exit_code))
                .hint(fmt::format("the user needs a shell that runs commands on the node: ssh {} true", call.node));
    }
    if (!reply.found.empty() && error.code() != "worker-not-found") error.detail("found", reply.found);
    if (is_transport_shown && !reply.transport.empty()) error.detail("transport", reply.transport);
    return error;
}

/// The node cannot start kmm-worker, however often it is asked to.
bool is_installation_fault(const Error& error) {
    return error.exit() == Exit::no_permission || error.code() == "worker-not-found" ||
           error.code() == "worker-not-brought";
}

}  // namespace

std::optional<NoValue> look_for_failure(const WorkerReply& reply, const WorkerCall& call, std::string_view kind) {
    NoValue answer;
    answer.end = reply.end;
    const auto words = verb_of(call);
    if (reply.end != CallEnd::completed) {
        answer.has_begun = reply.end == CallEnd::unknown;
        const auto text = answer.has_begun ? fmt::format("node {}: the connection was lost during {}", call.node, words)
                                           : fmt::format("node {} cannot be reached", call.node);
        answer.error = Error(Exit::unavailable, "node-unreachable", text).retryable();
        if (!reply.transport.empty()) answer.error->detail("transport", reply.transport);
        if (!reply.hint.empty()) answer.error->hint(reply.hint);
        return answer;
    }
    if (reply.document.is_null()) {
        answer.has_result = false;
        answer.error = no_result(reply, call);
        answer.has_begun = reply.started && !is_installation_fault(*answer.error);
        return answer;
    }
    const auto found = reply.document.get_string({"kind"});
    if (const auto format = reply.document.get_string({"apiVersion"}); !format.empty() && format != k_format) {
        answer.error = versions_differ(call.node, fmt::format("the answer to {} has the format {}, expected {}", words,
                                                              base::escape(format), k_format));
        return answer;
    }
    if (reply.exit_code == 0 && found == kind) return std::nullopt;
    if (found == "Error") {
        // A shutdown of the node, or the deletion of its Pod, has stopped the worker: what it has begun may go on.
        answer.has_result = !(reply.of_worker && reply.document.get_string({"code"}) == "interrupted");
        answer.error = decode_error(call.node, reply, reply.exit_code == 0 ? 1 : reply.exit_code);
        return answer;
    }
    answer.error =
        Error(Exit::other, "worker-failed",
              fmt::format("node {}: kmm-worker {} ended with exit code {} and a document of kind {}, expected {}",
                          call.node, words, reply.exit_code, base::escape(found), kind));
    if (!reply.transport.empty()) answer.error->detail("transport", reply.transport);
    return answer;
}

WorkerReply error_reply(const Error& error) {
    WorkerReply reply;
    reply.of_worker = false;
    reply.exit_code = static_cast<int>(error.exit());
    reply.document = value::Node::mapping(
        {{"apiVersion", "kmmtools/v1"}, {"kind", "Error"}, {"code", error.code()}, {"message", error.message()}});
    if (!error.hint().empty()) { reply.document.set("hint", error.hint()); }
    value::Node details = value::Node::mapping();
    for (const auto& [key, text] : error.details()) { details.set(key, text); }
    if (!details.members().empty()) { reply.document.set("details", std::move(details)); }
    return reply;
}

}  // namespace kmm::cluster
