// SPDX-License-Identifier: Apache-2.0
// Go's text/template in tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/govalue/budget.hpp"

namespace kmm::recipe::tmpl {

enum class TokenKind {
    error,        ///< `text` says what is wrong; the last token
    eof,
    text,         ///< outside of actions, trimmed as `{{-` and `-}}` ask for
    left, right,  ///< delimiters
    space,
    boolean, character, number, string, raw_string,
    field,        ///< ".Name"
    variable,     ///< "$" or "$name"
    identifier,
    dot, nil,
    declare, assign, pipe, left_paren, right_paren,
    other,        ///< one printable ASCII character, like ','
    keyword,      ///< if, range, end ...
};

struct Token {
    TokenKind kind = TokenKind::eof;
    std::size_t at = 0;  ///< byte in the text
    std::string text;
};

[[nodiscard]] inline bool is_keyword(const Token& token, std::string_view word) {
    return token.kind == TokenKind::keyword && token.text == word;
}
/// As Go's messages name a token.
[[nodiscard]] std::string shown(const Token& token);

/// All tokens up to eof or the first fault. O(text). Asks `budget` before each token for it and what is made of it.
[[nodiscard]] std::vector<Token> lex(std::string_view text, Budget& budget);

}  // namespace kmm::recipe::tmpl
