// SPDX-License-Identifier: Apache-2.0
// The reader of kmm.schema, whose form is explained at its beginning.
#include "schema/schema.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::schema {

namespace {

constexpr std::array<std::pair<std::string_view, Form>, 10> k_scalars{{
    {"string", Form::string},
    {"bool", Form::boolean},
    {"int", Form::integer},
    {"int32", Form::int32},
    {"int64", Form::int64},
    {"quantity", Form::quantity},
    {"time", Form::time},
    {"subdomain", Form::subdomain},
    {"any", Form::any},
    {"empty", Form::empty},
}};

Error bad_schema(std::string_view line) { return bug("kmm.schema: unexpected \"" + std::string(line) + "\""); }

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (const auto word : base::split(text, ' ')) {
        if (!word.empty()) { words.emplace_back(word); }
    }
    return words;
}

/// What stands in front of `separator`, which is taken off `text` with it; all of it without a separator.
std::string_view take_until(std::string_view& text, std::string_view separator) {
    const std::size_t at = text.find(separator);
    const std::string_view head = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + separator.size());
    return head;
}

/// Takes the number of ">=2.3" or "<2.4", whichever `sign` is, off the front; `otherwise` if it is not there.
unsigned take_minor(std::string_view& text, std::string_view sign, unsigned otherwise) {
    const std::string prefix = std::string(sign) + "2.";
    if (!text.starts_with(prefix)) { return otherwise; }
    text.remove_prefix(prefix.size());
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = base::parse_number<unsigned>(text.substr(0, digits));
    if (!number) { throw bad_schema(text); }
    text.remove_prefix(digits);
    return *number;
}

ReleaseSpan take_span(std::string_view& text) {
    ReleaseSpan span;
    span.since = take_minor(text, ">=", 0);
    span.until = take_minor(text, "<", ReleaseSpan::k_open);
    return span;
}

Member& member_named(Type& type, std::string_view name) {
    const auto found =
        std::find_if(type.members.begin(), type.members.end(), [&](const auto& member) { return member.name == name; });
    if (found == type.members.end()) { throw bad_schema(name); }
    return *found;
}

void read_list_limits(Type& list, std::string_view rest) {
    const auto number = [&](std::string_view text) {
        const auto parsed = base::parse_number<std::size_t>(text);
        if (!parsed) { throw bad_schema(list.name); }
        return *parsed;
    };
    if (rest.starts_with("by(") && rest.ends_with(')')) {
        list.keys = words_of(rest.substr(3, rest.size() - 4));
    } else if (rest.starts_with("..")) {
        list.most = number(rest.substr(2));
    } else if (rest.ends_with('+')) {
        list.least = number(rest.substr(0, rest.size() - 1));
    } else if (!rest.empty()) {
        throw bad_schema(list.name);
    }
}

}  // namespace

const Member* Type::find(std::string_view member) const noexcept {
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.name == member; });
    return found == members.end() ? nullptr : &*found;
}

Schema::Schema(std::string_view text) {
    Type* type = nullptr;
    for (const auto line : base::split(text, '\n')) {
        if (line.empty() || line.front() == '#') { continue; }
        if (line.starts_with("kind ")) {
            auto words = words_of(line);
            if (words.size() < 4) { throw bad_schema(line); }
            Kind& kind = kinds_.emplace_back(Kind{words[1], words[2], words[3] == "Namespaced", 0, {}});
            std::string_view since = words.size() > 4 ? std::string_view(words[4]) : std::string_view();
            kind.since = take_minor(since, ">=", 0);
            kind.root.name = kind.kind;
            type = &kind.root;
        } else if (line.front() != ' ') {
            type = &types_[std::string(line)];
            type->name = line;
            if (!type->members.empty()) { throw bad_schema(line); }
        } else if (type == nullptr) {
            throw bad_schema(line);
        } else {
            add_line(*type, base::trim(line));
        }
    }
    for (const auto& [name, one] : types_) {
        if (one.name.empty()) { throw bad_schema(name); }
    }
}

void Schema::add_line(Type& type, std::string_view line) {
    if (line.starts_with("hint ") || line.starts_with("code ")) {
        std::string_view rest = line.substr(5);
        Member& member = member_named(type, take_until(rest, ": "));
        (line.starts_with("hint ") ? member.hint : member.code) = rest;
    } else if (line.starts_with("one-of ")) {
        std::string_view rest = line.substr(7);
        const std::string code(take_until(rest, ": "));
        type.one_of.push_back({code, words_of(rest)});
        for (const auto& name : type.one_of.back().members) { member_named(type, name); }
    } else {
        add_members(type, line);
    }
}

void Schema::add_members(Type& type, std::string_view line) {
    std::string_view rest = line;
    const Type* of = type_named(take_until(rest, ": "));
    for (const auto& word : words_of(rest)) {
        std::string_view text = word;
        const std::size_t end = std::min(text.find_first_of("!<>"), text.size());
        Member& member = type.members.emplace_back();
        member.name = text.substr(0, end);
        member.type = of;
        text.remove_prefix(end);
        member.known = take_span(text);
        if (text.starts_with('!')) {
            text.remove_prefix(1);
            member.required = true;
            member.required_in = take_span(text);
        }
        if (!text.empty()) { throw bad_schema(line); }
    }
}

const Type* Schema::type_named(std::string_view name) {
    const auto [place, is_new] = types_.try_emplace(std::string(name));
    Type& type = place->second;
    if (!is_new) { return &type; }
    const auto* const scalar =
        std::find_if(k_scalars.begin(), k_scalars.end(), [&](const auto& row) { return row.first == name; });
    const std::size_t end = name.find_last_of("]}");
    if (scalar != k_scalars.end()) {
        type.form = scalar->second;
        type.name = name;
    } else if (name.starts_with("enum(") && name.ends_with(')')) {
        type.form = Form::choice;
        type.name = name;
        type.words = words_of(name.substr(5, name.size() - 6));
    } else if ((name.starts_with('{') || name.starts_with('[')) && end != std::string_view::npos) {
        type.form = name.front() == '{' ? Form::map : Form::list;
        type.name = name;
        type.of = type_named(name.substr(1, end - 1));
        read_list_limits(type, name.substr(end + 1));
    }  // else an object that is said further below; one that never is has no name
    return &type;
}

const Kind* Schema::find_kind(std::string_view kind, std::string_view api_version) const noexcept {
    const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& one) {
        return one.kind == kind && one.api_version == api_version;
    });
    return found == kinds_.end() ? nullptr : &*found;
}

const Type* Schema::find_type(std::string_view name) const noexcept {
    const auto found = types_.find(name);
    return found == types_.end() ? nullptr : &found->second;
}

const Schema& of_kmm() {
    static const Schema schema(k_text);
    return schema;
}

}  // namespace kmm::schema
