// SPDX-License-Identifier: Apache-2.0
// One template at work: what execute.cpp (statements) and evaluate.cpp (values) share. Internal to this room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/engine.hpp"
#include "recipe/template/function.hpp"
#include "recipe/template/tree.hpp"

namespace kmm::recipe::tmpl {

enum class Flow { on, leave, next };

/// One template at work. Errors carry the place in the template, the expression and, where it helps, the value.
class Execution {
public:
    Execution(Run& run, Scope& scope, const Tree& tree, const Value& dot, std::string& out)
        : run_(run), scope_(scope), tree_(tree), out_(out) {
        variables_.push_back({"$", dot});
    }

    void walk(const Value& dot) { list(dot, tree_.body); }

private:
    static constexpr std::size_t k_called_from_max = 8;  ///< levels of include that an error lists

    struct Variable {
        std::string name;
        Value value;
    };
    /// A value that comes through `|`; nothing for the first command.
    using Final = const Value*;

    Run& run_;
    Scope& scope_;
    const Tree& tree_;
    std::string& out_;
    std::vector<Variable> variables_;

    Error fault(std::size_t at, std::string message, const std::string& expression) const;

    [[noreturn]] void fail(const Operand& operand, std::string message) const {
        throw fault(operand.at, std::move(message), written(operand));
    }
    [[noreturn]] void fail(const Operand& operand, std::string message, const Value& value) const {
        throw fault(operand.at, std::move(message), written(operand)).detail("value", describe(value));
    }

    /// Runs `body`; a Fault gets the place of `at`. `shown` gives what stands before its message and the expression.
    template <typename Shown, typename Body>
    auto placed(std::size_t at, Shown&& shown, Body&& body) const {
        try {
            return body();
        } catch (const Fault& f) {
            const auto [context, expression] = shown();
            Error error(
                Exit::data, f.code,
                context.empty() || f.code == "template-fail" ? f.message : fmt::format("{}: {}", context, f.message));
            error.at(tree_.source->position(at));
            if (!expression.empty()) { error.detail("expression", expression); }
            if (!f.hint.empty()) { error.hint(f.hint); }
            throw error;
        }
    }

    /// What `make` gives, counted as far as it did not do so itself. Throws Fault.
    template <typename Make>
    Value counted(Make&& make) {
        const std::uint64_t before = run_.budget.taken();
        Value made = make();
        check_size(made.text().size());
        const std::uint64_t bytes = made.own_bytes(), taken = run_.budget.taken() - before;
        run_.budget.take(bytes > taken ? bytes - taken : 0);
        return made;
    }

    static std::pair<std::string, std::string> shown_nothing() { return {}; }

    /// Adds where a template was called to an error inside of it.
    template <typename Name, typename Body>
    auto traced(std::size_t at, Name&& called, Body&& body) const {
        try {
            return body();
        } catch (Error& error) {
            const std::string name = called();
            const auto levels = std::count_if(error.details().begin(), error.details().end(),
                                              [](const auto& d) { return d.first == "called from"; });
            const std::string place = tree_.source->position(at).to_string();
            if (static_cast<std::size_t>(levels) < k_called_from_max &&
                !(error.position() && error.position()->to_string() == place)) {
                error.detail("called from", fmt::format("{} ({})", place, base::escape(name)));
            }
            throw;
        }
    }

    void step(std::size_t at) { placed(at, shown_nothing, [&] { run_.step(); }); }

    // Statements: execute.cpp.
    Flow list(const Value& dot, const std::vector<Statement>& statements);
    Flow one(const Value& dot, const Statement& statement);
    void print(std::string_view text, std::size_t at, bool verbatim = false);
    void print_pipe(const Value& value, const Pipe& pipe);
    Flow branch(const Value& dot, const Statement& statement);
    void declare(const Pipe& pipe, const Value& index, const Value& element);
    Flow range(const Value& dot, const Statement& statement);
    void call_template(const Value& dot, const Statement& statement);

    // Values: evaluate.cpp.
    void assign(const std::string& name, const Value& value, std::size_t at);
    Value pipeline(const Value& dot, const Pipe& pipe);
    void no_arguments(const Command& command, Final last) const;
    Value eval_command(const Value& dot, const Command& command, Final last);
    Value variable(const Operand& operand) const;
    Value constant(const Value& dot, const Operand& operand) const;
    Value chain(const Value& dot, const Operand& operand, const Command* command, Final last);
    Value field_chain(const Value& dot, Value receiver, const Operand& operand, const std::vector<std::string>& names,
                      std::size_t from, const Command* command, Final last);
    Value field(const Value& dot, const Value& receiver, const Operand& operand, const std::string& name,
                const Command* command, Final last);
    Value call_function(const Value& dot, const Operand& operand, const Command* command, Final last);
    /// Throws Fault "not-deterministic" unless placeholders are wanted.
    void use_placeholder(const Operand& operand) const;
    Value logic(const Value& dot, const Operand& operand, bool is_or, const Command* command, Final last);
    List eval_arguments(const Value& dot, const Operand& operand, std::string_view name, std::string_view parameters,
                        bool variadic, const Command* command, Final last);
    Value argument(const Value& dot, char letter, const Operand& operand);
    Value validated(const Value& value, char letter, const Operand& operand, std::size_t number = 0,
                    std::string_view function = "") const;
};

}  // namespace kmm::recipe::tmpl
