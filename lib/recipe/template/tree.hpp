// SPDX-License-Identifier: Apache-2.0
// A parsed template.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/value.hpp"
#include "recipe/template/function.hpp"

namespace kmm::recipe::tmpl {

/// The text that a tree was read from.
struct Source {
    std::string name;  ///< the file, as messages name it
    std::string text;

    /// Line and column of a byte, from 1.
    [[nodiscard]] Position position(std::size_t at) const;
};

/// A fault of syntax at a byte of `source`, with the action that holds it; of a text that ends too early, with the
/// action that still needs an {{end}}, the last of `open`.
[[nodiscard]] Error syntax_error(const Source& source, std::size_t at, std::string code, std::string message,
                                 const std::vector<std::size_t>& open);

struct Pipe;

/// One operand of a command.
struct Operand {
    enum class Kind { boolean, nil, number, text, dot, field, variable, identifier, chain, pipe };
    Kind kind = Kind::dot;
    std::size_t at = 0;
    std::string text;                 ///< as it is written; of `text` the value
    Value constant;                   ///< of `text`
    std::vector<std::string> names;   ///< field: the names; variable: "$x" and the names; chain: the names
    const Function* function = nullptr;  ///< of an identifier
    std::unique_ptr<Operand> head;    ///< of a chain
    std::unique_ptr<Pipe> pipe;
    bool truth = false;
    bool is_int = false, is_uint = false, is_real = false, writes_real = false;
    std::int64_t int_value = 0;
    double real_value = 0;
};

struct Command {
    std::size_t at = 0;
    std::vector<Operand> operands;
};

struct Pipe {
    std::size_t at = 0;
    bool assigns = false;                    ///< `=` in place of `:=`
    std::vector<std::string> declarations;   ///< "$x"
    std::vector<Command> commands;
};

struct Statement {
    enum class Kind { text, action, branch_if, branch_with, range, call, leave, next };
    Kind kind = Kind::text;
    std::size_t at = 0;
    std::string text;  ///< of text; the name of a template that is called
    std::unique_ptr<Pipe> pipe;
    std::vector<Statement> body, otherwise;
    bool has_otherwise = false;
};

/// A template under a name; `source` is the file in which it is defined.
struct Tree {
    std::string name;
    std::shared_ptr<const Source> source;
    std::vector<Statement> body;
    /// Nothing but blanks and definitions: does not replace another of its name.
    [[nodiscard]] bool is_empty() const;
};

/// How an operand is written, for messages; at most about 100 bytes.
[[nodiscard]] std::string written(const Operand& operand);
/// What to do where what `names` from `from` lead to in `first` is nil in front of the name `at`.
[[nodiscard]] std::string nil_hint(const Value& first, const std::vector<std::string>& names, std::size_t from,
                                   std::size_t at);
[[nodiscard]] std::string written(const Command& command);
[[nodiscard]] std::string written(const Pipe& pipe);

/// The trees of one text: what it defines, and itself under `name`.
/// Errors: data "template-syntax" and "unknown-function" with the position; "recipe-too-large" for nesting, and if
/// `budget` does not suffice.
[[nodiscard]] std::vector<std::shared_ptr<const Tree>> parse(const std::string& name,
                                                             std::shared_ptr<const Source> source,
                                                             const Library& library, Budget& budget);

}  // namespace kmm::recipe::tmpl
