// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/template.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/kernel_name.hpp"
#include "base/text.hpp"

namespace kmm::plan {

namespace {

bool is_name_byte(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::size_t name_length(std::string_view text) noexcept {
    std::size_t length = 0;
    while (length < text.size() && is_name_byte(text[length])) { ++length; }
    return length;
}

class Expander {
public:
    Expander(std::string_view text, const Variables& variables) : text_(text), variables_(variables) {}

    Expansion run() {
        while (at_ < text_.size() && result_.error.empty()) {
            if (text_[at_] != '$') {
                result_.text += text_[at_++];
                continue;
            }
            const std::string_view rest = text_.substr(at_ + 1);
            const std::size_t name = name_length(rest);
            if (rest.starts_with('$')) {
                result_.text += '$';
                at_ += 2;
            } else if (rest.starts_with('{')) {
                braces();
            } else if (name == 0 || rest.substr(0, name) == "_") {
                result_.text += '$';
                ++at_;
            } else {
                result_.text += value_of(rest.substr(0, name), at_, false).value_or("");
                at_ += 1 + name;
            }
        }
        return std::move(result_);
    }

private:
    void fail(std::size_t offset, std::string message) {
        result_.error = std::move(message);
        result_.error_offset = offset;
    }

    std::optional<std::string> value_of(std::string_view name, std::size_t offset, bool has_default) {
        VariableUse use;
        use.name = std::string(name);
        if (const auto found = variables_.find(name); found != variables_.end()) { use.value = found->second; }
        use.has_default = has_default;
        use.offset = offset;
        result_.uses.push_back(use);
        return use.value;
    }

    /// The text of a default: literal, or the value of the one variable it consists of.
    std::string default_text(std::string_view text, std::size_t offset) {
        if (!text.starts_with('$')) { return std::string(text); }
        const std::string_view name = text.substr(1);
        if (name.empty() || name_length(name) != name.size()) {
            fail(offset, "a default must be plain text or one $VARIABLE");
            return {};
        }
        return value_of(name, offset, false).value_or("");
    }

    /// at_ is at "${".
    void braces() {
        const std::size_t start = at_;
        const std::string_view rest = text_.substr(start + 2);
        const std::size_t close = rest.find_first_of("}\r\n");
        if (close == std::string_view::npos || rest[close] != '}') {
            fail(start, "closing brace expected");
            return;
        }
        const std::string_view body = rest.substr(0, close);
        const std::size_t length = name_length(body);
        if (length == 0) {
            fail(start, "variable name expected after \"${\"");
            return;
        }
        at_ = start + 2 + close + 1;
        const std::string_view name = body.substr(0, length);
        std::string_view tail = body.substr(length);
        if (tail.empty()) {
            result_.text += value_of(name, start, false).value_or("");
            return;
        }
        const bool colon = tail.starts_with(':');
        if (colon) { tail.remove_prefix(1); }
        const char op = tail.empty() ? '\0' : tail.front();
        if (op != '-' && op != '=' && op != '+') {
            fail(start + 2 + length, "expected \"}\" or one of - = + :- := :+ after the variable name");
            return;
        }
        const auto value = value_of(name, start, true);
        const bool use_value = colon && op != '+' ? value && !value->empty() : value.has_value();
        const std::size_t default_offset = start + 2 + length + (colon ? 2 : 1);
        if (op == '+') {
            if (use_value) { result_.text += default_text(tail.substr(1), default_offset); }
        } else {
            result_.text += use_value ? *value : default_text(tail.substr(1), default_offset);
        }
    }

    std::string_view text_;
    const Variables& variables_;
    std::size_t at_ = 0;
    Expansion result_;
};

}  // namespace

std::string normalise_kernel(std::string_view kernel) {
    std::string result(kernel);
    for (char& c : result) {
        if (!is_name_byte(c) && c != '-' && c != '.') { c = '_'; }
    }
    return result;
}

std::string dns_safe_kernel(std::string_view kernel) {
    std::string result = base::to_lower(normalise_kernel(kernel));
    std::replace_if(result.begin(), result.end(), [](char c) { return c == '_' || c == '.'; }, '-');
    while (!result.empty() && result.front() == '-') { result.erase(0, 1); }
    while (!result.empty() && result.back() == '-') { result.pop_back(); }
    return result;
}

bool begins_with_number(std::string_view text) noexcept {
    return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

std::string kernel_in_name(std::string_view text) {
    const auto is_plain = [](char c) { return is_name_byte(c) || c == '-' || c == '.' || c == '/' || c == '+'; };
    if (begins_with_number(text) || !std::all_of(text.begin(), text.end(), is_plain)) { return ""; }
    for (auto at = text.find_first_of("-/"); at != std::string_view::npos; at = text.find_first_of("-/", at + 1)) {
        const auto rest = text.substr(at + 1);
        const auto number = rest.substr(0, rest.find_first_not_of("0123456789"));
        if (!number.empty() && rest.substr(number.size()).starts_with('.')) {
            return base::is_kernel_name(rest) && template_variables(rest, "", "") ? std::string(rest) : "";
        }
    }
    return "";
}

void require_kernel_name(const std::string& kernel) {
    const auto pieces = base::split(kernel, ',');
    const auto is_kernel = [](std::string_view piece) { return template_variables(piece, "", "").has_value(); };
    if (pieces.size() > 1 && std::all_of(pieces.begin(), pieces.end(), is_kernel)) {
        throw Error(Exit::usage, "bad-kernel",
                    fmt::format("\"{}\" is a list, expected one kernel version", base::escape(kernel)))
            .hint("where several can be named, give --kernel once for each");
    }
    // A regexp that anchors nothing would match the name of a package, and the kernel would seem to be ready.
    if (base::is_kernel_name(kernel) && begins_with_number(kernel)) { return; }
    const std::string meant = kernel_in_name(kernel);
    throw Error(Exit::usage, "bad-kernel",
                fmt::format("\"{}\" is not a kernel version, expected one such as 6.1.0-56-amd64",
                            base::escape(kernel)))
        .hint(meant.empty() ? "name it as uname -r prints it" : fmt::format("did you mean {}?", meant));
}

std::optional<Variables> template_variables(std::string_view kernel, std::string_view name, std::string_view ns) {
    const std::string full = normalise_kernel(kernel);
    std::array<std::string, 3> pieces;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::size_t end = full.find_first_of(".,-", begin);
        pieces[i] = full.substr(begin, end == std::string::npos ? end : end - begin);
        if (end == std::string::npos && i + 1 < pieces.size()) { return std::nullopt; }
        begin = end + 1;
    }
    return Variables{{"KERNEL_FULL_VERSION", full},
                     {"KERNEL_VERSION", full},
                     {"KERNEL_X", pieces[0]},
                     {"KERNEL_XYZ", pieces[0] + "." + pieces[1] + "." + pieces[2]},
                     {"KERNEL_Y", pieces[1]},
                     {"KERNEL_Z", pieces[2]},
                     {"MOD_NAME", std::string(name)},
                     {"MOD_NAMESPACE", std::string(ns)}};
}

Expansion expand(std::string_view text, const Variables& variables) { return Expander(text, variables).run(); }

}  // namespace kmm::plan
