// SPDX-License-Identifier: Apache-2.0
// The parser of one text: what parse.cpp (statements) and parse_action.cpp (what stands in them) share. Internal to
// this room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/function.hpp"
#include "recipe/template/lex.hpp"
#include "recipe/template/tree.hpp"

namespace kmm::recipe::tmpl {

/// Go's text/template/parse of one text.
class Parser {
public:
    /// Throws Fault if `budget` does not suffice.
    Parser(const std::string& name, std::shared_ptr<const Source> source, const Library& library, Budget& budget)
        : name_(name), source_(std::move(source)), library_(library), tokens_(lex(source_->text, budget)) {}

    /// The trees of the text. Errors: those of parse().
    std::vector<std::shared_ptr<const Tree>> run();

private:
    static constexpr int k_depth_max = 500;

    enum class EndKind { none, end, otherwise };
    struct End {
        EndKind kind = EndKind::none;
        std::size_t at = 0;
    };

    const std::string& name_;
    std::shared_ptr<const Source> source_;
    const Library& library_;
    std::vector<Token> tokens_;
    std::size_t next_ = 0;
    std::vector<std::string> variables_{"$"};
    std::vector<std::shared_ptr<const Tree>> trees_;
    std::vector<std::size_t> open_;  ///< where the actions begin that still need an {{end}}
    int ranges_ = 0;
    int depth_ = 0;

    /// Without `code` it is a fault of syntax.
    [[noreturn]] void fail(std::size_t at, std::string message, std::string hint = "", std::string code = "") const;

    void check(const Token& token) const {
        if (token.kind == TokenKind::error) { fail(token.at, token.text); }
    }

    const Token& peek() const {
        const Token& token = tokens_[std::min(next_, tokens_.size() - 1)];
        check(token);
        return token;
    }

    const Token& take() {
        const Token& token = peek();
        if (next_ + 1 < tokens_.size()) { ++next_; }
        return token;
    }

    const Token& peek_non_space() {
        while (peek().kind == TokenKind::space) { ++next_; }
        return peek();
    }

    const Token& take_non_space() {
        peek_non_space();
        return take();
    }

    [[noreturn]] void unexpected(const Token& token, std::string_view context) const {
        if (token.kind == TokenKind::eof) { fail(token.at, "unexpected EOF", "an {{end}} is missing"); }
        fail(token.at, fmt::format("unexpected {} in {}", base::escape(shown(token)), context));
    }

    void expect_right(std::string_view context) {
        const Token& token = take_non_space();
        if (token.kind != TokenKind::right) { unexpected(token, context); }
    }

    // Statements: parse.cpp.
    void add(const std::string& name, std::vector<Statement> body);
    void define();
    /// Statements until {{end}} or {{else}} of the action at `opened`.
    End list(std::vector<Statement>& body, std::size_t opened);
    End statement(std::vector<Statement>& body);
    static Statement made(Statement::Kind kind, std::size_t at, std::string text = "");
    End action(std::vector<Statement>& body);
    End control(std::vector<Statement>& body, Statement::Kind kind, const std::string& word, std::size_t at);
    /// At the place of its name.
    Statement call(const std::string& context);
    End block(std::vector<Statement>& body, std::size_t at);

    // What stands in actions: parse_action.cpp.
    std::string string_token(std::string_view context);
    std::string unquoted(const Token& token) const;
    std::unique_ptr<Pipe> pipeline(const std::string& context, TokenKind until);
    void declarations(Pipe& pipe, const std::string& context);
    void require_variable(const Token& variable) const;
    void check_commands(const Pipe& pipe, const std::string& context, std::size_t at) const;
    Command command();
    std::optional<Operand> operand();
    std::optional<Operand> term();
    [[noreturn]] void unknown(const Token& token) const;
    void number(Operand& made_operand, const Token& token) const;
};

}  // namespace kmm::recipe::tmpl
