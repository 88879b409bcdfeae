// SPDX-License-Identifier: Apache-2.0
#include "recipe/template/lex.hpp"

#include <algorithm>
#include <array>

#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::string_view k_left = "{{", k_right = "}}", k_comment = "/*", k_comment_end = "*/", k_blank = " \t\r\n";
constexpr std::array<std::string_view, 11> k_keywords{"block", "break", "continue", "define", "else", "end",
                                                      "if",    "range", "template", "with",   "nil"};

/// A token and its share of the statement, the command or the operand that is made of it.
constexpr std::uint64_t k_token_bytes = 256;

bool is_blank(char c) noexcept { return k_blank.find(c) != std::string_view::npos; }

class Lexer {
public:
    Lexer(std::string_view text, Budget& budget) : text_(text), budget_(budget) {}

    std::vector<Token> run() {
        while (!done_) {
            if (inside_) {
                action();
            } else {
                outside();
            }
        }
        return std::move(tokens_);
    }

private:
    std::string_view text_;
    Budget& budget_;
    std::size_t at_ = 0;
    bool inside_ = false, done_ = false;
    int parens_ = 0;
    std::vector<Token> tokens_;

    void put(TokenKind kind, std::size_t from, std::size_t to) {
        budget_.take(k_token_bytes + to - from);
        tokens_.push_back({kind, from, std::string(text_.substr(from, to - from))});
    }

    void fail(std::string message, std::size_t place) {
        tokens_.push_back({TokenKind::error, place, std::move(message)});
        done_ = true;
    }

    bool starts(std::string_view what, std::size_t place) const {
        return text_.substr(std::min(place, text_.size())).starts_with(what);
    }
    bool left_trim(std::size_t place) const {
        return place + 1 < text_.size() && text_[place] == '-' && is_blank(text_[place + 1]);
    }
    bool right_trim(std::size_t place) const {
        return place + 1 < text_.size() && is_blank(text_[place]) && text_[place + 1] == '-' &&
               starts(k_right, place + 2);
    }

    void outside() {
        const std::size_t left = std::min(text_.find(k_left, at_), text_.size());
        std::size_t end = left;
        if (left < text_.size() && left_trim(left + 2)) {
            while (end > at_ && is_blank(text_[end - 1])) { --end; }
        }
        if (end > at_) { put(TokenKind::text, at_, end); }
        at_ = left;
        if (left == text_.size()) {
            tokens_.push_back({TokenKind::eof, at_, ""});
            done_ = true;
            return;
        }
        const std::size_t marker = left_trim(left + 2) ? 2 : 0;
        if (starts(k_comment, left + 2 + marker)) { return comment(left, left + 2 + marker); }
        put(TokenKind::left, left, left + 2);
        at_ = left + 2 + marker;
        inside_ = true;
        parens_ = 0;
    }

    void comment(std::size_t left, std::size_t start) {
        const std::size_t end = text_.find(k_comment_end, start + 2);
        if (end == std::string_view::npos) { return fail("unclosed comment", left); }
        at_ = end + 2;
        const bool trim = right_trim(at_);
        if (!trim && !starts(k_right, at_)) { return fail("comment ends before closing delimiter", left); }
        at_ += (trim ? 2 : 0) + 2;
        if (trim) { skip_blanks(); }
    }

    void skip_blanks() {
        while (at_ < text_.size() && is_blank(text_[at_])) { ++at_; }
    }

    void action() {
        const bool trim = right_trim(at_);
        if (trim || starts(k_right, at_)) {
            if (parens_ > 0) { return fail("unclosed left paren", at_); }
            put(TokenKind::right, at_ + (trim ? 2 : 0), at_ + (trim ? 2 : 0) + 2);
            at_ += (trim ? 2 : 0) + 2;
            if (trim) { skip_blanks(); }
            inside_ = false;
            return;
        }
        if (at_ >= text_.size()) { return fail("unclosed action", at_); }
        const char c = text_[at_];
        const std::size_t start = at_;
        if (is_blank(c)) { return space(); }
        switch (c) {
            case '=': return one(TokenKind::assign);
            case ':':
                if (!starts(":=", at_)) { return fail("expected :=", at_); }
                at_ += 2;
                return put(TokenKind::declare, start, at_);
            case '|': return one(TokenKind::pipe);
            case '"': return quoted('"', TokenKind::string, "unterminated quoted string");
            case '\'': return quoted('\'', TokenKind::character, "unterminated character constant");
            case '`': return raw();
            case '$': return word_after(TokenKind::variable);
            case '(':
                ++parens_;
                return one(TokenKind::left_paren);
            case ')':
                if (--parens_ < 0) { return fail("unexpected right paren", at_); }
                return one(TokenKind::right_paren);
            default: break;
        }
        if (c == '.' && (at_ + 1 >= text_.size() || !is_digit(static_cast<unsigned char>(text_[at_ + 1])))) {
            return word_after(TokenKind::field);
        }
        if (c == '.' || c == '+' || c == '-' || is_digit(static_cast<unsigned char>(c))) { return number(); }
        const Decoded d = decode(text_, at_);
        if (alphanumeric(d.rune)) { return identifier(); }
        if (d.rune < 0x80 && is_print(d.rune)) { return one(TokenKind::other); }
        fail("unrecognized character in action: " + rune_name(d.rune), at_);
    }

    void one(TokenKind kind) {
        ++at_;
        put(kind, at_ - 1, at_);
    }

    static std::string rune_name(char32_t rune) {
        return sprintf("%#U", {Value::integer(static_cast<std::int64_t>(rune))});
    }

    static bool alphanumeric(char32_t rune) { return rune == '_' || is_digit(rune) || is_letter(rune); }

    /// Where a run of letters, digits and '_' from `place` ends.
    std::size_t word_end(std::size_t place) const {
        while (place < text_.size()) {
            const Decoded d = decode(text_, place);
            if (!alphanumeric(d.rune)) { break; }
            place += d.width;
        }
        return place;
    }

    bool at_terminator(std::size_t place) const {
        if (place >= text_.size()) { return true; }
        const char c = text_[place];
        return is_blank(c) || std::string_view(".,|:)(").find(c) != std::string_view::npos || starts(k_right, place);
    }

    void space() {
        const std::size_t start = at_;
        while (at_ < text_.size() && is_blank(text_[at_])) {
            if (right_trim(at_)) { break; }
            ++at_;
        }
        if (at_ > start) { put(TokenKind::space, start, at_); }
    }

    void word_after(TokenKind kind) {
        const std::size_t start = at_++;
        if (at_terminator(at_)) { return put(kind == TokenKind::field ? TokenKind::dot : kind, start, at_); }
        at_ = word_end(at_);
        if (!at_terminator(at_)) { return fail("bad character " + rune_name(decode(text_, at_).rune), at_); }
        put(kind, start, at_);
    }

    void identifier() {
        const std::size_t start = at_;
        at_ = word_end(at_);
        if (!at_terminator(at_)) { return fail("bad character " + rune_name(decode(text_, at_).rune), at_); }
        const std::string_view word = text_.substr(start, at_ - start);
        if (word == "nil") { return put(TokenKind::nil, start, at_); }
        if (word == "true" || word == "false") { return put(TokenKind::boolean, start, at_); }
        const bool keyword = std::find(k_keywords.begin(), k_keywords.end(), word) != k_keywords.end();
        put(keyword ? TokenKind::keyword : TokenKind::identifier, start, at_);
    }

    void quoted(char quote, TokenKind kind, const char* fault) {
        const std::size_t start = at_++;
        for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
            if (text_[at_] == quote) {
                ++at_;
                return put(kind, start, at_);
            }
            if (text_[at_] == '\\') {
                ++at_;
                if (at_ >= text_.size() || text_[at_] == '\n') { break; }
            }
        }
        fail(fault, start);
    }

    void raw() {
        const std::size_t end = text_.find('`', at_ + 1);
        if (end == std::string_view::npos) { return fail("unterminated raw quoted string", at_); }
        put(TokenKind::raw_string, at_, end + 1);
        at_ = end + 1;
    }

    void accept(std::string_view set) {
        while (at_ < text_.size() && set.find(text_[at_]) != std::string_view::npos) { ++at_; }
    }

    bool accept_one(std::string_view set) {
        if (at_ >= text_.size() || set.find(text_[at_]) == std::string_view::npos) { return false; }
        ++at_;
        return true;
    }

    bool scan_number() {
        accept_one("+-");
        std::string_view digits = "0123456789_";
        if (accept_one("0")) {
            if (accept_one("xX")) {
                digits = "0123456789abcdefABCDEF_";
            } else if (accept_one("oO")) {
                digits = "01234567_";
            } else if (accept_one("bB")) {
                digits = "01_";
            }
        }
        accept(digits);
        if (accept_one(".")) { accept(digits); }
        if (digits.size() == 11 && accept_one("eE")) {
            accept_one("+-");
            accept("0123456789_");
        }
        if (digits.size() == 23 && accept_one("pP")) {
            accept_one("+-");
            accept("0123456789_");
        }
        accept_one("i");
        return at_ >= text_.size() || !alphanumeric(decode(text_, at_).rune);
    }

    void number() {
        const std::size_t start = at_;
        bool good = scan_number();
        if (good && at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
            // Complex: 1+2i.
            good = scan_number() && text_[at_ - 1] == 'i';
        }
        if (!good) {
            return fail(
                "bad number syntax: " + quote_text(text_.substr(start, std::min(at_ + 1, text_.size()) - start)),
                start);
        }
        put(TokenKind::number, start, at_);
    }
};

}  // namespace

std::string shown(const Token& token) {
    if (token.kind == TokenKind::keyword) { return '<' + token.text + '>'; }
    return token.text.size() > 10 ? quote_text(token.text.substr(0, 10)) + "..." : quote_text(token.text);
}

std::vector<Token> lex(std::string_view text, Budget& budget) { return Lexer(text, budget).run(); }

}  // namespace kmm::recipe::tmpl
