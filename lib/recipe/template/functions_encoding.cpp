// SPDX-License-Identifier: Apache-2.0
// Base 64 and 32, JSON.
#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/functions.hpp"
#include "recipe/template/json.hpp"

namespace kmm::recipe::tmpl {

namespace {

struct Alphabet {
    std::string_view letters;
    unsigned bits;         // of a letter
    std::size_t group;     // letters of a group
    std::string_view name;
};
constexpr Alphabet k_base64{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, 4, "base64"};
constexpr Alphabet k_base32{"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, 8, "base32"};

std::string encoded(std::string_view bytes, const Alphabet& alphabet) {
    std::string out;
    std::uint32_t pending = 0;
    unsigned bits = 0;
    for (const char c : bytes) {
        pending = (pending << 8U) | static_cast<unsigned char>(c);
        bits += 8;
        while (bits >= alphabet.bits) {
            bits -= alphabet.bits;
            out += alphabet.letters[(pending >> bits) & ((1U << alphabet.bits) - 1)];
        }
        pending &= (1U << bits) - 1;
    }
    if (bits > 0) { out += alphabet.letters[(pending << (alphabet.bits - bits)) & ((1U << alphabet.bits) - 1)]; }
    while (out.size() % alphabet.group != 0) { out += '='; }
    return out;
}

/// As Sprig: what cannot be decoded gives the text of Go's error.
std::string decoded(std::string_view given, const Alphabet& alphabet) {
    std::string text;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (given[i] == '\n' || given[i] == '\r') { continue; }
        text += given[i];
        places.push_back(i);
    }
    const auto fault = [&](std::size_t at) {
        return fmt::format("illegal {} data at input byte {}", alphabet.name,
                           at < places.size() ? places[at] : given.size());
    };
    std::string out;
    std::uint32_t pending = 0;
    unsigned bits = 0;
    std::size_t at = 0;
    for (; at < text.size() && text[at] != '='; ++at) {
        const std::size_t value = alphabet.letters.find(text[at]);
        if (value == std::string_view::npos) { return fault(at); }
        pending = (pending << alphabet.bits) | static_cast<std::uint32_t>(value);
        bits += alphabet.bits;
        if (bits >= 8) {
            bits -= 8;
            out += static_cast<char>((pending >> bits) & 0xFFU);
        }
        pending &= (1U << bits) - 1;
    }
    const std::size_t rest = at % alphabet.group;
    std::size_t padding = 0;
    const std::size_t start = at;
    while (at < text.size() && text[at] == '=') {
        ++at;
        ++padding;
    }
    const bool right_rest = alphabet.bits == 6 ? rest != 1 : rest != 1 && rest != 3 && rest != 6;
    const std::size_t wanted = rest == 0 ? 0 : alphabet.group - rest;
    if (padding > wanted) { return fault(start + wanted); }
    if (!right_rest || padding < wanted) {
        return fault(rest == 0           ? start
                     : at == text.size() ? (alphabet.bits == 6 && padding == 0 ? start - rest : at)
                                         : at);
    }
    if (at < text.size()) { return fault(at); }
    return out;
}

Value json_text(const Value& value, const JsonStyle& style) { return Value::string(write_json(value, style)); }

}  // namespace

std::span<const Function> encoding_functions() {
    static const Function table[] = {
        {"b64enc", "s", false, [](Call&, List& a) { return Value::string(encoded(a[0].text(), k_base64)); }},
        {"b64dec", "s", false, [](Call&, List& a) { return Value::string(decoded(a[0].text(), k_base64)); }},
        {"b32enc", "s", false, [](Call&, List& a) { return Value::string(encoded(a[0].text(), k_base32)); }},
        {"b32dec", "s", false, [](Call&, List& a) { return Value::string(decoded(a[0].text(), k_base32)); }},
        {"toPrettyJson", "a", false, [](Call&, List& a) { return json_text(a[0], {true, true}); }},
        {"mustToPrettyJson", "a", false, [](Call&, List& a) { return json_text(a[0], {true, true}); }},
        {"toRawJson", "a", false, [](Call&, List& a) { return json_text(a[0], {false, false}); }},
        {"mustToRawJson", "a", false, [](Call&, List& a) { return json_text(a[0], {false, false}); }},
        {"mustToJson", "a", false, [](Call&, List& a) { return json_text(a[0], {}); }},
        {"mustFromJson", "s", false,
         [](Call&, List& a) {
             std::string fault;
             Value value = read_json_text(a[0].text(), fault);
             if (!fault.empty()) { throw Fault{fault}; }
             return value;
         }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
