// SPDX-License-Identifier: Apache-2.0
// Go's text/template executor.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/engine.hpp"
#include "recipe/template/format.hpp"
#include "recipe/template/functions.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::size_t k_trace_max = 8;  // levels of include that an error lists

std::string type_of_letter(char letter) {
    switch (letter) {
        case 's': return "string";
        case 'i': return "int";
        case 'b': return "bool";
        case 'f': return "float64";
        case 'u': return "uint32";
        case 'm': return "map[string]interface {}";
        case 't': return "time.Time";
        default: return "interface {}";
    }
}

enum class Flow { on, leave, next };

constexpr std::size_t k_blocks_max = 4000;  // blocks of all templates that are at work: they take room on the stack

/// One template at work.
class Execution {
public:
    Execution(Run& run, Scope& scope, const Tree& tree, const Value& dot, std::string& out)
        : run_(run), scope_(scope), tree_(tree), out_(out) {
        variables_.push_back({"$", dot});
    }

    void walk(const Value& dot) { list(dot, tree_.body); }

private:
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

    Error fault(std::size_t at, std::string message, const std::string& expression) const {
        Error error(Exit::data, "template-error", std::move(message));
        error.at(tree_.source->position(at));
        if (!expression.empty()) { error.detail("expression", expression); }
        return error;
    }

    [[noreturn]] void fail(const Operand& operand, std::string message) const { throw fault(operand.at, std::move(message), written(operand)); }
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
            Error error(Exit::data, f.code, context.empty() || f.code == "template-fail" ? f.message : fmt::format("{}: {}", context, f.message));
            error.at(tree_.source->position(at));
            if (!expression.empty()) { error.detail("expression", expression); }
            if (!f.hint.empty()) { error.hint(f.hint); }
            throw error;
        }
    }

    static std::pair<std::string, std::string> shown_nothing() { return {}; }

    /// Adds where a template was called to an error inside of it.
    template <typename Name, typename Body>
    auto traced(std::size_t at, Name&& called, Body&& body) const {
        try {
            return body();
        } catch (Error& error) {
            const std::string name = called();
            const auto levels = std::count_if(error.details().begin(), error.details().end(), [](const auto& d) { return d.first == "called from"; });
            const std::string place = tree_.source->position(at).to_string();
            if (static_cast<std::size_t>(levels) < k_trace_max && !(error.position() && error.position()->to_string() == place)) {
                error.detail("called from", fmt::format("{} ({})", place, base::escape(name)));
            }
            throw;
        }
    }

    void step(std::size_t at) { placed(at, shown_nothing, [&] { run_.step(); }); }

    Flow list(const Value& dot, const std::vector<Statement>& statements) {
        const Nested nested(run_.blocks);
        if (run_.blocks > k_blocks_max && !statements.empty()) {
            throw Error(Exit::data, "recipe-too-large", "templates and their blocks are nested too deep").at(tree_.source->position(statements[0].at));
        }
        for (const auto& statement : statements) {
            const Flow flow = one(dot, statement);
            if (flow != Flow::on) { return flow; }
        }
        return Flow::on;
    }

    Flow one(const Value& dot, const Statement& statement) {
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

    void print(std::string_view text, std::size_t at, bool verbatim = false) {
        if (run_.output != nullptr && &out_ == &run_.output->text && !text.empty()) {
            run_.lines += static_cast<std::size_t>(std::count(out_.begin() + static_cast<std::ptrdiff_t>(run_.counted), out_.end(), '\n'));
            run_.counted = out_.size();
            run_.output->origin.add({run_.lines + 1, tree_.source, at, verbatim});
        }
        if (out_.size() + text.size() > run_.limits().output_max) {
            throw Error(Exit::data, "recipe-too-large", fmt::format("the output is larger than {}", base::format_bytes(run_.limits().output_max)))
                .at(tree_.source->position(at));
        }
        out_ += text;
    }

    void print_pipe(const Value& value, const Pipe& pipe) {
        const auto made = [&] { return value.is_nil() ? "<no value>" : print_value(value); };
        const Record* record = value.as_record();
        const std::string text = record != nullptr && record->text_by_address ? record->text : placed(pipe.at, [&] { return std::pair(std::string(), written(pipe)); }, made);
        run_.look(tree_, pipe, value, text);
        print(text, pipe.at);
    }

    Flow branch(const Value& dot, const Statement& statement) {
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

    void declare(const Pipe& pipe, const Value& index, const Value& element) {
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

    Flow range(const Value& dot, const Statement& statement) {
        const Pipe& pipe = *statement.pipe;
        const std::size_t outer = variables_.size();
        const Value value = pipeline(dot, pipe);
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
                throw fault(pipe.at, fmt::format("can't use {} to iterate over more than one variable", print_value(value)), written(pipe));
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
            throw fault(pipe.at, fmt::format("range can't iterate over {}", placed(pipe.at, shown_nothing, [&] { return print_value(value); })), written(pipe))
                .detail("value", describe(value));
        }
        if (!ran && statement.has_otherwise) { result = list(dot, statement.otherwise); }
        variables_.resize(outer);
        return result;
    }

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

    void call_template(const Value& dot, const Statement& statement) {
        const Tree* tree = scope_.find(statement.text);
        const std::string shown = "template " + quote_text(statement.text);
        if (tree == nullptr) { throw fault(statement.at, shown + " not defined", shown).hint(scope_.hint(statement.text)); }
        const Value argument = statement.pipe ? pipeline(dot, *statement.pipe) : Value();
        traced(statement.at, [&] { return statement.text; }, [&] {
            if (run_.depth >= run_.limits().depth_max) {
                throw Error(Exit::data, "recipe-too-large", fmt::format("templates call each other more than {} deep", run_.limits().depth_max))
                    .at(tree_.source->position(statement.at));
            }
            ++run_.depth;
            Execution inner(run_, scope_, *tree, argument, out_);
            inner.walk(argument);
            --run_.depth;
            return 0;
        });
    }

    void assign(const std::string& name, const Value& value, std::size_t at) {
        const auto found = std::find_if(variables_.rbegin(), variables_.rend(), [&](const Variable& v) { return v.name == name; });
        if (found == variables_.rend()) { throw fault(at, fmt::format("undefined variable: {}", name), name); }
        found->value = value;
    }

    Value pipeline(const Value& dot, const Pipe& pipe) {
        Value value;
        Final last = nullptr;
        for (const auto& command : pipe.commands) {
            step(command.at);
            value = eval_command(dot, command, last).dug();
            last = &value;
        }
        for (const auto& name : pipe.declarations) {
            if (pipe.assigns) {
                assign(name, value, pipe.at);
            } else {
                variables_.push_back({name, value});
            }
        }
        return value;
    }

    void no_arguments(const Command& command, Final last) const {
        if (command.operands.size() > 1 || last != nullptr) {
            fail(command.operands[0], fmt::format("can't give argument to non-function {}", written(command.operands[0])));
        }
    }

    Value eval_command(const Value& dot, const Command& command, Final last) {
        using K = Operand::Kind;
        const Operand& first = command.operands[0];
        switch (first.kind) {
            case K::field: return field_chain(dot, dot, first, first.names, 0, &command, last);
            case K::chain: return chain(dot, first, &command, last);
            case K::identifier: return call_function(dot, first, &command, last);
            case K::pipe: no_arguments(command, last); return pipeline(dot, *first.pipe);
            case K::variable:
                if (first.names.size() == 1) {
                    no_arguments(command, last);
                    return variable(first);
                }
                return field_chain(dot, variable(first), first, first.names, 1, &command, last);
            default: break;
        }
        no_arguments(command, last);
        if (first.kind == K::nil) { fail(first, "nil is not a command"); }
        return constant(dot, first);
    }

    Value variable(const Operand& operand) const {
        const std::string& name = operand.names[0];
        const auto found = std::find_if(variables_.rbegin(), variables_.rend(), [&](const Variable& v) { return v.name == name; });
        if (found == variables_.rend()) { fail(operand, fmt::format("undefined variable: {}", name)); }
        return found->value;
    }

    Value constant(const Value& dot, const Operand& operand) const {
        using K = Operand::Kind;
        switch (operand.kind) {
            case K::boolean: return Value::boolean(operand.truth);
            case K::text: return operand.constant;
            case K::number:
                if (operand.writes_real) { return Value::real(operand.real_value); }
                if (operand.is_int) { return Value::integer(operand.int_value); }
                fail(operand, fmt::format("{} overflows int", operand.text));
            default: return dot;
        }
    }

    Value chain(const Value& dot, const Operand& operand, const Command* command, Final last) {
        const bool calls = operand.head->kind == Operand::Kind::identifier;
        const Value head = calls ? call_function(dot, *operand.head, nullptr, nullptr).dug() : pipeline(dot, *operand.head->pipe);
        return field_chain(dot, head, operand, operand.names, 0, command, last);
    }

    Value field_chain(const Value& dot, Value receiver, const Operand& operand, const std::vector<std::string>& names, std::size_t from, const Command* command, Final last) {
        const Value first = receiver;
        for (std::size_t i = from; i < names.size(); ++i) {
            if (receiver.type() == Type::nil) {
                throw fault(operand.at, fmt::format("nil pointer evaluating interface {{}}.{}", names[i]), written(operand))
                    .detail("value", fmt::format("nil in front of .{}", names[i])).hint(nil_hint(first, names, from, i));
            }
            const bool final_name = i + 1 == names.size();
            receiver = field(dot, receiver, operand, names[i], final_name ? command : nullptr, final_name ? last : nullptr);
        }
        return receiver;
    }

    Value field(const Value& dot, const Value& receiver, const Operand& operand, const std::string& name, const Command* command, Final last) {
        if (receiver.type() == Type::invalid) { return {}; }
        if (const BoundMethod method = find_method(receiver, name); method.call) {
            const List arguments = eval_arguments(dot, operand, name, method.parameters, false, command, last);
            return placed(operand.at, [&] { return std::pair(fmt::format("error calling {}", name), written(operand)); }, [&] { return method.call(arguments); });
        }
        const bool has_arguments = (command != nullptr && command->operands.size() > 1) || last != nullptr;
        if (const Record* record = receiver.as_record()) {
            if (const Record::Field* found = record->find(name)) {
                if (has_arguments) { fail(operand, fmt::format("{} has arguments but cannot be invoked as function", name)); }
                return found->value;
            }
        } else if (receiver.is_map()) {
            if (has_arguments) { fail(operand, fmt::format("{} is not a method but has arguments", name)); }
            const auto found = receiver.members().find(name);
            if (found == receiver.members().end()) { return run_.missing_is_invalid ? Value() : zero_element(receiver.type()); }
            if (!is_unknown(found->second)) { return found->second; }
            throw unknown_error(found->second, tree_.source->position(operand.at), written(operand));
        }
        fail(operand, fmt::format("can't evaluate field {} in type {}", name, type_name(receiver)), receiver);
    }

    Value call_function(const Value& dot, const Operand& operand, const Command* command, Final last) {
        const Function& function = *operand.function;
        if (function.name == "and" || function.name == "or") { return logic(dot, operand, function.name == "or", command, last); }
        List arguments = eval_arguments(dot, operand, function.name, function.parameters, function.variadic, command, last);
        Call call{run_, scope_};
        const auto invoke = [&] {
            const auto shown = [&] { return std::pair(fmt::format("error calling {}", function.name), command != nullptr ? written(*command) : written(operand)); };
            return placed(operand.at, shown, [&] { return function.call(call, arguments); });
        };
        if (function.name == "include" || function.name == "tpl") {
            const auto called = [&] {
                const std::string& name = arguments[0].text();
                return fmt::format("{} {}", function.name, quote_text(name.size() > 60 ? name.substr(0, 60) + "..." : name));
            };
            return traced(operand.at, called, invoke);
        }
        return invoke();
    }

    Value logic(const Value& dot, const Operand& operand, bool is_or, const Command* command, Final last) {
        const std::size_t given = command != nullptr ? command->operands.size() - 1 : 0;
        if (given + (last != nullptr ? 1 : 0) == 0) {
            fail(operand, fmt::format("wrong number of args for {}: want at least 1 got 0", operand.text));
        }
        Value value;
        for (std::size_t i = 0; i < given; ++i) {
            value = argument(dot, 'a', command->operands[i + 1]);
            if (truth(value) == is_or) { return value; }
        }
        return last != nullptr ? *last : value;
    }

    List eval_arguments(const Value& dot, const Operand& operand, std::string_view name, std::string_view parameters, bool variadic,
                        const Command* command, Final last) {
        const std::size_t given = command != nullptr ? command->operands.size() - 1 : 0;
        const std::size_t count = given + (last != nullptr ? 1 : 0);
        const std::size_t least = variadic ? parameters.size() - 1 : parameters.size();
        if (count < least || (!variadic && count > least)) {
            fail(operand, fmt::format("wrong number of args for {}: want {}{} got {}", name, variadic ? "at least " : "", least, count));
        }
        const auto letter = [&](std::size_t i) { return parameters[std::min(i, parameters.size() - 1)]; };
        List arguments;
        arguments.reserve(count);
        for (std::size_t i = 0; i < given; ++i) { arguments.push_back(argument(dot, letter(i), command->operands[i + 1])); }
        if (last != nullptr) { arguments.push_back(validated(*last, letter(given), operand, given + 1, name)); }
        return arguments;
    }

    Value argument(const Value& dot, char letter, const Operand& operand) {
        using K = Operand::Kind;
        step(operand.at);
        switch (operand.kind) {
            case K::dot: return validated(dot, letter, operand);
            case K::nil:
                if (letter == 'a') { return Value::nil(); }
                if (letter == 'm') { return Value::none(Type::map); }
                fail(operand, fmt::format("cannot assign nil to {}", type_of_letter(letter)));
            case K::field: return validated(field_chain(dot, dot, operand, operand.names, 0, nullptr, nullptr), letter, operand);
            case K::variable: return validated(field_chain(dot, variable(operand), operand, operand.names, 1, nullptr, nullptr), letter, operand);
            case K::pipe: return validated(pipeline(dot, *operand.pipe), letter, operand);
            case K::identifier: return validated(call_function(dot, operand, nullptr, nullptr), letter, operand);
            case K::chain: return validated(chain(dot, operand, nullptr, nullptr), letter, operand);
            default: break;
        }
        switch (letter) {
            case 'a': return constant(dot, operand);
            case 'b':
                if (operand.kind == K::boolean) { return constant(dot, operand); }
                fail(operand, fmt::format("expected bool; found {}", written(operand)));
            case 's':
                if (operand.kind == K::text) { return constant(dot, operand); }
                fail(operand, fmt::format("expected string; found {}", written(operand)));
            case 'i':
                if (operand.kind == K::number && operand.is_int) { return Value::integer(operand.int_value); }
                fail(operand, fmt::format("expected integer; found {}", written(operand)));
            case 'u':
                if (operand.kind == K::number && operand.is_uint) { return Value::integer(operand.int_value); }
                fail(operand, fmt::format("expected unsigned integer; found {}", written(operand)));
            case 'f':
                if (operand.kind == K::number && operand.is_real) { return Value::real(operand.real_value); }
                fail(operand, fmt::format("expected float; found {}", written(operand)));
            default: fail(operand, fmt::format("can't handle {} for arg of type {}", written(operand), type_of_letter(letter)));
        }
    }

    Value validated(const Value& value, char letter, const Operand& operand, std::size_t number = 0, std::string_view function = "") const {
        if (value.type() == Type::invalid) {
            if (letter == 'a') { return Value::nil(); }
            if (letter == 'm') { return Value::none(Type::map); }
            fail(operand, fmt::format("invalid value; expected {}", type_of_letter(letter)), value);
        }
        bool fits = false;
        switch (letter) {
            case 'a': return value;
            case 's': fits = value.type() == Type::string; break;
            case 'i': fits = value.type() == Type::integer; break;
            case 'b': fits = value.type() == Type::boolean; break;
            case 'f': fits = value.type() == Type::float64; break;
            case 'm': fits = value.type() == Type::map || value.type() == Type::values; break;
            case 't': fits = value.type() == Type::time; break;
            default: break;
        }
        if (fits) { return value; }
        std::string message = fmt::format("wrong type for value; expected {}; got {}", type_of_letter(letter), value.is_nil() ? "interface {}" : type_name(value));
        if (number > 0) { message += fmt::format(" (argument {} of {})", number, function); }
        fail(operand, std::move(message), value);
    }
};

}  // namespace

void execute_into(Run& run, Scope& scope, const Tree& tree, const Value& dot, std::string& out) {
    if (run.depth >= run.limits().depth_max) {
        throw Fault{fmt::format("templates call each other more than {} deep", run.limits().depth_max), "recipe-too-large", ""};
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
