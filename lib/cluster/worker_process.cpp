// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker_process.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {
namespace {

constexpr std::size_t k_transport_lines = 5;

std::string last_lines(std::string_view text) {
    std::vector<std::string> lines;
    for (const auto line : base::split(text, '\n')) {
        const auto content = base::trim(line);
        if (!content.empty()) lines.push_back(base::escape(content));
    }
    if (lines.size() > k_transport_lines) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(k_transport_lines));
    return base::join(lines, "\n");
}

void add_line(std::string& text, const std::string& line) { text += (text.empty() ? "" : "\n") + line; }

}  // namespace

std::string shell_quote(std::string_view text) {
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'') {
            quoted += "'\\''";
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

std::vector<std::string> worker_argv(const std::string& worker_command, const WorkerCall& call) {
    std::vector<std::string> argv;
    for (const auto word : base::split(worker_command, ' ')) {
        if (!word.empty()) argv.emplace_back(word);
    }
    if (argv.empty()) throw Error(Exit::config, "bad-value", "expected the worker's command, found an empty text");
    argv.insert(argv.end(), call.args.begin(), call.args.end());
    argv.insert(argv.end(), {"-o", "json"});
    return argv;
}

WorkerReply judge(const sys::ProcessResult& result, Started started, bool transport_failed, std::string_view stderr_text) {
    WorkerReply reply;
    reply.transport = last_lines(stderr_text);
    const bool ended = !result.timed_out && result.signal == 0 && !transport_failed;
    if (started == Started::no) {
        reply.end = CallEnd::unreachable;
        if (result.timed_out) add_line(reply.transport, "no connection within the time limit");
        return reply;
    }
    if (ended) {
        Diagnostics faults;
        auto documents = value::read_json(result.out, "the worker's output", faults);
        if (!has_errors(faults) && documents.size() == 1 && documents[0].root.is_mapping()) {
            reply.exit_code = result.exit_code;
            reply.document = std::move(documents[0].root);
            return reply;
        }
    }
    reply.end = CallEnd::unknown;
    if (result.timed_out) {
        add_line(reply.transport, "no answer within the time limit");
    } else if (ended) {
        const auto start = base::escape(std::string_view(result.out).substr(0, 60));
        add_line(reply.transport, fmt::format("expected one JSON document from the worker, found {} (exit code {})",
                                              start.empty() ? "nothing" : fmt::format("'{}'", start), result.exit_code));
    } else if (reply.transport.empty()) {
        add_line(reply.transport, "the connection was lost");
    }
    return reply;
}

}  // namespace kmm::cluster
