// SPDX-License-Identifier: Apache-2.0
// Sprig's functions of texts.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {

namespace {

std::size_t size_of(std::int64_t number) { return static_cast<std::size_t>(number); }

std::string repeated(std::string_view text, std::int64_t count) {
    if (count < 0) { throw Fault{"strings: negative Repeat count"}; }
    check_size(text.empty() ? 0 : text.size() * static_cast<std::uint64_t>(count));
    std::string out;
    for (std::int64_t i = 0; i < count && !text.empty(); ++i) { out += text; }
    return out;
}

std::string indented(std::int64_t spaces, std::string_view text) {
    const std::string pad = repeated(" ", spaces);
    return pad + replace_all(text, "\n", "\n" + pad);
}

std::string truncated(std::int64_t count, const std::string& text) {
    const auto size = static_cast<std::int64_t>(text.size());
    if (count < 0 && size + count > 0) { return text.substr(size_of(size + count)); }
    if (count >= 0 && size > count) { return text.substr(0, size_of(count)); }
    return text;
}

std::string substring(std::int64_t start, std::int64_t end, const std::string& text) {
    const auto size = static_cast<std::int64_t>(text.size());
    if (start < 0) {
        start = 0;
    } else if (end < 0 || end > size) {
        end = size;
    }
    if (start > end || end < 0 || end > size) {
        throw Fault{fmt::format("slice bounds out of range [{}:{}] with length {}", start, end, size)};
    }
    return text.substr(size_of(start), size_of(end - start));
}

/// goutils.AbbreviateFull.
std::string abbreviated(const std::string& text, std::int64_t offset, std::int64_t width) {
    const auto size = static_cast<std::int64_t>(text.size());
    if (text.empty() || width < 4) { return text.empty() || width >= 4 ? text : ""; }
    if (size <= width) { return text; }
    offset = std::min(offset, size);
    if (size - offset < width - 3) { offset = size - (width - 3); }
    if (offset <= 4) { return text.substr(0, size_of(width - 3)) + "..."; }
    if (width < 7) { return ""; }
    if (offset + width - 3 < size) { return "..." + abbreviated(text.substr(size_of(offset)), 0, width - 3); }
    return "..." + text.substr(size_of(size - (width - 3)));
}

std::string wrapped(const std::string& text, std::int64_t width, std::string line, bool break_words) {
    if (text.empty()) { return ""; }
    if (line.empty()) { line = "\n"; }
    const std::size_t length =
        width < 1 ? 1
                  : static_cast<std::size_t>(std::min<std::int64_t>(width, static_cast<std::int64_t>(text.size()) + 1));
    std::size_t offset = 0;
    std::string out;
    while (text.size() - offset > length) {
        if (text[offset] == ' ') {
            ++offset;
            continue;
        }
        const std::size_t space = std::string_view(text).substr(offset, length + 1).rfind(' ');
        if (space != std::string_view::npos) {
            out += text.substr(offset, space) + line;
            offset += space + 1;
        } else if (break_words) {
            out += text.substr(offset, length) + line;
            offset += length;
        } else if (const std::size_t next = text.find(' ', offset + length); next == std::string::npos) {
            out += text.substr(offset);
            offset = text.size();
        } else {
            out += text.substr(offset, next - offset) + line;
            offset = next + 1;
        }
        check_size(out.size());
    }
    return out + text.substr(offset);
}

Value split_map(Call& call, std::string_view text, std::string_view separator, std::int64_t count) {
    auto pieces = split_text(text, separator, count, &call.run.budget);
    Map members;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        std::string key = "_" + std::to_string(i);
        call.run.budget.take(member_bytes(key.size()));
        members.emplace(std::move(key), Value::string(std::move(pieces[i])));
    }
    return Value::map(std::move(members), Type::string_map);
}

/// What `write` makes of each argument that is not nil, with blanks between.
template <typename Write>
std::string joined_all(const List& a, Write&& write) {
    std::string out;
    bool first = true;
    for (const auto& value : a) {
        if (value.is_nil()) { continue; }
        if (!std::exchange(first, false)) { out += ' '; }
        out += write(value);
        check_size(out.size());
    }
    return out;
}

std::string quoted(const Value& value) { return quote_text(text_of(value)); }
std::string single_quoted(const Value& value) { return '\'' + print_value(value) + '\''; }

Value text(std::string made) { return Value::string(std::move(made)); }
Value text(std::string_view made) { return Value::string(std::string(made)); }

}  // namespace

std::span<const Function> text_functions() {
    static const Function table[] = {
        {"hello", "", false, [](Call&, List&) { return Value::string("Hello!"); }},
        {"abbrev", "is", false,
         [](Call&, List& a) { return a[0].as_int() < 4 ? a[1] : text(abbreviated(a[1].text(), 0, a[0].as_int())); }},
        {"abbrevboth", "iis", false,
         [](Call&, List& a) {
             const std::int64_t left = a[0].as_int(), right = a[1].as_int();
             return right < 4 || (left > 0 && right < 7) ? a[2] : text(abbreviated(a[2].text(), left, right));
         }},
        {"trunc", "is", false, [](Call&, List& a) { return text(truncated(a[0].as_int(), a[1].text())); }},
        {"trim", "s", false, [](Call&, List& a) { return text(trim_space(a[0].text())); }},
        {"substr", "iis", false,
         [](Call&, List& a) { return text(substring(a[0].as_int(), a[1].as_int(), a[2].text())); }},
        {"repeat", "is", false, [](Call&, List& a) { return text(repeated(a[1].text(), a[0].as_int())); }},
        {"trimall", "ss", false, [](Call&, List& a) { return text(trim_set(a[1].text(), a[0].text())); }},
        {"trimAll", "ss", false, [](Call&, List& a) { return text(trim_set(a[1].text(), a[0].text())); }},
        {"trimSuffix", "ss", false,
         [](Call&, List& a) {
             const bool has = a[1].text().ends_with(a[0].text());
             return has ? text(a[1].text().substr(0, a[1].text().size() - a[0].text().size())) : a[1];
         }},
        {"trimPrefix", "ss", false,
         [](Call&, List& a) {
             return a[1].text().starts_with(a[0].text()) ? text(a[1].text().substr(a[0].text().size())) : a[1];
         }},
        {"wrap", "is", false, [](Call&, List& a) { return text(wrapped(a[1].text(), a[0].as_int(), "", false)); }},
        {"wrapWith", "iss", false,
         [](Call&, List& a) { return text(wrapped(a[2].text(), a[0].as_int(), a[1].text(), true)); }},
        {"contains", "ss", false,
         [](Call&, List& a) { return Value::boolean(a[1].text().find(a[0].text()) != std::string::npos); }},
        {"hasPrefix", "ss", false, [](Call&, List& a) { return Value::boolean(a[1].text().starts_with(a[0].text())); }},
        {"hasSuffix", "ss", false, [](Call&, List& a) { return Value::boolean(a[1].text().ends_with(a[0].text())); }},
        {"quote", "a", true, [](Call&, List& a) { return text(joined_all(a, quoted)); }},
        {"squote", "a", true, [](Call&, List& a) { return text(joined_all(a, single_quoted)); }},
        {"cat", "a", true, [](Call&, List& a) { return text(joined_all(a, print_value)); }},
        {"indent", "is", false, [](Call&, List& a) { return text(indented(a[0].as_int(), a[1].text())); }},
        {"nindent", "is", false, [](Call&, List& a) { return text("\n" + indented(a[0].as_int(), a[1].text())); }},
        {"replace", "sss", false,
         [](Call&, List& a) { return text(replace_all(a[2].text(), a[0].text(), a[1].text())); }},
        {"plural", "ssi", false, [](Call&, List& a) { return a[2].as_int() == 1 ? a[0] : a[1]; }},
        {"toString", "a", false, [](Call&, List& a) { return text(text_of(a[0])); }},
        {"toStrings", "a", false, [](Call& call, List& a) { return Value::strings(texts_of(a[0], call.run.budget)); }},
        {"join", "sa", false,
         [](Call& call, List& a) { return text(join_texts(texts_of(a[1], call.run.budget), a[0].text())); }},
        {"split", "ss", false, [](Call& call, List& a) { return split_map(call, a[1].text(), a[0].text(), -1); }},
        {"splitList", "ss", false,
         [](Call& call, List& a) {
             return Value::strings(split_text(a[1].text(), a[0].text(), -1, &call.run.budget));
         }},
        {"splitn", "sis", false,
         [](Call& call, List& a) { return split_map(call, a[2].text(), a[0].text(), a[1].as_int()); }},
        {"getHostByName", "s", false, [](Call&, List&) { return Value::string(""); }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
