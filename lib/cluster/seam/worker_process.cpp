// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/worker_process.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {
namespace {

constexpr std::size_t k_transport_lines = 5;

std::string end_of_log(std::string_view text) {
    std::vector<std::string> lines;
    for (const auto line : base::last_lines(text, k_transport_lines)) lines.push_back(base::escape(line));
    return base::join(lines, "\n");
}

/// The JSON object that begins at `begin`, as text; "" if it does not end.
std::string_view object_at(std::string_view text, std::size_t begin) {
    int depth = 0;
    bool quoted = false;
    for (auto i = begin; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') ++i;
            else if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return text.substr(begin, i + 1 - begin);
        }
    }
    return {};
}

/// Steps back over blanks and then over `token`; false if something else is there.
bool step_back(std::string_view text, std::size_t& at, std::string_view token) {
    while (at > 0 && std::string_view(" \t\r\n").find(text[at - 1]) != std::string_view::npos) --at;
    if (at < token.size() || text.substr(at - token.size(), token.size()) != token) return false;
    at -= token.size();
    return true;
}

/// The only JSON document of `text`, if it is an object that has a kind.
value::Node only_object(std::string_view text) {
    Diagnostics faults;
    auto documents = value::read_json(text, "the worker's output", faults);
    if (has_errors(faults) || documents.size() != 1 || documents[0].root.get_string({"kind"}).empty()) return {};
    return std::move(documents[0].root);
}

/// What the worker itself printed: all that follows the last marker, everything if there is none (an older side, a
/// forced command).
std::string_view after_marker(std::string_view out, bool& marked) {
    for (auto at = out.rfind(k_started_marker); at != std::string_view::npos;
         at = at == 0 ? at : out.rfind(k_started_marker, at - 1)) {
        auto rest = out.substr(at + k_started_marker.size());
        if (rest.starts_with('\r')) rest.remove_prefix(1);
        if (rest.starts_with('\n')) {
            marked = true;
            return rest.substr(1);
        }
        if (at == 0) break;
    }
    return out;
}

void add_line(std::string& text, const std::string& line) { text += (text.empty() ? "" : "\n") + line; }

}  // namespace

std::vector<std::string> worker_argv(const std::string& worker_command, const WorkerCall& call) {
    std::vector<std::string> argv;
    for (const auto word : base::split(worker_command, ' ')) {
        if (!word.empty()) argv.emplace_back(word);
    }
    if (argv.empty()) throw Error(Exit::config, "bad-value", "expected the worker's command, found an empty text");
    const auto rest = call_words(call);
    argv.insert(argv.end(), rest.begin(), rest.end());
    return argv;
}

std::vector<std::string> call_words(const WorkerCall& call) {
    auto words = call.args;
    words.insert(words.end(), {"-o", "json"});
    return words;
}

value::Node worker_document(std::string_view text) {
    if (auto whole = only_object(text); !whole.is_null()) return whole;
    constexpr std::string_view k_format = "\"kmmtools/";
    constexpr int k_tries = 100;  // each may read all of the text
    value::Node document;
    std::size_t from = 0;
    for (int tries = 0; tries < k_tries; ++tries) {
        const auto format = text.find(k_format, from);
        if (format == std::string_view::npos) break;
        from = format + k_format.size();
        auto begin = format;
        if (!step_back(text, begin, ":") || !step_back(text, begin, "\"apiVersion\"") || !step_back(text, begin, "{"))
            continue;
        const auto object = object_at(text, begin);
        auto node = only_object(object);
        if (node.is_null()) continue;
        if (!document.is_null()) return {};
        document = std::move(node);
        from = begin + object.size();
    }
    return document;
}

WorkerReply judge(const sys::ProcessResult& result, const ChildLog& log) {
    using End = ChildLog::End;
    constexpr std::size_t k_found_max = 60;
    WorkerReply reply;
    reply.transport = end_of_log(log.text);
    if (log.end == End::unreachable) {
        reply.end = CallEnd::unreachable;
        if (result.timed_out) add_line(reply.transport, "no connection within the time limit");
        return reply;
    }
    if (result.timed_out || log.end == End::lost) {
        reply.end = CallEnd::unknown;
        if (result.timed_out) add_line(reply.transport, "no answer within the time limit");
        else if (reply.transport.empty()) reply.transport = "the connection was lost";
        return reply;
    }
    bool marked = false;
    const auto output = after_marker(result.out, marked);
    reply.exit_code = result.exit_code;
    reply.signal = log.end == End::killed ? k_some_signal : result.signal;
    if (reply.signal == 0) reply.document = worker_document(output);
    if (!reply.document.is_null()) return reply;
    reply.started = log.started || marked;
    reply.found = base::escape(base::trim(output).substr(0, k_found_max));
    return reply;
}

}  // namespace kmm::cluster
