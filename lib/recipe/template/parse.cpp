// SPDX-License-Identifier: Apache-2.0
// Go's text/template/parse.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/format.hpp"
#include "recipe/template/functions.hpp"
#include "recipe/template/lex.hpp"
#include "recipe/template/tree.hpp"
#include "recipe/template/unquote.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_parse_depth_max = 500;

class Parser {
public:
    Parser(const std::string& name, std::shared_ptr<const Source> source, const std::function<const Function*(std::string_view)>& find)
        : name_(name), source_(std::move(source)), find_(find), tokens_(lex(source_->text)) {}

    std::vector<std::shared_ptr<const Tree>> run() {
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
            if (end.kind != EndKind::none) { fail(end.at, fmt::format("unexpected {{{{{}}}}}", end.kind == EndKind::end ? "end" : "else")); }
        }
        add(name_, std::move(body));
        return std::move(trees_);
    }

private:
    enum class EndKind { none, end, otherwise };
    struct End {
        EndKind kind = EndKind::none;
        std::size_t at = 0;
    };

    const std::string& name_;
    std::shared_ptr<const Source> source_;
    const std::function<const Function*(std::string_view)>& find_;
    std::vector<Token> tokens_;
    std::size_t next_ = 0;
    std::vector<std::string> variables_{"$"};
    std::vector<std::shared_ptr<const Tree>> trees_;
    std::vector<std::size_t> open_;  ///< where the actions begin that still need an {{end}}
    int ranges_ = 0;
    int depth_ = 0;

    [[noreturn]] void fail(std::size_t at, std::string message, std::string hint = "",
                           std::string code = "template-syntax") const {
        throw syntax_error(*source_, at, std::move(code), std::move(message), open_).hint(std::move(hint));
    }

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

    void add(const std::string& name, std::vector<Statement> body) {
        auto tree = std::make_shared<Tree>(Tree{name, source_, std::move(body)});
        const auto same = std::find_if(trees_.begin(), trees_.end(), [&](const auto& other) { return other->name == name; });
        if (same == trees_.end()) {
            trees_.push_back(std::move(tree));
        } else if ((*same)->is_empty()) {
            *same = std::move(tree);
        } else if (!tree->is_empty()) {
            fail(0, fmt::format("multiple definition of template {}", quote_text(name)));
        }
    }

    std::string string_token(std::string_view context) {
        const Token token = take_non_space();
        if (token.kind != TokenKind::string && token.kind != TokenKind::raw_string) { unexpected(token, context); }
        return unquoted(token);
    }

    std::string unquoted(const Token& token) const {
        if (token.kind == TokenKind::raw_string) {
            std::string raw = token.text.substr(1, token.text.size() - 2);
            std::erase(raw, '\r');
            return raw;
        }
        const auto text = unquote(token.text);
        if (!text) { fail(token.at, fmt::format("invalid syntax in the string {}", base::escape(token.text))); }
        return *text;
    }

    void define() {
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

    /// Statements until {{end}} or {{else}} of the action at `opened`.
    End list(std::vector<Statement>& body, std::size_t opened) {
        open_.push_back(opened);
        if (++depth_ > k_parse_depth_max) { fail(peek().at, "actions are nested too deep", "", "recipe-too-large"); }
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

    End statement(std::vector<Statement>& body) {
        const Token token = take_non_space();
        if (token.kind == TokenKind::text) {
            body.push_back(made(Statement::Kind::text, token.at, token.text));
            return {};
        }
        if (token.kind != TokenKind::left) { unexpected(token, "input"); }
        return action(body);
    }

    static Statement made(Statement::Kind kind, std::size_t at, std::string text = "") {
        Statement statement;
        statement.kind = kind;
        statement.at = at;
        statement.text = std::move(text);
        return statement;
    }

    End action(std::vector<Statement>& body) {
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
            body.push_back(call(token.at, "template clause"));
            return {};
        }
        if (token.text == "block") { return block(body, token.at); }
        unexpected(token, "command");
    }

    End control(std::vector<Statement>& body, Statement::Kind kind, const std::string& word, std::size_t at) {
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
                if (++depth_ > k_parse_depth_max) { fail(after.at, "actions are nested too deep", "", "recipe-too-large"); }
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

    Statement call(std::size_t at, const std::string& context) {
        Statement statement = made(Statement::Kind::call, at, string_token(context));
        if (peek_non_space().kind == TokenKind::right) {
            take();
        } else {
            statement.pipe = pipeline(context, TokenKind::right);
        }
        return statement;
    }

    End block(std::vector<Statement>& body, std::size_t at) {
        Statement statement = made(Statement::Kind::call, at, string_token("block clause"));
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

    std::unique_ptr<Pipe> pipeline(const std::string& context, TokenKind until) {
        if (++depth_ > k_parse_depth_max) { fail(peek().at, "parentheses are nested too deep", "", "recipe-too-large"); }
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

    void declarations(Pipe& pipe, const std::string& context) {
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
                    if (kind == TokenKind::variable || kind == TokenKind::right || kind == TokenKind::right_paren) { continue; }
                    fail(peek().at, "range can only initialize variables");
                }
                fail(variable.at, fmt::format("too many declarations in {}", context));
            }
            next_ = mark;
            return;
        }
    }

    void require_variable(const Token& variable) const {
        if (std::find(variables_.begin(), variables_.end(), variable.text) == variables_.end()) {
            fail(variable.at, fmt::format("undefined variable {}", quote_text(variable.text)), "declare it with :=");
        }
    }

    void check_commands(const Pipe& pipe, const std::string& context, std::size_t at) const {
        if (pipe.commands.empty()) { fail(at, fmt::format("missing value for {}", context)); }
        for (std::size_t i = 1; i < pipe.commands.size(); ++i) {
            using K = Operand::Kind;
            const K kind = pipe.commands[i].operands.front().kind;
            if (kind == K::boolean || kind == K::dot || kind == K::nil || kind == K::number || kind == K::text) {
                fail(pipe.commands[i].at, fmt::format("non executable command in pipeline stage {}", i + 1));
            }
        }
    }

    Command command() {
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

    std::optional<Operand> operand() {
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

    std::optional<Operand> term() {
        const Token token = peek_non_space();
        Operand made_operand;
        made_operand.at = token.at;
        made_operand.text = token.text;
        using K = Operand::Kind;
        switch (token.kind) {
            case TokenKind::identifier:
                made_operand.kind = K::identifier;
                made_operand.function = find_(token.text);
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

    [[noreturn]] void unknown(const Token& token) const {
        const auto near = base::nearest(token.text, function_names());
        fail(token.at, fmt::format("function {} not defined", quote_text(token.text)),
             near ? fmt::format("did you mean {}?", *near) : "", "unknown-function");
    }

    void number(Operand& made_operand, const Token& token) const {
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
            fail(token.at, fmt::format("complex numbers are not supported: {}", text), "Helm's functions take no complex number");
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
            fail(token.at, real ? fmt::format("integer overflow: {}", quote_text(text)) : fmt::format("illegal number syntax: {}", quote_text(text)));
        }
        made_operand.is_real = true;
        made_operand.real_value = *real;
        made_operand.writes_real = !text.starts_with("0x") && !text.starts_with("0X") ? true : text.find_first_of("pP") != std::string::npos;
        if (std::fabs(*real) < 9.2e18 && std::trunc(*real) == *real) {
            made_operand.is_int = true;
            made_operand.int_value = static_cast<std::int64_t>(*real);
        }
    }
};

}  // namespace

std::vector<std::shared_ptr<const Tree>>
parse(const std::string& name, std::shared_ptr<const Source> source, const std::function<const Function*(std::string_view)>& find) {
    return Parser(name, std::move(source), find).run();
}

}  // namespace kmm::recipe::tmpl
