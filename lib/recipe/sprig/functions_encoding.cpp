// SPDX-License-Identifier: Apache-2.0
// Base 64 and 32, JSON.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

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

/// Appends the bytes of the first `count` letters of a group.
void put_group(std::string& out, const std::array<std::uint8_t, 8>& letters, std::size_t count,
               const Alphabet& alphabet) {
    std::uint32_t pending = 0;
    unsigned bits = 0;
    for (std::size_t i = 0; i < count; ++i) {
        pending = ((pending << alphabet.bits) | letters[i]) & 0xFFFFU;
        bits += alphabet.bits;
        if (bits >= 8) {
            bits -= 8;
            out += static_cast<char>((pending >> bits) & 0xFFU);
        }
    }
}

std::string decode_fault(std::size_t at, const Alphabet& alphabet) {
    return fmt::format("illegal {} data at input byte {}", alphabet.name, at);
}

/// As Sprig: what cannot be decoded gives the text of Go's error. Places are those of the text without ends of lines.
std::string from_base32(std::string_view given) {
    std::string text;
    std::copy_if(given.begin(), given.end(), std::back_inserter(text), [](char c) { return c != '\n' && c != '\r'; });
    std::string out;
    bool is_padded = false;
    for (std::size_t at = 0; at < text.size() && !is_padded;) {
        std::array<std::uint8_t, 8> letters{};
        std::size_t count = 0;
        while (count < letters.size() && !is_padded) {
            if (at == text.size()) { return decode_fault(at - count, k_base32); }
            const char c = text[at++];
            const std::size_t left = text.size() - at, wanted = letters.size() - 1 - count;
            if (c == '=' && count >= 2 && left < letters.size()) {
                if (left < wanted) { return decode_fault(text.size(), k_base32); }
                for (std::size_t i = 0; i < wanted; ++i) {
                    if (text[at + i] != '=') { return decode_fault(at + i - 1, k_base32); }
                }
                if (count == 3 || count == 6) { return decode_fault(at - 1, k_base32); }
                is_padded = true;
                continue;
            }
            const std::size_t value = k_base32.letters.find(c);
            if (value == std::string_view::npos) { return decode_fault(at - 1, k_base32); }
            letters[count++] = static_cast<std::uint8_t>(value);
        }
        put_group(out, letters, count, k_base32);
    }
    return out;
}

/// The same. Places are those of the whole text.
std::string from_base64(std::string_view text) {
    std::string out;
    const auto skip_ends = [&](std::size_t& at) {
        while (at < text.size() && (text[at] == '\n' || text[at] == '\r')) { ++at; }
    };
    for (std::size_t at = 0;;) {
        std::array<std::uint8_t, 8> letters{};
        std::size_t count = 0;
        for (; count < k_base64.group; ++count) {
            skip_ends(at);
            if (at == text.size() && count == 0) { return out; }
            if (at == text.size()) { return decode_fault(at - count, k_base64); }
            const char c = text[at++];
            const std::size_t value = k_base64.letters.find(c);
            if (value != std::string_view::npos) {
                letters[count] = static_cast<std::uint8_t>(value);
                continue;
            }
            if (c != '=' || count < 2) { return decode_fault(at - 1, k_base64); }
            skip_ends(at);
            if (count == 2 && (at == text.size() || text[at] != '=')) {
                return decode_fault(at == text.size() ? at : at - 1, k_base64);
            }
            if (count == 2) { ++at; }
            skip_ends(at);
            if (at < text.size()) { return decode_fault(at, k_base64); }
            break;
        }
        put_group(out, letters, count, k_base64);
    }
}

Value json_text(const Value& value, const JsonStyle& style) { return Value::string(write_json(value, style)); }

}  // namespace

std::span<const Function> encoding_functions() {
    static const Function table[] = {
        {"b64enc", "s", false, [](Call&, List& a) { return Value::string(encoded(a[0].text(), k_base64)); }},
        {"b64dec", "s", false, [](Call&, List& a) { return Value::string(from_base64(a[0].text())); }},
        {"b32enc", "s", false, [](Call&, List& a) { return Value::string(encoded(a[0].text(), k_base32)); }},
        {"b32dec", "s", false, [](Call&, List& a) { return Value::string(from_base32(a[0].text())); }},
        {"toPrettyJson", "a", false, [](Call&, List& a) { return json_text(a[0], {true, true}); }},
        {"mustToPrettyJson", "a", false, [](Call&, List& a) { return json_text(a[0], {true, true}); }},
        {"toRawJson", "a", false, [](Call&, List& a) { return json_text(a[0], {false, false}); }},
        {"mustToRawJson", "a", false, [](Call&, List& a) { return json_text(a[0], {false, false}); }},
        {"mustToJson", "a", false, [](Call&, List& a) { return json_text(a[0], {}); }},
        {"mustFromJson", "s", false,
         [](Call& call, List& a) {
             std::string fault;
             Value value = read_json_text(a[0].text(), fault, &call.run.budget);
             if (!fault.empty()) { throw Fault{fault}; }
             return value;
         }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
