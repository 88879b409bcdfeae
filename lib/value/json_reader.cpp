// SPDX-License-Identifier: Apache-2.0
// Adapter of simdjson. Its on-demand reader makes trees: the whole tree is visited, so everything is validated, and
// every token's place in the text is known. Its first stage alone is the JsonIndex of the streaming reader.
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/json_index.hpp"
#include "value/reader.hpp"
#include "value/scalar.hpp"
#include "value/text_index.hpp"

namespace kmm::value {
namespace {

namespace od = simdjson::ondemand;

std::string describe_byte(std::string_view text, std::size_t offset) {
    if (offset >= text.size()) return "the end of the text";
    const auto lead = static_cast<unsigned char>(text[offset]);
    const std::size_t length = lead < 0x80U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
    return fmt::format("'{}'", base::escape(text.substr(offset, length)));
}

class JsonBuilder {
public:
    JsonBuilder(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits)
        : text_(text), file_(file), index_(text), diagnostics_(diagnostics), limits_(limits), padded_(text) {}

    /// The root, or nullopt after a syntax error or an exceeded limit.
    std::optional<Node> read() {
        od::parser parser;
        od::document document;
        if (const auto error = parser.iterate(padded_).get(document); error) return fail_before(error);
        document_ = &document;
        Node root;
        if (!build(document, 0, root)) return std::nullopt;
        if (root.is_mapping() || root.is_sequence()) {
            const char* place = nullptr;
            const bool more = !document.current_location().get(place);
            if (more && offset_of(place) < text_.size()) return fail_trailing(offset_of(place));
        } else {
            const auto start = index_.offset(root.mark());
            const auto end = end_of_scalar(start);
            const auto next = text_.find_first_not_of(" \t\r\n", end);
            if (next != std::string_view::npos) return fail_trailing(next);
        }
        return root;
    }

private:
    [[nodiscard]] std::size_t offset_of(const char* place) const noexcept {
        return static_cast<std::size_t>(place - padded_.data());
    }

    std::nullopt_t fail_syntax(std::string message, std::size_t offset) {
        diagnostics_.push_back(fault("json-syntax", std::move(message), file_, index_.mark(offset)));
        return std::nullopt;
    }
    std::nullopt_t fail_trailing(std::size_t offset) {
        return fail_syntax(fmt::format("expected the end of the JSON document, found {}", describe_byte(text_, offset)),
                           offset);
    }

    /// Errors of the first stage come without a place: strings are scanned for it.
    std::nullopt_t fail_before(simdjson::error_code error) {
        if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
            return fail_syntax("expected a JSON document, found nothing", 0);
        }
        std::size_t open = std::string_view::npos;
        for (std::size_t at = 0; at < text_.size(); ++at) {
            const char c = text_[at];
            if (open == std::string_view::npos) {
                if (c == '"') open = at;
            } else if (c == '\\') {
                ++at;
            } else if (c == '"') {
                open = std::string_view::npos;
            } else if (static_cast<unsigned char>(c) < 0x20U) {
                return fail_syntax(
                    fmt::format("expected a closing '\"', found {} inside a string", describe_byte(text_, at)), at);
            }
        }
        if (open != std::string_view::npos)
            return fail_syntax("expected a closing '\"', found the end of the text", open);
        return fail_error(error, text_.size());
    }

    bool fail_here(simdjson::error_code error, std::size_t fallback) {
        const char* place = nullptr;
        const bool known = document_ != nullptr && !document_->current_location().get(place);
        (void)fail_error(error, known ? offset_of(place) : fallback);
        return false;
    }

    std::nullopt_t fail_error(simdjson::error_code error, std::size_t offset) {
        const auto last = text_.find_last_not_of(" \t\r\n");
        if (error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT) {
            if (const auto trailing = find_trailing(); trailing) return fail_trailing(*trailing);
        }
        if (error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT || offset > last) {
            return fail_syntax("expected a closing '}' or ']', found the end of the text", last + 1);
        }
        if (error == simdjson::STRING_ERROR) return fail_syntax("invalid escape sequence in a string", offset);
        return fail_syntax(
            fmt::format("expected a comma, a colon or a closing bracket, found {}", describe_byte(text_, offset)),
            offset);
    }

    /// What stands behind a root whose brackets are balanced.
    [[nodiscard]] std::optional<std::size_t> find_trailing() const noexcept {
        std::size_t depth = 0;
        for (std::size_t at = 0; at < text_.size(); ++at) {
            const char c = text_[at];
            if (c == '"') at = end_of_scalar(at) - 1;
            if (c == '{' || c == '[') ++depth;
            if ((c == '}' || c == ']') && (depth == 0 || --depth == 0)) {
                const auto next = text_.find_first_not_of(" \t\r\n", at + 1);
                if (next != std::string_view::npos) return next;
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::size_t end_of_scalar(std::size_t start) const noexcept {
        if (text_[start] != '"') return std::min(text_.find_first_of(" \t\r\n,]}:[{\"", start), text_.size());
        auto at = start + 1;
        while (at < text_.size() && text_[at] != '"') at += text_[at] == '\\' ? 2U : 1U;
        return std::min(at + 1, text_.size());
    }

    bool count(std::size_t depth, std::size_t offset) {
        if (++nodes_ > limits_.json_nodes_max) {
            return fail_limit(fmt::format("expected at most {} values in a document", limits_.json_nodes_max), offset);
        }
        if (depth > limits_.depth_max) {
            return fail_limit(fmt::format("expected at most {} nested levels", limits_.depth_max), offset);
        }
        return true;
    }
    bool fail_limit(std::string message, std::size_t offset) {
        diagnostics_.push_back(fault("document-limit", std::move(message), file_, index_.mark(offset)));
        return false;
    }

    template <typename Value>
    bool build(Value& value, std::size_t depth, Node& out) {
        std::string_view token;
        if (const auto error = simdjson::simdjson_result<std::string_view>(value.raw_json_token()).get(token); error) {
            return fail_here(error, text_.size());
        }
        const auto offset = offset_of(token.data());
        const bool nests = !token.empty() && (token[0] == '{' || token[0] == '[');
        if (!count(nests ? depth + 1 : depth, offset)) return false;
        const bool done = build_token(value, token, offset, depth, out);
        out.set_mark(index_.mark(offset));
        return done;
    }

    template <typename Value>
    bool build_token(Value& value, std::string_view token, std::size_t offset, std::size_t depth, Node& out) {
        switch (token.empty() ? '\0' : token[0]) {
            case '{': return build_mapping(value, depth, out);
            case '[': return build_sequence(value, depth, out);
            case '"': {
                std::string_view text;
                if (const auto error = value.get_string().get(text); error) {
                    (void)fail_error(error, offset);
                    return false;
                }
                out = Node(text);
                return true;
            }
            default: break;
        }
        const auto word = text_.substr(offset, end_of_scalar(offset) - offset);
        if (word == "true" || word == "false") {
            out = Node(word == "true");
        } else if (word != "null") {
            out = parse_json_number(word);
            if (out.is_null()) {
                const auto shown =
                    word.empty() ? describe_byte(text_, offset) : fmt::format("'{}'", base::escape(word.substr(0, 40)));
                (void)fail_syntax(fmt::format("expected a JSON value, found {}", shown), offset);
                return false;
            }
        }
        return true;
    }

    template <typename Value>
    bool build_mapping(Value& value, std::size_t depth, Node& out) {
        out = Node::mapping();
        od::object object;
        if (const auto error = value.get_object().get(object); error) return fail_here(error, text_.size());
        std::unordered_map<std::string, Mark> seen;
        for (auto entry : object) {
            od::field field;
            if (const auto error = std::move(entry).get(field); error) return fail_here(error, text_.size());
            const auto key_mark = index_.mark(offset_of(field.key().raw()) - 1);
            std::string_view key;
            if (const auto error = field.unescaped_key().get(key); error) {
                (void)fail_error(simdjson::STRING_ERROR, index_.offset(key_mark));
                return false;
            }
            Member member{std::string(key), key_mark, {}};
            auto child = field.value();
            if (!build(child, depth + 1, member.value)) return false;
            const auto [old, fresh] = seen.emplace(member.key, key_mark);
            if (fresh) {
                out.members().push_back(std::move(member));
            } else {
                diagnostics_.push_back(duplicate_key(member.key, file_, key_mark, old->second));
            }
        }
        return true;
    }

    template <typename Value>
    bool build_sequence(Value& value, std::size_t depth, Node& out) {
        out = Node::sequence();
        od::array array;
        if (const auto error = value.get_array().get(array); error) return fail_here(error, text_.size());
        for (auto entry : array) {
            od::value child;
            if (const auto error = std::move(entry).get(child); error) return fail_here(error, text_.size());
            out.items().emplace_back();
            if (!build(child, depth + 1, out.items().back())) return false;
        }
        return true;
    }

    std::string_view text_;
    std::string_view file_;
    TextIndex index_;
    Diagnostics& diagnostics_;
    const ReadLimits& limits_;
    simdjson::padded_string padded_;
    od::document* document_ = nullptr;
    std::size_t nodes_ = 0;
};

}  // namespace

std::vector<Document>
read_json(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits) {
    const auto body = without_bom(text);
    if (!check_text(body, file, limits, diagnostics)) return {};
    const auto before = diagnostics.size();
    JsonBuilder builder(body, file, diagnostics, limits);
    auto root = builder.read();
    explain_conflict(body, file, "json-syntax", before, diagnostics);
    if (!root) return {};
    std::vector<Document> documents;
    documents.push_back(Document{std::string(file), std::move(*root), 0});
    return documents;
}

static_assert(JsonIndex::k_padding >= simdjson::SIMDJSON_PADDING);

struct JsonIndex::Impl {
    std::unique_ptr<simdjson::internal::dom_parser_implementation> stage;
    std::string_view text;
    std::string scratch;
};

JsonIndex::JsonIndex() : impl_(std::make_unique<Impl>()) {}
JsonIndex::~JsonIndex() = default;

IndexState JsonIndex::index(std::string_view text) {
    constexpr std::size_t k_depth = 1;  // of the second stage, which is not used
    if (!impl_->stage || impl_->stage->capacity() < text.size()) {
        const auto failed = simdjson::get_active_implementation()->create_dom_parser_implementation(
            std::bit_ceil(text.size()), k_depth, impl_->stage);
        if (failed) throw bug("no memory for the index of a JSON text");
    }
    impl_->text = text;
    size_ = 0;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
    const auto error = impl_->stage->stage1(bytes, text.size(), simdjson::stage1_mode::regular);
    tokens_ = impl_->stage->structural_indexes.get();
    if (error == simdjson::UNCLOSED_STRING) return IndexState::open_string;
    if (error == simdjson::UTF8_ERROR) return IndexState::not_utf8;
    if (error != simdjson::SUCCESS && error != simdjson::EMPTY) return IndexState::bad;
    size_ = impl_->stage->n_structural_indexes;
    return IndexState::ok;
}

std::optional<std::string_view> JsonIndex::unescape(std::size_t offset) {
    auto& scratch = impl_->scratch;
    const auto room = impl_->text.size() - offset + k_padding;
    if (scratch.size() < room) scratch.resize(impl_->text.size() + k_padding);
    const auto* source = reinterpret_cast<const std::uint8_t*>(impl_->text.data()) + offset + 1;
    auto* start = reinterpret_cast<std::uint8_t*>(scratch.data());
    const auto* end = impl_->stage->parse_string(source, start);
    if (end == nullptr) return std::nullopt;
    return std::string_view(scratch.data(), static_cast<std::size_t>(end - start));
}

}  // namespace kmm::value
