// SPDX-License-Identifier: Apache-2.0
// Go's text/template/parse: pipelines, commands, operands, numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unquote.hpp"
#include "recipe/template/parser.hpp"

namespace kmm::recipe::tmpl {

std::string Parser::string_token(std::string_view context) {
    const Token token = take_non_space();
    if (token.kind != TokenKind::string && token.kind != TokenKind::raw_string) { unexpected(token, context); }
    return unquoted(token);
}

std::string Parser::unquoted(const Token& token) const {
    if (token.kind == TokenKind::raw_string) {
        std::string raw = token.text.substr(1, token.text.size() - 2);
        std::erase(raw, '\r');
        return raw;
    }
    const auto text = unquote(token.text);
    if (!text) { fail(token.at, fmt::format("invalid syntax in the string {}", base::escape(token.text))); }
    return *text;
}

std::unique_ptr<Pipe> Parser::pipeline(const std::string& context, TokenKind until) {
    if (++depth_ > k_depth_max) { fail(peek().at, "parentheses are nested too deep", "", "recipe-too-large"); }
    auto pipe = std::make_unique<Pipe>();
    pipe->at = peek_non_space().at;
    declarations(*pipe, context);
    for (;;) {
        const Token token = take_non_space();
        switch (token.kind) {
            case TokenKind::right:
            case TokenKind::right_paren:
                if (token.kind != until) { unexpected(token, context); }
                check_commands(*pipe, context, token.at);
                --depth_;
                return pipe;
            case TokenKind::boolean:
            case TokenKind::character:
            case TokenKind::dot:
            case TokenKind::field:
            case TokenKind::identifier:
            case TokenKind::number:
            case TokenKind::nil:
            case TokenKind::raw_string:
            case TokenKind::string:
            case TokenKind::variable:
            case TokenKind::left_paren:
                --next_;
                pipe->commands.push_back(command());
                break;
            default: unexpected(token, context);
        }
    }
}

void Parser::declarations(Pipe& pipe, const std::string& context) {
    while (peek_non_space().kind == TokenKind::variable) {
        const std::size_t mark = next_;
        const Token variable = take();
        const Token after = peek_non_space();
        if (after.kind == TokenKind::declare || after.kind == TokenKind::assign) {
            pipe.assigns = after.kind == TokenKind::assign;
            take();
            pipe.declarations.push_back(variable.text);
            variables_.push_back(variable.text);
            return;
        }
        if (after.kind == TokenKind::other && after.text == ",") {
            take();
            pipe.declarations.push_back(variable.text);
            variables_.push_back(variable.text);
            if (context == "range" && pipe.declarations.size() < 2) {
                const TokenKind kind = peek_non_space().kind;
                if (kind == TokenKind::variable || kind == TokenKind::right || kind == TokenKind::right_paren) {
                    continue;
                }
                fail(peek().at, "range can only initialize variables");
            }
            fail(variable.at, fmt::format("too many declarations in {}", context));
        }
        next_ = mark;
        return;
    }
}

void Parser::require_variable(const Token& variable) const {
    if (std::find(variables_.begin(), variables_.end(), variable.text) == variables_.end()) {
        fail(variable.at, fmt::format("undefined variable {}", quote_text(variable.text)), "declare it with :=");
    }
}

void Parser::check_commands(const Pipe& pipe, const std::string& context, std::size_t at) const {
    if (pipe.commands.empty()) { fail(at, fmt::format("missing value for {}", context)); }
    for (std::size_t i = 1; i < pipe.commands.size(); ++i) {
        using K = Operand::Kind;
        const K kind = pipe.commands[i].operands.front().kind;
        if (kind == K::boolean || kind == K::dot || kind == K::nil || kind == K::number || kind == K::text) {
            fail(pipe.commands[i].at, fmt::format("non executable command in pipeline stage {}", i + 1));
        }
    }
}

Command Parser::command() {
    Command made_command;
    made_command.at = peek_non_space().at;
    for (;;) {
        peek_non_space();
        auto given = operand();
        if (given) { made_command.operands.push_back(std::move(*given)); }
        const Token token = take();
        if (token.kind == TokenKind::space) { continue; }
        if (token.kind == TokenKind::right || token.kind == TokenKind::right_paren) {
            --next_;
        } else if (token.kind != TokenKind::pipe) {
            unexpected(token, "operand");
        }
        break;
    }
    if (made_command.operands.empty()) { fail(made_command.at, "empty command"); }
    return made_command;
}

std::optional<Operand> Parser::operand() {
    auto given = term();
    if (!given || peek().kind != TokenKind::field) { return given; }
    std::vector<std::string> names;
    const std::size_t at = peek().at;
    std::string text;
    while (peek().kind == TokenKind::field) {
        text += peek().text;
        names.push_back(take().text.substr(1));
    }
    using K = Operand::Kind;
    if (given->kind == K::field || given->kind == K::variable) {
        given->names.insert(given->names.end(), names.begin(), names.end());
        given->text += text;
        if (given->kind == K::field) { given->at = at; }
        return given;
    }
    if (given->kind != K::identifier && given->kind != K::pipe) {
        fail(given->at, fmt::format("unexpected . after term {}", quote_text(written(*given))));
    }
    Operand chain;
    chain.kind = K::chain;
    chain.at = at;
    chain.text = text;
    chain.names = std::move(names);
    chain.head = std::make_unique<Operand>(std::move(*given));
    return chain;
}

std::optional<Operand> Parser::term() {
    const Token token = peek_non_space();
    Operand made_operand;
    made_operand.at = token.at;
    made_operand.text = token.text;
    using K = Operand::Kind;
    switch (token.kind) {
        case TokenKind::identifier:
            made_operand.kind = K::identifier;
            made_operand.function = library_.find(token.text);
            if (made_operand.function == nullptr) { unknown(token); }
            break;
        case TokenKind::dot: made_operand.kind = K::dot; break;
        case TokenKind::nil: made_operand.kind = K::nil; break;
        case TokenKind::variable:
            require_variable(token);
            made_operand.kind = K::variable;
            made_operand.names = {token.text};
            break;
        case TokenKind::field:
            made_operand.kind = K::field;
            made_operand.names = {token.text.substr(1)};
            break;
        case TokenKind::boolean:
            made_operand.kind = K::boolean;
            made_operand.truth = token.text == "true";
            break;
        case TokenKind::character:
        case TokenKind::number:
            made_operand.kind = K::number;
            number(made_operand, token);
            break;
        case TokenKind::string:
        case TokenKind::raw_string:
            made_operand.kind = K::text;
            made_operand.text = unquoted(token);
            made_operand.constant = Value::string(made_operand.text);
            break;
        case TokenKind::left_paren:
            take();
            made_operand.kind = K::pipe;
            made_operand.pipe = pipeline("parenthesized pipeline", TokenKind::right_paren);
            return made_operand;
        default: return std::nullopt;
    }
    take();
    return made_operand;
}

void Parser::unknown(const Token& token) const {
    const auto near = base::nearest(token.text, library_.names());
    fail(token.at, fmt::format("function {} not defined", quote_text(token.text)),
         near ? fmt::format("did you mean {}?", *near) : "", "unknown-function");
}

void Parser::number(Operand& made_operand, const Token& token) const {
    const std::string& text = token.text;
    if (token.kind == TokenKind::character) {
        const auto rune = unquote_rune(text);
        if (!rune) { fail(token.at, fmt::format("malformed character constant: {}", base::escape(text))); }
        made_operand.is_int = made_operand.is_uint = made_operand.is_real = true;
        made_operand.int_value = static_cast<std::int64_t>(*rune);
        made_operand.real_value = static_cast<double>(*rune);
        return;
    }
    if (text.back() == 'i') {
        fail(token.at, fmt::format("complex numbers are not supported: {}", text),
             "Helm's functions take no complex number");
    }
    const auto size = parse_uint(text, 0);
    const auto whole = parse_int(text, 0);
    made_operand.is_uint = size.has_value();
    if (whole) {
        made_operand.is_int = true;
        made_operand.int_value = *whole;
        if (*whole == 0) { made_operand.is_uint = true; }
    }
    if (made_operand.is_int || made_operand.is_uint) {
        made_operand.is_real = true;
        made_operand.real_value = whole ? static_cast<double>(*whole) : static_cast<double>(*size);
        return;
    }
    const auto real = parse_real(text);
    if (!real || text.find_first_of(".eEpP") == std::string::npos) {
        fail(token.at, real ? fmt::format("integer overflow: {}", quote_text(text))
                            : fmt::format("illegal number syntax: {}", quote_text(text)));
    }
    made_operand.is_real = true;
    made_operand.real_value = *real;
    made_operand.writes_real =
        !text.starts_with("0x") && !text.starts_with("0X") ? true : text.find_first_of("pP") != std::string::npos;
    if (std::fabs(*real) < 9.2e18 && std::trunc(*real) == *real) {
        made_operand.is_int = true;
        made_operand.int_value = static_cast<std::int64_t>(*real);
    }
}

}  // namespace kmm::recipe::tmpl
