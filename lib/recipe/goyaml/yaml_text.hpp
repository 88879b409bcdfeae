// SPDX-License-Identifier: Apache-2.0
// Texts as go-yaml's emitter looks at them. Used by yaml_write.cpp alone.
#pragma once

#include <string>
#include <string_view>

namespace kmm::recipe::tmpl {

inline constexpr char32_t k_next_line = 0x85;

[[nodiscard]] bool is_yaml_break(char32_t c);
/// What is written without an escape in double quotes.
[[nodiscard]] bool is_yaml_printable(char32_t c);
/// What go-yaml's reader lets through: JSON with other characters cannot be read back.
[[nodiscard]] bool is_yaml_readable(char32_t c);

/// In which forms a text may stand.
struct TextForms {
    bool multiline = false, flow_plain = true, block_plain = true, single_quoted = true, block = true;
};
/// v3 lets tabs stand in blocks.
[[nodiscard]] TextForms analyze_text(const std::u32string& value, bool is_v3 = false);

/// Words and paths, of which most texts are: letters first, nothing in them that YAML looks at, and no word that is no
/// text.
[[nodiscard]] bool is_yaml_word(std::string_view text);
/// Natural order of keys: numbers by their value.
[[nodiscard]] bool is_key_before(std::string_view a, std::string_view b);
/// The way through JSON: its reader is that of YAML, to which U+0085 in quotes is a line break, so that it folds lines.
/// Throws Fault.
[[nodiscard]] std::u32string fold_next_lines(const std::u32string& text);
/// Throws Fault for a key that JSON's reader, which is that of YAML, does not take for one.
void check_json_key(std::string_view key);

}  // namespace kmm::recipe::tmpl
