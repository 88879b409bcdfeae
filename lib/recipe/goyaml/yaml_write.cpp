// SPDX-License-Identifier: Apache-2.0
// The emitter of go-yaml v2, and of v3 where Helm uses that.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/goyaml/yaml_text.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_yaml_depth_max = 500;
constexpr std::size_t k_simple_key_max = 128;
constexpr int k_width = 80;  // v2 folds a scalar at the first space behind this column; v3 does not

enum class Style { plain, single_quoted, double_quoted, literal };

class Emitter {
public:
    /// `json`: numbers as they are after a way through JSON; `indented`: lists in mappings are indented, as v3 does.
    Emitter(bool json, bool indented) : json_(json), indented_(indented) {}

    std::string run(const Value& value) {
        node(value, false);
        write_indent();
        return std::move(out_);
    }

private:
    std::string out_;
    bool json_, indented_;
    int indent_ = -1, column_ = 0, depth_ = 0;
    bool whitespace_ = true, indention_ = true;
    using Members = std::vector<std::pair<std::string_view, const Value*>>;

    void put(char32_t c) {
        append_rune(out_, c);
        ++column_;
    }

    void put_ascii(std::string_view text) {
        out_ += text;
        column_ += static_cast<int>(text.size());
    }

    void put_break() {
        out_ += '\n';
        column_ = 0;
    }

    void write_break(char32_t c) {
        if (c == '\n') { return put_break(); }
        append_rune(out_, c);
        column_ = 0;
    }

    void write_indent() {
        const int indent = std::max(indent_, 0);
        if (!indention_ || column_ > indent || (column_ == indent && !whitespace_)) { put_break(); }
        if (column_ < indent) {
            out_.append(static_cast<std::size_t>(indent - column_), ' ');
            column_ = indent;
        }
        whitespace_ = indention_ = true;
    }

    void indicator(std::string_view text, bool need_whitespace, bool is_whitespace, bool is_indention) {
        if (need_whitespace && !whitespace_) { put(' '); }
        put_ascii(text);
        whitespace_ = is_whitespace;
        indention_ = indention_ && is_indention;
    }

    int raise(bool flow, bool indentless) {
        const int before = indent_;
        if (indent_ < 0) {
            indent_ = flow ? 2 : 0;
        } else if (!indentless) {
            indent_ += 2;
        }
        return before;
    }

    void node(const Value& value, bool mapping) {
        if (++depth_ > k_yaml_depth_max) {
            throw Fault{"a value is nested too deep, or contains itself", "recipe-too-large", ""};
        }
        check_size(out_.size());
        one(value, mapping);
        --depth_;
    }

    void one(const Value& value, bool mapping) {
        switch (value.type()) {
            case Type::invalid:
            case Type::nil: return plain("null");
            case Type::boolean: return plain(value.as_bool() ? "true" : "false");
            case Type::integer:
            case Type::int64: return plain(std::to_string(value.as_int()));
            case Type::uint64:
            case Type::uint8: return plain(std::to_string(value.as_uint()));
            case Type::float64: return real(value.as_real());
            case Type::string: return string(value.text(), false);
            case Type::bytes: return bytes(value, mapping);
            case Type::time: return json_ ? string(rfc3339(value.as_time()), false) : plain(rfc3339(value.as_time()));
            case Type::record: return record(*value.as_record());
            default: break;
        }
        if (value.is_none() && json_) { return plain("null"); }
        if (value.is_map()) {
            Members members;
            members.reserve(value.members().size());
            for (const auto& [key, member] : value.members()) { members.emplace_back(key, &member); }
            return this->mapping(members);
        }
        sequence(value.items(), mapping);
    }

    void record(const Record& record) {
        require_known(record);
        if (!json_) {
            throw Fault{"toYamlPretty of " + record.type + " is not supported", "unsupported-function",
                        "toYaml writes it"};
        }
        if (record.fields.empty() && record.has_text) { return string(record.text, false); }
        Members members;
        for (const auto& field : record.fields) {
            if (field.json.empty() || (field.omit_empty && empty(field.value))) { continue; }
            members.emplace_back(field.json, &field.value);
        }
        this->mapping(members);
    }

    void bytes(const Value& value, bool mapping) {
        if (json_) {
            if (value.is_none()) { return plain("null"); }
            return string(base::to_base64(value.text()), false);
        }
        List numbers;
        for (const char c : value.text()) { numbers.push_back(Value::integer(static_cast<unsigned char>(c))); }
        sequence(numbers, mapping);
    }

    void mapping(Members& members) {
        if (members.empty()) {
            indicator("{", true, true, false);
            return indicator("}", false, false, false);
        }
        std::sort(members.begin(), members.end(),
                  [](const auto& a, const auto& b) { return is_key_before(a.first, b.first); });
        const int before = raise(false, false);
        for (const auto& [key, member] : members) {
            write_indent();
            if (json_) { check_json_key(key); }
            const bool simple =
                key.size() <= k_simple_key_max && (is_yaml_word(key) || !analyze_text(runes(key)).multiline);
            if (!simple) { indicator("?", true, false, true); }
            string(key, simple);
            if (simple) {
                indicator(":", false, false, false);
            } else {
                write_indent();
                indicator(":", true, false, true);
            }
            node(*member, true);
        }
        indent_ = before;
    }

    void sequence(std::span<const Value> items, bool mapping) {
        if (items.empty()) {
            indicator("[", true, true, false);
            return indicator("]", false, false, false);
        }
        const int before = raise(false, mapping && !indention_ && !indented_);
        for (const auto& item : items) {
            write_indent();
            indicator("-", true, false, true);
            node(item, false);
        }
        indent_ = before;
    }

    void real(double number) {
        if (json_) {
            const std::string text = json_number(number);
            const Scalar scalar = resolve_scalar(text);
            if (scalar.kind == Resolved::integer) { return plain(std::to_string(scalar.integer)); }
            if (scalar.kind == Resolved::uint) {
                return plain(std::to_string(static_cast<std::uint64_t>(scalar.integer)));
            }
        }
        const std::string text = format_real(number, 'g', -1);
        plain(text == "+Inf" ? ".inf" : text == "-Inf" ? "-.inf" : text == "NaN" ? ".nan" : text);
    }

    /// ASCII that is written as it is.
    void plain(std::string_view text) {
        if (!whitespace_) { put(' '); }
        put_ascii(text);
        whitespace_ = indention_ = false;
    }

    /// A text without quotes; such a text has no line feeds.
    void plain_scalar(const std::u32string& value, bool may_fold) {
        if (!whitespace_) { put(' '); }
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (may_fold && folds(value, i) && value[i + 1] != ' ') {
                write_indent();
            } else {
                put(value[i]);
            }
            indention_ = indention_ && value[i] == ' ';
        }
        whitespace_ = indention_ = false;
    }

    /// Whether a line may end at character i: the first of some spaces, behind the width, neither first nor last.
    bool folds(const std::u32string& value, std::size_t i) const {
        return json_ && column_ > k_width && value[i] == ' ' && i > 0 && i + 1 < value.size() && value[i - 1] != ' ';
    }

    void string(std::string_view given, bool simple_key) {
        if (is_yaml_word(given)) { return plain(given); }
        std::string text(given);
        if (!base::is_utf8(text)) {
            if (!json_) {
                indicator("!!binary", true, false, false);
                text = base::to_base64(text);
            } else {
                text = utf8(runes(text));
            }
        }
        std::u32string value = runes(text);
        if (json_) {
            for (const char32_t c : value) {
                if (!is_yaml_readable(c) && c >= 0x20) { throw Fault{"control characters are not allowed"}; }
            }
            if (value.find(k_next_line) != std::u32string::npos) {
                value = fold_next_lines(value);
                text = utf8(value);
            }
        }
        const TextForms a = analyze_text(value, !json_);
        Style style = Style::double_quoted;
        if (text.find('\n') != std::string::npos) {
            style = Style::literal;
        } else if (resolve_scalar(text).kind == Resolved::text && !base60(text)) {
            style = Style::plain;
        }
        if (simple_key && a.multiline) { style = Style::double_quoted; }
        if (style == Style::plain && (!a.block_plain || (value.empty() && simple_key))) {
            style = Style::single_quoted;
        }
        if (style == Style::single_quoted && !a.single_quoted) { style = Style::double_quoted; }
        if (style == Style::literal && (!a.block || simple_key)) { style = Style::double_quoted; }
        const int before = raise(true, false);
        switch (style) {
            case Style::plain: plain_scalar(value, !simple_key); break;
            case Style::single_quoted: single_quoted(value, !simple_key); break;
            case Style::double_quoted: double_quoted(value, !simple_key); break;
            case Style::literal: literal(value); break;
        }
        indent_ = before;
    }

    /// "1:20": a number of base 60 in YAML 1.1.
    static bool base60(std::string_view text) {
        if (text.empty() || text.find(':') == std::string_view::npos) { return false; }
        std::size_t at = text[0] == '+' || text[0] == '-' ? 1 : 0;
        const auto digit = [&](std::size_t i) {
            return i < text.size() && is_digit(static_cast<unsigned char>(text[i]));
        };
        if (!digit(at)) { return false; }
        while (digit(at) || (at < text.size() && text[at] == '_')) { ++at; }
        int groups = 0;
        while (at < text.size() && text[at] == ':') {
            ++at;
            if (!digit(at)) { return false; }
            if (text[at] <= '5' && digit(at + 1)) { ++at; }
            ++at;
            ++groups;
        }
        if (groups == 0) { return false; }
        if (at < text.size() && text[at] == '.') {
            ++at;
            while (digit(at) || (at < text.size() && text[at] == '_')) { ++at; }
        }
        return at == text.size();
    }

    void single_quoted(const std::u32string& value, bool may_fold) {
        indicator("'", true, false, false);
        bool breaks = false;
        for (std::size_t i = 0; i < value.size(); ++i) {
            const char32_t c = value[i];
            if (c == ' ') {
                if (may_fold && folds(value, i) && value[i + 1] != ' ') {
                    write_indent();
                } else {
                    put(c);
                }
                continue;
            }
            if (is_yaml_break(c)) {
                if (!breaks && c == '\n') { put_break(); }
                write_break(c);
                indention_ = breaks = true;
                continue;
            }
            if (breaks) { write_indent(); }
            if (c == '\'') { put('\''); }
            put(c);
            indention_ = breaks = false;
        }
        indicator("'", false, false, false);
        whitespace_ = indention_ = false;
    }

    void double_quoted(const std::u32string& value, bool may_fold) {
        indicator("\"", true, false, false);
        const bool escapes_all = value.starts_with(
            U'\uFEFF');  // go-yaml looks for this mark at the start of the text, whichever character it is at
        for (std::size_t i = 0; i < value.size(); ++i) {
            const char32_t c = value[i];
            if (c == ' ' && !escapes_all && may_fold && folds(value, i)) {
                write_indent();
                if (value[i + 1] == ' ') { put('\\'); }
                continue;
            }
            if (!escapes_all && is_yaml_printable(c) && !is_yaml_break(c) && c != '"' && c != '\\') {
                put(c);
                continue;
            }
            put('\\');
            constexpr std::array<std::pair<char32_t, char>, 15> k_names{{{0, '0'},
                                                                         {7, 'a'},
                                                                         {8, 'b'},
                                                                         {9, 't'},
                                                                         {10, 'n'},
                                                                         {11, 'v'},
                                                                         {12, 'f'},
                                                                         {13, 'r'},
                                                                         {0x1b, 'e'},
                                                                         {'"', '"'},
                                                                         {'\\', '\\'},
                                                                         {0x85, 'N'},
                                                                         {0xa0, '_'},
                                                                         {0x2028, 'L'},
                                                                         {0x2029, 'P'}}};
            const auto named =
                std::find_if(k_names.begin(), k_names.end(), [&](const auto& n) { return n.first == c; });
            if (named != k_names.end()) {
                put(static_cast<unsigned char>(named->second));
                continue;
            }
            const int digits = c <= 0xff ? 2 : c <= 0xffff ? 4 : 8;
            put(c <= 0xff ? 'x' : c <= 0xffff ? 'u' : 'U');
            for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
                put(static_cast<unsigned char>("0123456789ABCDEF"[(c >> static_cast<unsigned>(shift)) & 0xFU]));
            }
        }
        indicator("\"", false, false, false);
        whitespace_ = indention_ = false;
    }

    void literal(const std::u32string& value) {
        indicator("|", true, false, false);
        if (value[0] == ' ' || is_yaml_break(value[0])) { indicator("2", false, false, false); }
        if (!is_yaml_break(value.back())) {
            indicator("-", false, false, false);
        } else if (value.size() == 1 || is_yaml_break(value[value.size() - 2])) {
            indicator("+", false, false, false);
        }
        put_break();
        indention_ = whitespace_ = true;
        bool breaks = true;
        for (const char32_t c : value) {
            if (is_yaml_break(c)) {
                write_break(c);
                indention_ = breaks = true;
                continue;
            }
            if (breaks) { write_indent(); }
            put(c);
            indention_ = breaks = false;
        }
    }
};

}  // namespace

std::string write_yaml(const Value& value) { return Emitter(true, false).run(value); }

std::string to_yaml_text(const Value& value) {
    std::string text;
    try {
        text = write_yaml(value);
    } catch (const Fault& fault) {
        // Helm swallows what cannot be written; what is too large is still refused.
        if (fault.code != "template-error") { throw; }
        return "";
    }
    if (text.ends_with('\n')) { text.pop_back(); }
    return text;
}

std::string to_yaml_pretty(const Value& value) {
    std::string text = Emitter(false, true).run(value);
    if (text.ends_with('\n')) { text.pop_back(); }
    return text;
}

}  // namespace kmm::recipe::tmpl
