// SPDX-License-Identifier: Apache-2.0
#include "registry/client/document_service.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "sandbox/message.hpp"
#include "trust/signature.hpp"
#include "value/reader.hpp"
#include "value/scalar.hpp"

namespace kmm::registry {

namespace {

constexpr std::uint64_t k_document_service = 3;
constexpr std::uint64_t k_image_document = 1, k_payload = 2;               // what is asked for
constexpr std::uint64_t k_document_done = 0, k_document_failed = 1;        // how an answer begins
constexpr std::size_t k_text_piece = 256U << 10U;
constexpr std::size_t k_item_bytes = sizeof(std::uint64_t);
// A value takes at least one byte of its text, and at most so many of the answer beside them.
constexpr std::size_t k_bytes_for_one = 32, k_bytes_for_error = 256U << 10U;
constexpr int k_depth_max = 128;          ///< the reader's limit is lower
constexpr std::size_t k_number_max = 64;  ///< letters of a number's text

/// Errors: as read_image_document().
value::Node read_document(const std::string& text, const std::string& what, const std::string& code) {
    if (text.starts_with("\xef\xbb\xbf")) {  // our reader would pass over it, Go's do not
        throw Error(Exit::data, code,
                    fmt::format("the {} is not a JSON document: it begins with a byte order mark", what));
    }
    Diagnostics faults;
    value::ReadLimits limits;
    limits.bytes_max = text.size() + 1;
    auto documents = value::read_json(text, what, faults, limits);
    if (has_errors(faults) || documents.size() != 1) {
        const std::string reason = faults.empty() ? "it is empty" : faults.front().message;
        Error error(Exit::data, code, fmt::format("the {} is not a JSON document: {}", what, reason));
        if (!faults.empty() && faults.front().position) {
            error.detail("at", faults.front().position->to_string());
        }
        throw error;
    }
    return std::move(documents.front().root);
}

void put_node(sandbox::MessageWriter& out, const value::Node& node) {
    out.number(static_cast<std::uint64_t>(node.kind()));
    switch (node.kind()) {
        case value::Kind::null: break;
        case value::Kind::boolean: out.flag(node.as_bool() == true); break;
        case value::Kind::integer:
        case value::Kind::floating:
        case value::Kind::string: out.text(node.text()); break;
        case value::Kind::sequence:
            out.number(node.items().size());
            for (const value::Node& item : node.items()) put_node(out, item);
            break;
        case value::Kind::mapping:
            out.number(node.members().size());
            for (const value::Member& member : node.members()) {
                out.text(member.key);
                put_node(out, member.value);
            }
            break;
    }
}

value::Node take_number(value::Kind kind, std::string_view text) {
    value::Node node = value::parse_json_number(text);
    if (node.kind() != kind || node.text() != text) throw sandbox::bad_message();
    return node;
}

value::Node take_node(sandbox::MessageReader& in, int depth) {
    if (depth > k_depth_max) throw sandbox::bad_message();
    const auto kind = static_cast<value::Kind>(in.number(static_cast<std::uint64_t>(value::Kind::mapping)));
    switch (kind) {
        case value::Kind::null: return {};
        case value::Kind::boolean: return in.flag();
        case value::Kind::integer:
        case value::Kind::floating: return take_number(kind, in.view(k_number_max));
        case value::Kind::string: return in.text();
        case value::Kind::sequence: {
            std::vector<value::Node> items(in.count(k_item_bytes));
            for (value::Node& item : items) item = take_node(in, depth + 1);
            return value::Node::sequence(std::move(items));
        }
        case value::Kind::mapping: break;
    }
    value::Node made = value::Node::mapping();
    made.members().resize(in.count(2 * k_item_bytes));
    for (value::Member& member : made.members()) {
        member.key = in.text();
        member.value = take_node(in, depth + 1);
    }
    return made;
}

/// The text of a request, the first piece of which is in it.
std::string text_of_request(sandbox::MessageReader& request, sandbox::Channel& channel) {
    std::string text;
    const std::uint64_t size = request.number();
    for (text = request.text(); text.size() < size;) {
        std::string piece;
        if (!channel.receive(piece, k_text_piece)) break;
        text += piece;
    }
    return text;
}

void serve_document(const std::string& message, sandbox::Channel& channel, sandbox::Channel& /*answers*/) {
    sandbox::MessageReader request(message);
    static_cast<void>(request.number());  // the service
    const std::uint64_t wanted = request.number();
    const std::string what = request.text();
    const std::string code = request.text();
    sandbox::MessageWriter out;
    std::optional<Error> fault;
    try {
        const std::string text = text_of_request(request, channel);
        out.number(k_document_done);
        put_node(out, wanted == k_payload ? trust::read_payload(text) : read_document(text, what, code));
    } catch (const Error& error) {
        fault = error;
    } catch (const std::bad_alloc&) {
        fault = Error(Exit::unsafe, "image-limit", fmt::format("the {} takes more memory than it may", what));
    }
    if (fault) {
        out.clear();
        out.number(k_document_failed);
        out.error(*fault);
    }
    static_cast<void>(channel.send(out.bytes()));
}

value::Node ask_for_document(sandbox::Confined& parser, std::uint64_t wanted, std::string_view text,
                             const std::string& what, const std::string& code) {
    sandbox::MessageWriter request;
    request.number(k_document_service);
    request.number(wanted);
    request.text(what);
    request.text(code);
    request.number(text.size());
    request.text(text.substr(0, k_text_piece));
    const auto lock = parser.lock();
    try {
        parser.send(request.bytes());
        for (std::size_t at = k_text_piece; at < text.size(); at += k_text_piece) {
            if (!parser.try_send(text.substr(at, k_text_piece), {})) throw parser.lost();
        }
        const std::string answer = parser.receive(text.size() * k_bytes_for_one + k_bytes_for_error);
        sandbox::MessageReader reader(answer);
        if (reader.number(k_document_failed) == k_document_failed) throw reader.error();
        value::Node node = take_node(reader, 0);
        if (!reader.at_end()) throw sandbox::bad_message();
        return node;
    } catch (...) {
        parser.renew();
        throw;
    }
}

}  // namespace

sandbox::Service document_service() { return {k_document_service, [] {}, [] {}, serve_document}; }

value::Node read_image_document(sandbox::Confined* parser, const std::string& text, const std::string& what,
                                const char* code) {
    return parser == nullptr ? read_document(text, what, code)
                             : ask_for_document(*parser, k_image_document, text, what, code);
}

value::Node read_signed_payload(sandbox::Confined* parser, std::string_view text) {
    if (parser == nullptr) return trust::read_payload(text);
    begin_other_bytes(parser);
    return ask_for_document(*parser, k_payload, text, "payload", "bad-payload");
}

void begin_other_bytes(sandbox::Confined* parser) {
    if (parser == nullptr) return;
    const auto lock = parser->lock();
    parser->renew();
}

}  // namespace kmm::registry
