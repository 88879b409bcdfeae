// SPDX-License-Identifier: Apache-2.0
// Go's text/template executor: statements.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/template/execution.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr const char* k_recursion_hint = "does a template call itself without an end?";
constexpr std::size_t k_blocks_max = 4000;  // blocks of all templates that are at work: they take room on the stack

/// As Go, from 0 up; `iterate` returns false to stop.
template <typename Iterate>
void range_number(const Value& value, Iterate&& iterate) {
    if (value.is_int()) {
        for (std::int64_t i = 0; i < value.as_int(); ++i) {
            if (!iterate(Value(), Value::integer(i, value.type()))) { return; }
        }
        return;
    }
    for (std::uint64_t i = 0; i < value.as_uint(); ++i) {
        if (!iterate(Value(), Value::integer(static_cast<std::int64_t>(i), value.type()))) { return; }
    }
}

}  // namespace

Error Execution::fault(std::size_t at, std::string message, const std::string& expression) const {
    Error error(Exit::data, "template-error", std::move(message));
    error.at(tree_.source->position(at));
    if (!expression.empty()) { error.detail("expression", expression); }
    return error;
}

Flow Execution::list(const Value& dot, const std::vector<Statement>& statements) {
    const Nested nested(run_.blocks);
    if (run_.blocks > k_blocks_max && !statements.empty()) {
        throw Error(Exit::data, "recipe-too-large", "templates and their blocks are nested too deep")
            .at(tree_.source->position(statements[0].at))
            .hint(k_recursion_hint);
    }
    for (const auto& statement : statements) {
        const Flow flow = one(dot, statement);
        if (flow != Flow::on) { return flow; }
    }
    return Flow::on;
}

Flow Execution::one(const Value& dot, const Statement& statement) {
    step(statement.at);
    switch (statement.kind) {
        case Statement::Kind::text: print(statement.text, statement.at, true); return Flow::on;
        case Statement::Kind::action: {
            const Value value = pipeline(dot, *statement.pipe);
            if (statement.pipe->declarations.empty()) { print_pipe(value, *statement.pipe); }
            return Flow::on;
        }
        case Statement::Kind::branch_if:
        case Statement::Kind::branch_with: return branch(dot, statement);
        case Statement::Kind::range: return range(dot, statement);
        case Statement::Kind::call: call_template(dot, statement); return Flow::on;
        case Statement::Kind::leave: return Flow::leave;
        case Statement::Kind::next: return Flow::next;
    }
    return Flow::on;
}

void Execution::print(std::string_view text, std::size_t at, bool verbatim) {
    if (out_.size() + text.size() > run_.limits().output_max) {
        throw Error(Exit::data, "recipe-too-large",
                    fmt::format("the output is larger than {}", base::format_bytes(run_.limits().output_max)))
            .at(tree_.source->position(at))
            .hint("is there a loop without an end?");
    }
    placed(at, shown_nothing, [&] { run_.budget.take(text.size() + sizeof(Origin::Mark)); });
    if (run_.output != nullptr && &out_ == &run_.output->text && !text.empty()) {
        run_.lines += static_cast<std::size_t>(
            std::count(out_.begin() + static_cast<std::ptrdiff_t>(run_.counted), out_.end(), '\n'));
        run_.counted = out_.size();
        auto before = out_.size();
        while (before > 0 && (out_[before - 1] == ' ' || out_[before - 1] == '\t')) { --before; }
        const bool leads = before == 0 || out_[before - 1] == '\n';
        const auto first = text.find_first_not_of(" \t");
        const bool is_blank = first == std::string_view::npos || text[first] == '\n';
        run_.output->origin.add({run_.lines + 1, tree_.source, at, verbatim, leads, is_blank});
    }
    out_ += text;
}

void Execution::print_pipe(const Value& value, const Pipe& pipe) {
    const auto made = [&] { return print_value(printable(value)); };
    const Record* record = value.as_record();
    const std::string text = record != nullptr && record->text_by_address
                                 ? record->text
                                 : placed(
                                       pipe.at, [&] { return std::pair(std::string(), written(pipe)); }, made);
    run_.look(tree_, pipe, value, text);
    print(text, pipe.at);
}

Flow Execution::branch(const Value& dot, const Statement& statement) {
    const std::size_t mark = variables_.size();
    const Value value = pipeline(dot, *statement.pipe);
    Flow flow = Flow::on;
    if (truth(value)) {
        flow = list(statement.kind == Statement::Kind::branch_with ? value : dot, statement.body);
    } else if (statement.has_otherwise) {
        flow = list(dot, statement.otherwise);
    }
    variables_.resize(mark);
    return flow;
}

void Execution::declare(const Pipe& pipe, const Value& index, const Value& element) {
    const std::size_t count = pipe.declarations.size();
    if (count == 0) { return; }
    if (pipe.assigns) {
        assign(pipe.declarations[0], count > 1 ? index : element, pipe.at);
        if (count > 1) { assign(pipe.declarations[1], element, pipe.at); }
        return;
    }
    variables_[variables_.size() - 1].value = element;
    if (count > 1) { variables_[variables_.size() - 2].value = index; }
}

Flow Execution::range(const Value& dot, const Statement& statement) {
    const Pipe& pipe = *statement.pipe;
    const std::size_t outer = variables_.size();
    const Value value = pipeline(dot, pipe);
    const Operand& ranged = pipe.commands.back().operands.back();
    const std::size_t mark = variables_.size();
    Flow result = Flow::on;
    bool ran = false;
    // False: stop.
    const auto iterate = [&](const Value& index, const Value& element) {
        ran = true;
        step(statement.at);
        declare(pipe, index, element);
        const Flow flow = list(element, statement.body);
        variables_.resize(mark);
        return flow != Flow::leave;
    };
    if (value.is_int() || value.is_uint()) {
        if (pipe.declarations.size() > 1) {
            throw fault(ranged.at,
                        fmt::format("can't use {} to iterate over more than one variable", print_value(value)),
                        written(ranged));
        }
        range_number(value, iterate);
    } else if (value.is_list()) {
        const Value kept = value;
        const std::size_t count = kept.items().size();
        for (std::size_t i = 0; i < count; ++i) {
            const Value item = kept.items()[i];  // the body may append to the list
            if (!iterate(Value::integer(static_cast<std::int64_t>(i)), item)) { break; }
        }
    } else if (value.type() == Type::bytes) {
        for (std::size_t i = 0; i < value.text().size(); ++i) {
            const Value byte = Value::integer(static_cast<unsigned char>(value.text()[i]), Type::uint8);
            if (!iterate(Value::integer(static_cast<std::int64_t>(i)), byte)) { break; }
        }
    } else if (value.is_map()) {
        // As Go, the members that are there at the start.
        std::vector<std::pair<std::string, Value>> members(value.members().begin(), value.members().end());
        for (const auto& [key, member] : members) {
            if (!iterate(Value::string(key), member)) { break; }
        }
    } else if (!value.is_nil()) {
        throw fault(ranged.at,
                    fmt::format("range can't iterate over {}",
                                placed(ranged.at, shown_nothing, [&] { return print_value(value); })),
                    written(ranged))
            .detail("value", describe(value));
    }
    if (!ran && statement.has_otherwise) { result = list(dot, statement.otherwise); }
    variables_.resize(outer);
    return result;
}

void Execution::call_template(const Value& dot, const Statement& statement) {
    const Tree* tree = scope_.find(statement.text);
    const std::string shown = "template " + quote_text(statement.text);
    if (tree == nullptr) { throw fault(statement.at, shown + " not defined", shown).hint(scope_.hint(statement.text)); }
    const Value argument = statement.pipe ? pipeline(dot, *statement.pipe) : Value();
    traced(statement.at, [&] { return statement.text; }, [&] {
        if (run_.depth >= run_.limits().depth_max) {
            throw Error(Exit::data, "recipe-too-large",
                        fmt::format("templates call each other more than {} deep", run_.limits().depth_max))
                .at(tree_.source->position(statement.at))
                .hint(k_recursion_hint);
        }
        ++run_.depth;
        Execution inner(run_, scope_, *tree, argument, out_);
        inner.walk(argument);
        --run_.depth;
        return 0;
    });
}

void execute_into(Run& run, Scope& scope, const Tree& tree, const Value& dot, std::string& out) {
    if (run.depth >= run.limits().depth_max) {
        throw Fault{fmt::format("templates call each other more than {} deep", run.limits().depth_max),
                    "recipe-too-large", k_recursion_hint};
    }
    ++run.depth;
    Execution(run, scope, tree, dot, out).walk(dot);
    --run.depth;
}

std::string execute(Run& run, Scope& scope, const Tree& tree, const Value& dot) {
    std::string out;
    execute_into(run, scope, tree, dot, out);
    return out;
}

}  // namespace kmm::recipe::tmpl
