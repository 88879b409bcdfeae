// SPDX-License-Identifier: Apache-2.0
#include "recipe/goyaml/yaml_raw.hpp"

#include "base/text.hpp"
#include "recipe/govalue/text.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::string_view k_mark = "\xEF\xBB\xBF";
constexpr std::size_t k_for_mark = 0, k_for_colon = 1, k_for_backslash = 2;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

RawYaml::RawYaml(std::string_view text) : text_(text), stand_ins_{{{k_mark, ""}, {":", ""}, {"", ""}}} {
    if (text_.starts_with(k_mark)) { text_.remove_prefix(k_mark.size()); }
    if (text_.find(k_mark) == std::string_view::npos) { return; }
    copy_ = replace_all(text_, k_mark, stand_in(k_for_mark));
    text_ = copy_;
}

/// A character of private use that the text does not have.
const std::string& RawYaml::stand_in(std::size_t which) {
    std::string& made = stand_ins_.at(which).text;
    for (int i = 0; made.empty() && i < 64; ++i) {
        const std::string candidate{'\xEE', '\x80', static_cast<char>(0x80 + i)};
        bool is_free = text_.find(candidate) == std::string_view::npos || i == 63;
        for (const auto& other : stand_ins_) { is_free = is_free && other.text != candidate; }
        if (is_free) { made = candidate; }
    }
    return made;
}

std::string RawYaml::restored(std::string_view scalar) const {
    std::string text(scalar);
    for (const auto& one : stand_ins_) {
        if (!one.text.empty()) { text = replace_all(text, one.text, one.meaning); }
    }
    return text;
}

bool RawYaml::hide_refused(std::size_t character) {
    if (is_wide()) { return false; }
    go_to(character);
    const std::string_view here = text_.substr(byte_);
    const bool is_colon = here.starts_with(':');
    if (!is_colon && !here.starts_with("\\'")) { return false; }
    const std::string& other = stand_in(is_colon ? k_for_colon : k_for_backslash);
    copy_ = std::string(text_.substr(0, byte_)) + other + std::string(here.substr(1));
    text_ = copy_;
    return true;
}

std::optional<RawPlace> RawYaml::escaped_slash(RawPlace begin, std::size_t end) { return find(begin, end, "\\/"); }

std::optional<RawPlace> RawYaml::question_mark(RawPlace begin, std::size_t end) { return find(begin, end, "?"); }

void RawYaml::step() {
    for (++byte_; byte_ < text_.size() && continues_character(text_[byte_]);) { ++byte_; }
    ++character_;
}

void RawYaml::go_to(std::size_t character) {
    if (character < character_) { byte_ = character_ = 0; }
    while (character_ < character && byte_ < text_.size()) { step(); }
}

std::optional<RawPlace> RawYaml::find(RawPlace begin, std::size_t end, std::string_view wanted) {
    if (is_wide()) { return std::nullopt; }
    go_to(begin.character);
    RawPlace at = begin;
    const auto pass = [&] {
        const bool ends_line = text_[byte_] == '\n';
        step();
        at = {at.line + (ends_line ? 1 : 0), ends_line ? 0 : at.column + 1, character_};
    };
    while (character_ < end && byte_ < text_.size()) {
        if (text_.substr(byte_).starts_with(wanted)) { return at; }
        if (text_[byte_] == '\\' && wanted.front() == '\\') { pass(); }
        if (byte_ < text_.size()) { pass(); }
    }
    return std::nullopt;
}

}  // namespace kmm::recipe::tmpl
