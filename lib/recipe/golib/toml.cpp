// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/toml.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_toml_depth_max = 300;

std::string toml_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        constexpr std::string_view k_codes = "\b\t\n\f\r", k_names = "btnfr";
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (const std::size_t i = k_codes.find(c); i != std::string_view::npos) {
            out += '\\';
            out += k_names[i];
        } else if (byte < 0x20 || byte == 0x7f) {
            out += fmt::format("\\u{:04x}", byte);
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string toml_key(std::string_view key) {
    const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x80 && (is_letter(byte) || is_digit(byte) || c == '_' || c == '-');
    });
    return bare ? std::string(key) : toml_quoted(key);
}

class TomlWriter {
public:
    std::string out;

    void top(const Value& value) {
        if (all_tables(value)) { throw Fault{"toml: top-level values must be Go maps or structs"}; }
        if (is_hash(value)) {
            table({}, value);
        } else {
            element(value, 0);
        }
    }

    void table(const std::vector<std::string_view>& path, const Value& value) {
        if (path.size() > k_toml_depth_max) { throw Fault{"a value is nested too deep", "recipe-too-large", ""}; }
        check_size(out.size());
        if (path.size() == 1) { line(); }
        if (!path.empty()) {
            out += indent(path) + '[' + path_text(path) + ']';
            line();
        }
        members(path, value);
    }

private:
    using Path = std::vector<std::string_view>;  ///< of keys that the value holds

    static std::string indent(const Path& path) { return std::string((path.size() - 1) * 2, ' '); }

    static std::string path_text(const Path& path) {
        std::string text;
        for (const auto key : path) {
            text += (text.empty() ? "" : ".") + toml_key(key);
            check_size(text.size());
        }
        return text;
    }

    void line() {
        if (!out.empty()) { out += '\n'; }
    }

    static bool all_tables(const Value& value) {
        if (!value.is_list() || value.items().empty()) { return false; }
        bool all = true;
        for (const auto& item : value.items()) {
            if (is_absent(item)) { throw Fault{"toml: cannot encode array with nil element"}; }
            if (item.is_list()) { (void)all_tables(item); }
            all = all && is_hash(item);
        }
        return all;
    }

    static bool is_hash(const Value& value) {
        if (value.type() == Type::record) {
            throw Fault{fmt::format("toToml of {} is not supported", type_name(value)), "unsupported-function",
                        "give it a dictionary of the fields"};
        }
        return value.is_map();
    }
    static bool is_absent(const Value& value) {
        return value.is_nil() || ((value.is_map() || value.is_list()) && value.is_none());
    }

    void members(const Path& path, const Value& value) {
        for (const bool tables : {false, true}) {
            for (const auto& [key, member] : value.members()) {
                if (is_absent(member) || (is_hash(member) || all_tables(member)) != tables) { continue; }
                auto inner = path;
                inner.push_back(key);
                if (is_hash(member)) {
                    table(inner, member);
                } else if (tables) {
                    array_of_tables(inner, member);
                } else {
                    out += indent(inner) + toml_key(key) + " = ";
                    element(member, 0);
                    line();
                }
            }
        }
    }

    void array_of_tables(const Path& path, const Value& value) {
        for (const auto& item : value.items()) {
            line();
            check_size(out.size());
            out += indent(path) + "[[" + path_text(path) + "]]";
            line();
            members(path, item);
        }
    }

    void element(const Value& value, int depth) {
        if (depth > k_toml_depth_max) { throw Fault{"a value is nested too deep", "recipe-too-large", ""}; }
        check_size(out.size());
        switch (value.type()) {
            case Type::boolean: out += value.as_bool() ? "true" : "false"; return;
            case Type::integer:
            case Type::int64: out += std::to_string(value.as_int()); return;
            case Type::uint64:
            case Type::uint8: out += std::to_string(value.as_uint()); return;
            case Type::string: out += toml_quoted(value.text()); return;
            case Type::time: out += rfc3339(value.as_time()); return;
            case Type::float64: return real(value.as_real());
            case Type::bytes: return bytes(value.text());
            default: break;
        }
        if (value.is_list()) {
            out += '[';
            bool first = true;
            for (const auto& item : value.items()) {
                if (!first) { out += ", "; }
                first = false;
                element(item, depth + 1);
            }
            out += ']';
        } else if (value.is_map()) {
            inline_table(value, depth);
        } else {
            throw Fault{fmt::format("unexpected type: {}", type_name(value))};
        }
    }

    void inline_table(const Value& value, int depth) {
        std::vector<std::pair<std::string_view, const Value*>> direct, tables;
        for (const auto& [key, member] : value.members()) {
            (!is_absent(member) && (is_hash(member) || all_tables(member)) ? tables : direct)
                .emplace_back(key, &member);
        }
        out += '{';
        const auto write = [&](const auto& list, bool more) {
            for (std::size_t i = 0; i < list.size(); ++i) {
                if (is_absent(*list[i].second)) { continue; }
                out += toml_key(list[i].first) + " = ";
                element(*list[i].second, depth + 1);
                if (more || i + 1 < list.size()) { out += ", "; }
            }
        };
        write(direct, !tables.empty());
        write(tables, false);
        out += '}';
    }

    void bytes(std::string_view text) {
        out += '[';
        for (std::size_t i = 0; i < text.size(); ++i) {
            out += (i > 0 ? ", " : "") + std::to_string(static_cast<unsigned char>(text[i]));
        }
        out += ']';
    }

    void real(double number) {
        if (std::isnan(number) || std::isinf(number)) {
            out += (std::signbit(number) ? "-" : "") + std::string(std::isnan(number) ? "nan" : "inf");
            return;
        }
        const std::string text = format_real(number, 'g', -1);
        out += text;
        if (text.find_first_of("e.") == std::string::npos) { out += ".0"; }
    }
};

}  // namespace

std::string write_toml(const Value& value) {
    if (value.is_nil()) {
        throw Fault{"toToml needs a dictionary, found nil", "template-error", "give it a dictionary"};
    }
    if (value.is_map() && value.is_none()) { return ""; }
    TomlWriter writer;
    try {
        writer.top(value);
    } catch (const Fault& fault) {
        if (fault.code != "template-error") { throw; }
        return fault.message;
    }
    return std::move(writer.out);
}

}  // namespace kmm::recipe::tmpl
