// SPDX-License-Identifier: Apache-2.0
// Go's text/template/parse: statements.
#include <algorithm>

#include <fmt/format.h>

#include "recipe/govalue/format.hpp"
#include "recipe/template/parser.hpp"

namespace kmm::recipe::tmpl {

void Parser::fail(std::size_t at, std::string message, std::string hint, std::string code) const {
    if (code.empty()) { code = "template-syntax"; }
    throw syntax_error(*source_, at, std::move(code), std::move(message), open_).hint(std::move(hint));
}

std::vector<std::shared_ptr<const Tree>> Parser::run() {
    std::vector<Statement> body;
    while (peek().kind != TokenKind::eof) {
        if (peek().kind == TokenKind::left) {
            const std::size_t mark = next_;
            ++next_;
            if (is_keyword(peek_non_space(), "define")) {
                take_non_space();
                define();
                continue;
            }
            next_ = mark;
        }
        const End end = statement(body);
        if (end.kind != EndKind::none) {
            fail(end.at, fmt::format("unexpected {{{{{}}}}}", end.kind == EndKind::end ? "end" : "else"));
        }
    }
    add(name_, std::move(body));
    return std::move(trees_);
}

void Parser::add(const std::string& name, std::vector<Statement> body) {
    auto tree = std::make_shared<Tree>(Tree{name, source_, std::move(body)});
    const auto same =
        std::find_if(trees_.begin(), trees_.end(), [&](const auto& other) { return other->name == name; });
    if (same == trees_.end()) {
        trees_.push_back(std::move(tree));
    } else if ((*same)->is_empty()) {
        *same = std::move(tree);
    } else if (!tree->is_empty()) {
        fail(0, fmt::format("multiple definition of template {}", quote_text(name)));
    }
}

void Parser::define() {
    const std::size_t at = tokens_[next_ - 1].at;
    const std::string name = string_token("define clause");
    expect_right("define clause");
    const auto outer = std::exchange(variables_, {"$"});
    const int ranges = std::exchange(ranges_, 0);
    std::vector<Statement> body;
    const End end = list(body, at);
    if (end.kind != EndKind::end) { fail(end.at, "unexpected {{else}} in define clause"); }
    add(name, std::move(body));
    variables_ = outer;
    ranges_ = ranges;
}

Parser::End Parser::list(std::vector<Statement>& body, std::size_t opened) {
    open_.push_back(opened);
    if (++depth_ > k_depth_max) { fail(peek().at, "actions are nested too deep", "", "recipe-too-large"); }
    while (peek_non_space().kind != TokenKind::eof) {
        const End end = statement(body);
        if (end.kind != EndKind::none) {
            --depth_;
            open_.pop_back();
            return end;
        }
    }
    unexpected(peek(), "list");
}

Parser::End Parser::statement(std::vector<Statement>& body) {
    const Token token = take_non_space();
    if (token.kind == TokenKind::text) {
        body.push_back(made(Statement::Kind::text, token.at, token.text));
        return {};
    }
    if (token.kind != TokenKind::left) { unexpected(token, "input"); }
    return action(body);
}

Statement Parser::made(Statement::Kind kind, std::size_t at, std::string text) {
    Statement statement;
    statement.kind = kind;
    statement.at = at;
    statement.text = std::move(text);
    return statement;
}

Parser::End Parser::action(std::vector<Statement>& body) {
    const Token token = take_non_space();
    if (token.kind != TokenKind::keyword) {
        if (next_ > 0) { --next_; }
        Statement statement = made(Statement::Kind::action, token.at);
        statement.pipe = pipeline("command", TokenKind::right);
        body.push_back(std::move(statement));
        return {};
    }
    if (token.text == "end") {
        expect_right("end");
        return {EndKind::end, token.at};
    }
    if (token.text == "else") {
        const Token& after = peek_non_space();
        if (!is_keyword(after, "if") && !is_keyword(after, "with")) { expect_right("else"); }
        return {EndKind::otherwise, token.at};
    }
    if (token.text == "break" || token.text == "continue") {
        const Token& after = take_non_space();
        if (after.kind != TokenKind::right) { unexpected(after, "{{" + token.text + "}}"); }
        if (ranges_ == 0) { fail(token.at, fmt::format("{{{{{}}}}} outside {{{{range}}}}", token.text)); }
        body.push_back(made(token.text == "break" ? Statement::Kind::leave : Statement::Kind::next, token.at));
        return {};
    }
    if (token.text == "if") { return control(body, Statement::Kind::branch_if, "if", token.at); }
    if (token.text == "with") { return control(body, Statement::Kind::branch_with, "with", token.at); }
    if (token.text == "range") { return control(body, Statement::Kind::range, "range", token.at); }
    if (token.text == "template") {
        body.push_back(call("template clause"));
        return {};
    }
    if (token.text == "block") { return block(body, token.at); }
    unexpected(token, "command");
}

Parser::End Parser::control(std::vector<Statement>& body, Statement::Kind kind, const std::string& word,
                            std::size_t at) {
    const std::size_t mark = variables_.size();
    Statement statement = made(kind, at);
    statement.pipe = pipeline(word, TokenKind::right);
    if (kind == Statement::Kind::range) { ++ranges_; }
    End end = list(statement.body, at);
    if (kind == Statement::Kind::range) { --ranges_; }
    if (end.kind == EndKind::otherwise) {
        statement.has_otherwise = true;
        const Token after = peek_non_space();
        const bool chained = (kind == Statement::Kind::branch_if && is_keyword(after, "if")) ||
                             (kind == Statement::Kind::branch_with && is_keyword(after, "with"));
        if (chained) {
            // {{else if}} shares the {{end}}.
            take_non_space();
            if (++depth_ > k_depth_max) { fail(after.at, "actions are nested too deep", "", "recipe-too-large"); }
            control(statement.otherwise, kind, word, after.at);
            --depth_;
        } else {
            end = list(statement.otherwise, at);
            if (end.kind != EndKind::end) { fail(end.at, "expected end; found {{else}}"); }
        }
    }
    variables_.resize(mark);
    body.push_back(std::move(statement));
    return {};
}

Statement Parser::call(const std::string& context) {
    const std::size_t name = peek_non_space().at;
    Statement statement = made(Statement::Kind::call, name, string_token(context));
    if (peek_non_space().kind == TokenKind::right) {
        take();
    } else {
        statement.pipe = pipeline(context, TokenKind::right);
    }
    return statement;
}

Parser::End Parser::block(std::vector<Statement>& body, std::size_t at) {
    const std::size_t name = peek_non_space().at;
    Statement statement = made(Statement::Kind::call, name, string_token("block clause"));
    statement.pipe = pipeline("block clause", TokenKind::right);
    const auto outer = std::exchange(variables_, {"$"});
    const int ranges = std::exchange(ranges_, 0);
    std::vector<Statement> inner;
    const End end = list(inner, at);
    if (end.kind != EndKind::end) { fail(end.at, "unexpected {{else}} in block clause"); }
    variables_ = outer;
    ranges_ = ranges;
    add(statement.text, std::move(inner));
    body.push_back(std::move(statement));
    return {};
}

std::vector<std::shared_ptr<const Tree>> parse(const std::string& name, std::shared_ptr<const Source> source,
                                               const Library& library, Budget& budget) {
    try {
        return Parser(name, source, library, budget).run();
    } catch (const Fault& fault) {
        throw Error(Exit::data, fault.code, fault.message).at(source->position(0)).hint(fault.hint);
    }
}

}  // namespace kmm::recipe::tmpl
