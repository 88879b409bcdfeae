// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/strvals.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::chart {

using tmpl::List;
using tmpl::Map;
using tmpl::Value;

namespace {

constexpr std::int64_t k_index_max = 65536;
constexpr int k_nested_max = 30;

/// What a key or value ended with; 0 is the end of the text.
struct SetPiece {
    std::string text;
    char stop = 0;
};

class SetParser {
public:
    SetParser(std::string_view text, SetForm form, const ReadSetFile& read)
        : text_(text), form_(form), read_(read), key_stops_(form == SetForm::literal ? "=[." : "=[,.") {}

    void run(Map& values) {
        while (!key(values, 0)) {}
    }

    /// The text as one JSON object.
    Value whole_object() const {
        std::string fault;
        std::size_t at = 0;
        Value object = tmpl::read_json_text(text_, fault, at);
        if (!fault.empty()) { fail(fmt::format("expected a JSON object, found at byte {}: {}", at + 1, fault)); }
        return object;
    }

private:
    std::string_view text_;
    SetForm form_;
    const ReadSetFile& read_;
    std::string_view key_stops_;
    std::size_t at_ = 0;

    [[noreturn]] void fail(std::string message) const {
        throw Error(Exit::usage, "bad-set", std::move(message))
            .detail(std::string(set_option(form_)), base::escape(text_))
            .hint(form_ == SetForm::json      ? "write KEY=JSON, with texts in double quotes, or one JSON object"
                  : form_ == SetForm::file    ? "write KEY=FILE"
                  : form_ == SetForm::literal ? "write KEY=TEXT"
                                              : "write KEY=VALUE, and \\, for a comma in a value");
    }

    SetPiece until(std::string_view stops) {
        SetPiece piece;
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            if (stops.find(c) != std::string_view::npos) {
                piece.stop = c;
                return piece;
            }
            if (c == '\\' && form_ != SetForm::literal) {
                if (at_ >= text_.size()) { return piece; }
                const std::size_t width = tmpl::decode(text_, at_).width;
                piece.text += text_.substr(at_, width);
                at_ += width;
            } else {
                piece.text += c;
            }
        }
        return piece;
    }

    static void put(Map& values, const std::string& key, Value value) {
        if (!key.empty()) { values[key] = std::move(value); }
    }

    Value made_of(const std::string& text) const {
        switch (form_) {
            case SetForm::typed: return typed(text);
            case SetForm::file: return Value::string(read_(text));
            default: return Value::string(text);
        }
    }

    static Value typed(const std::string& text) {
        const std::string lower = base::to_lower(text);
        if (lower == "true" || lower == "false") { return Value::boolean(lower == "true"); }
        if (lower == "null") { return Value::nil(); }
        if (text == "0") { return Value::integer(0, tmpl::Type::int64); }
        if (!text.empty() && text[0] != '0') {
            if (const auto number = tmpl::parse_int(text, 10)) { return Value::integer(*number, tmpl::Type::int64); }
        }
        return Value::string(text);
    }

    /// The value behind '='; `end` is set at the end of the text.
    Value value(bool& end) {
        if (form_ == SetForm::literal) {
            Value rest = Value::string(std::string(text_.substr(at_)));
            at_ = text_.size();
            return rest;
        }
        if (form_ == SetForm::json) { return json(); }
        if (at_ >= text_.size()) {
            end = true;
            return Value::string("");
        }
        if (text_[at_] != '{') {
            const SetPiece piece = until(",");
            return made_of(piece.text);
        }
        ++at_;
        List items;
        for (;;) {
            const SetPiece piece = until(",}");
            if (piece.stop == 0) { fail("list must terminate with '}'"); }
            items.push_back(made_of(piece.text));
            if (piece.stop == '}') { break; }
        }
        if (at_ < text_.size() && text_[at_] == ',') { ++at_; }
        return Value::list(std::move(items));
    }

    /// Blanks, and one comma behind them; whether there was one, or nothing else up to the end of the text.
    bool comma() {
        while (at_ < text_.size()) {
            const tmpl::Decoded next = tmpl::decode(text_, at_);
            if (text_[at_] != ',' && !tmpl::is_space(next.rune)) { return false; }
            at_ += next.width;
            if (text_[at_ - 1] == ',') { return true; }
        }
        return true;
    }

    Value json() {
        if (comma()) { return Value::nil(); }
        std::string fault;
        std::size_t size = 0;
        Value value = tmpl::read_json_prefix(text_.substr(at_), fault, size);
        if (!fault.empty()) { fail(fmt::format("expected JSON at byte {}: {}", at_ + size + 1, fault)); }
        at_ += size;
        (void)comma();
        return value;
    }

    std::int64_t index() {
        const SetPiece piece = until("]");
        std::string_view digits = piece.text;
        if (digits.starts_with('+')) { digits.remove_prefix(1); }
        const auto number = piece.stop == 0 ? std::nullopt : base::parse_number<std::int64_t>(digits);
        if (!number) {
            fail(fmt::format("error parsing index: expected a number in [], found {}", tmpl::quote_text(piece.text)));
        }
        if (*number < 0) { fail(fmt::format("negative {} index not allowed", *number)); }
        if (*number > k_index_max) {
            fail(fmt::format("index of {} is greater than maximum supported index of {}", *number, k_index_max));
        }
        return *number;
    }

    /// One key and its value; true at the end of the text.
    bool key(Map& values, int nested) {
        const SetPiece piece = until(key_stops_);
        const std::string& name = piece.text;
        switch (piece.stop) {
            case 0:
                if (name.empty()) { return true; }
                fail(fmt::format("key {} has no value", tmpl::quote_text(name)));
            case '[': {
                const std::int64_t i = index();
                List items;
                if (const auto found = values.find(name); found != values.end()) {
                    if (!found->second.is_list()) { fail(fmt::format("{} is not a list", tmpl::quote_text(name))); }
                    items.assign(found->second.items().begin(), found->second.items().end());
                }
                bool end = false;
                list_item(items, i, nested, end);
                put(values, name, Value::list(std::move(items)));
                return end;
            }
            case '=': {
                bool end = false;
                Value made = value(end);
                put(values, name, std::move(made));
                return end;
            }
            case ',': fail(fmt::format("key {} has no value (cannot end with ,)", tmpl::quote_text(name)));
            default: break;
        }
        if (++nested > k_nested_max) {
            fail(fmt::format("value name nested level is greater than maximum supported nested level of {}",
                             k_nested_max));
        }
        Map inner;
        if (const auto found = values.find(name); found != values.end()) {
            if (!found->second.is_map()) { fail(fmt::format("{} is not a mapping", tmpl::quote_text(name))); }
            inner = found->second.members();
        }
        const bool end = key(inner, nested);
        if (!end && inner.empty()) { fail(fmt::format("key map {} has no value", tmpl::quote_text(name))); }
        if (!inner.empty()) { put(values, name, Value::map(std::move(inner))); }
        return end;
    }

    void list_item(List& items, std::int64_t i, int nested, bool& end) {
        const auto at = static_cast<std::size_t>(i);
        const SetPiece piece = until("[.=");
        if (!piece.text.empty()) {
            fail(fmt::format("unexpected data at end of array index: {}", tmpl::quote_text(piece.text)));
        }
        Value made;
        switch (piece.stop) {
            case '=': {
                bool is_last = false;
                made = value(is_last);
                break;
            }
            case '[': {
                const std::int64_t next = index();
                List inner;
                if (at < items.size() && !items[at].is_nil()) {
                    if (!items[at].is_list()) { fail(fmt::format("the item {} is not a list", i)); }
                    inner.assign(items[at].items().begin(), items[at].items().end());
                }
                list_item(inner, next, nested, end);
                if (end && (at >= items.size() || items[at].is_nil())) { return; }
                made = Value::list(std::move(inner));
                break;
            }
            case '.': {
                Map inner;
                if (at < items.size() && items[at].is_map()) { inner = items[at].members(); }
                end = key(inner, nested);
                // Helm forgets a new item whose empty value ends the text.
                if (end && at >= items.size()) { return; }
                made = Value::map(std::move(inner));
                break;
            }
            default: end = true; return;
        }
        if (items.size() <= at) { items.resize(at + 1, Value::nil()); }
        items[at] = std::move(made);
    }
};

}  // namespace

std::string_view set_option(SetForm form) noexcept {
    switch (form) {
        case SetForm::text: return "--set-string";
        case SetForm::json: return "--set-json";
        case SetForm::file: return "--set-file";
        case SetForm::literal: return "--set-literal";
        case SetForm::typed: break;
    }
    return "--set";
}

void set_values(const Value& values, std::string_view text, SetForm form, const ReadSetFile& read) {
    SetParser parser(text, form, read);
    if (form == SetForm::json && base::trim(text).starts_with('{')) {
        *values.shared_map() = merge_values(values, parser.whole_object()).members();
    } else {
        parser.run(*values.shared_map());
    }
}

}  // namespace kmm::recipe::chart
