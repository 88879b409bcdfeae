// SPDX-License-Identifier: Apache-2.0
// Go's text/template executor: pipelines, commands, operands and what functions take.
#include <algorithm>

#include <fmt/format.h>

#include "recipe/govalue/format.hpp"
#include "recipe/template/execution.hpp"

namespace kmm::recipe::tmpl {

namespace {

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

}  // namespace

void Execution::assign(const std::string& name, const Value& value, std::size_t at) {
    const auto found =
        std::find_if(variables_.rbegin(), variables_.rend(), [&](const Variable& v) { return v.name == name; });
    if (found == variables_.rend()) { throw fault(at, fmt::format("undefined variable: {}", name), name); }
    found->value = value;
}

Value Execution::pipeline(const Value& dot, const Pipe& pipe) {
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

void Execution::no_arguments(const Command& command, Final last) const {
    if (command.operands.size() > 1 || last != nullptr) {
        fail(command.operands[0], fmt::format("can't give argument to non-function {}", written(command.operands[0])));
    }
}

Value Execution::eval_command(const Value& dot, const Command& command, Final last) {
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

Value Execution::variable(const Operand& operand) const {
    const std::string& name = operand.names[0];
    const auto found =
        std::find_if(variables_.rbegin(), variables_.rend(), [&](const Variable& v) { return v.name == name; });
    if (found == variables_.rend()) { fail(operand, fmt::format("undefined variable: {}", name)); }
    return found->value;
}

Value Execution::constant(const Value& dot, const Operand& operand) const {
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

Value Execution::chain(const Value& dot, const Operand& operand, const Command* command, Final last) {
    const bool calls = operand.head->kind == Operand::Kind::identifier;
    const Value head =
        calls ? call_function(dot, *operand.head, nullptr, nullptr).dug() : pipeline(dot, *operand.head->pipe);
    return field_chain(dot, head, operand, operand.names, 0, command, last);
}

Value Execution::field_chain(const Value& dot, Value receiver, const Operand& operand,
                             const std::vector<std::string>& names, std::size_t from, const Command* command,
                             Final last) {
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

Value Execution::field(const Value& dot, const Value& receiver, const Operand& operand, const std::string& name,
                       const Command* command, Final last) {
    if (receiver.type() == Type::invalid) { return {}; }
    if (const BoundMethod method = run_.functions.method(receiver, name); method.call) {
        const List arguments = eval_arguments(dot, operand, name, method.parameters, false, command, last);
        return placed(
            operand.at, [&] { return std::pair(fmt::format("error calling {}", name), written(operand)); },
            [&] { return counted([&] { return method.call(arguments); }); });
    }
    const bool has_arguments = (command != nullptr && command->operands.size() > 1) || last != nullptr;
    if (const Record* record = receiver.as_record()) {
        if (const Record::Field* found = record->find(name)) {
            if (has_arguments) {
                fail(operand, fmt::format("{} has arguments but cannot be invoked as function", name));
            }
            return found->value;
        }
    } else if (receiver.is_map()) {
        if (has_arguments) { fail(operand, fmt::format("{} is not a method but has arguments", name)); }
        const auto found = receiver.members().find(name);
        if (found == receiver.members().end()) {
            return run_.missing_is_invalid ? Value() : zero_element(receiver.type());
        }
        if (!is_unknown(found->second)) { return found->second; }
        throw unknown_error(found->second, tree_.source->position(operand.at), written(operand));
    }
    fail(operand, fmt::format("can't evaluate field {} in type {}", name, type_name(receiver)), receiver);
}

Value Execution::call_function(const Value& dot, const Operand& operand, const Command* command, Final last) {
    const Function& function = *operand.function;
    if (function.name == "and" || function.name == "or") {
        return logic(dot, operand, function.name == "or", command, last);
    }
    List arguments = eval_arguments(dot, operand, function.name, function.parameters, function.variadic, command, last);
    Call call{run_, scope_};
    const auto invoke = [&] {
        const auto shown = [&] {
            return std::pair(fmt::format("error calling {}", function.name),
                             command != nullptr ? written(*command) : written(operand));
        };
        return placed(operand.at, shown, [&] {
            if (function.is_random) { use_placeholder(operand); }
            return counted([&] { return function.call(call, arguments); });
        });
    };
    if (function.name == "include" || function.name == "tpl") {
        const auto called = [&] {
            const std::string& name = arguments[0].text();
            return fmt::format("{} {}", function.name,
                               quote_text(name.size() > 60 ? name.substr(0, 60) + "..." : name));
        };
        return traced(operand.at, called, invoke);
    }
    return invoke();
}

void Execution::use_placeholder(const Operand& operand) const {
    if (!run_.placeholders) {
        throw Fault{"not deterministic: it gives another result each time", "not-deterministic",
                    "set the value in the values, or make it beforehand; `render chart --placeholders` shows the rest"};
    }
    if (!run_.notice) { return; }
    run_.notice({Severity::warning, "placeholder",
                 fmt::format("{} gives a placeholder: do not apply this output", operand.function->name),
                 tree_.source->position(operand.at), "set the value in the values, or make it beforehand", Exit::data});
}

Value Execution::logic(const Value& dot, const Operand& operand, bool is_or, const Command* command, Final last) {
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

List Execution::eval_arguments(const Value& dot, const Operand& operand, std::string_view name,
                               std::string_view parameters, bool variadic, const Command* command, Final last) {
    const std::size_t given = command != nullptr ? command->operands.size() - 1 : 0;
    const std::size_t count = given + (last != nullptr ? 1 : 0);
    const std::size_t least = variadic ? parameters.size() - 1 : parameters.size();
    if (count < least || (!variadic && count > least)) {
        fail(operand, fmt::format("wrong number of args for {}: want {}{} got {}", name, variadic ? "at least " : "",
                                  least, count));
    }
    const auto letter = [&](std::size_t i) { return parameters[std::min(i, parameters.size() - 1)]; };
    List arguments;
    arguments.reserve(count);
    for (std::size_t i = 0; i < given; ++i) { arguments.push_back(argument(dot, letter(i), command->operands[i + 1])); }
    if (last != nullptr) { arguments.push_back(validated(*last, letter(given), operand, given + 1, name)); }
    return arguments;
}

Value Execution::argument(const Value& dot, char letter, const Operand& operand) {
    using K = Operand::Kind;
    step(operand.at);
    switch (operand.kind) {
        case K::dot: return validated(dot, letter, operand);
        case K::nil:
            if (letter == 'a') { return Value::nil(); }
            if (letter == 'm') { return Value::none(Type::map); }
            fail(operand, fmt::format("cannot assign nil to {}", type_of_letter(letter)));
        case K::field:
            return validated(field_chain(dot, dot, operand, operand.names, 0, nullptr, nullptr), letter, operand);
        case K::variable:
            return validated(field_chain(dot, variable(operand), operand, operand.names, 1, nullptr, nullptr), letter,
                             operand);
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
        default:
            fail(operand, fmt::format("can't handle {} for arg of type {}", written(operand), type_of_letter(letter)));
    }
}

Value Execution::validated(const Value& value, char letter, const Operand& operand, std::size_t number,
                           std::string_view function) const {
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
    std::string message = fmt::format("wrong type for value; expected {}; got {}", type_of_letter(letter),
                                      value.is_nil() ? "interface {}" : type_name(value));
    if (number > 0) { message += fmt::format(" (argument {} of {})", number, function); }
    fail(operand, std::move(message), value);
}

}  // namespace kmm::recipe::tmpl
