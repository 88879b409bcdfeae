// SPDX-License-Identifier: Apache-2.0
#include "recipe/template/engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/template/function.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::size_t k_written_max = 100;

std::string shortened(std::string text) {
    if (text.size() > k_written_max) { text = text.substr(0, k_written_max) + "..."; }
    return text;
}

}  // namespace

Position Source::position(std::size_t at) const {
    at = std::min(at, text.size());
    const auto line =
        static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    const std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    return {name, line + 1, (start == std::string::npos ? at : at - start - 1) + 1};
}

Error syntax_error(const Source& source, std::size_t at, std::string code, std::string message,
                   const std::vector<std::size_t>& open) {
    const bool unclosed = message == "unexpected EOF" && !open.empty();
    const std::string_view text = source.text;
    const std::size_t inside = unclosed ? open.back() : at;
    const std::size_t begin = text.rfind("{{", inside);
    Error error(Exit::data, std::move(code), std::move(message));
    error.at(source.position(at));
    if (begin == std::string_view::npos) { return error; }
    const std::size_t close = text.find("}}", inside), line = std::min(text.find('\n', inside), text.size());
    const std::size_t end = close < line ? close + 2 : line;
    error.detail("expression", shortened(base::escape(base::trim(text.substr(begin, end - begin)))));
    if (unclosed) { error.detail("opened at", source.position(begin).to_string()); }
    return error;
}

bool Tree::is_empty() const {
    return std::all_of(body.begin(), body.end(), [](const Statement& statement) {
        return statement.kind == Statement::Kind::text &&
               statement.text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
    });
}

std::string written(const Operand& operand) {
    switch (operand.kind) {
        case Operand::Kind::text: return shortened(quote_text(operand.text));
        case Operand::Kind::pipe: return '(' + written(*operand.pipe) + ')';
        case Operand::Kind::chain: return written(*operand.head) + operand.text;
        default: return operand.text;
    }
}

std::string nil_hint(const Value& first, const std::vector<std::string>& names, std::size_t from, std::size_t at) {
    // A name that is not there, and another one is nearly the same.
    const Value* parent = &first;
    for (std::size_t i = from; i < at && parent->is_map(); ++i) {
        const auto found = parent->members().find(names[i]);
        if (found != parent->members().end()) {
            parent = &found->second;
            continue;
        }
        std::vector<std::string> known;
        for (const auto& [key, member] : parent->members()) { known.push_back(key); }
        if (const auto near = base::nearest(names[i], known)) {
            return fmt::format("there is no .{}; did you mean .{}?", names[i], *near);
        }
        break;
    }
    return fmt::format(
        "set the value in front of .{0}, or write (...).{0} in parentheses, or test it with `if` or `default`",
        names[at]);
}

std::string written(const Command& command) {
    std::string text;
    for (const auto& operand : command.operands) {
        if (text.size() > k_written_max) { break; }
        text += (text.empty() ? "" : " ") + written(operand);
    }
    return shortened(std::move(text));
}

std::string written(const Pipe& pipe) {
    std::string text;
    for (const auto& name : pipe.declarations) { text += (text.empty() ? "" : ", ") + name; }
    if (!text.empty()) { text += pipe.assigns ? " = " : " := "; }
    bool first = true;
    for (const auto& command : pipe.commands) {
        if (text.size() > k_written_max) { break; }
        text += (first ? "" : " | ") + written(command);
        first = false;
    }
    return shortened(std::move(text));
}

const Tree* Scope::find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
        if (const auto found = scope->trees.find(name); found != scope->trees.end()) { return found->second.get(); }
    }
    return nullptr;
}

std::string Scope::hint(std::string_view name) const {
    std::vector<std::string> known;
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
        for (const auto& [one, tree] : scope->trees) { known.push_back(one); }
    }
    const auto near = base::nearest(name, known);
    return near ? fmt::format("did you mean {}?", quote_text(*near)) : "is the helper in this chart?";
}

void Scope::add(std::shared_ptr<const Tree> tree) {
    if (tree->is_empty() && find(tree->name) != nullptr) { return; }
    const std::string name = tree->name;
    trees[name] = std::move(tree);
}

Run::~Run() {
    for (auto& [map, value] : changed_) { value.shared_map()->clear(); }
}

void Run::step(std::uint64_t steps) {
    steps_ += steps;
    if (steps_ > limits_.steps_max) {
        throw Fault{fmt::format("the templates need more than {} steps", limits_.steps_max), "recipe-too-large",
                    "is there a loop without an end?"};
    }
}

void Run::look(const Tree& tree, const Pipe& pipe, const Value& value, const std::string& text) const {
    if (is_unknown(value)) { throw unknown_error(value, tree.source->position(pipe.at), written(pipe)); }
    if (has_addresses && text.find(k_address) != std::string::npos) {
        throw Error(Exit::data, "not-deterministic", "the address of a pointer is printed, another one each time")
            .at(tree.source->position(pipe.at))
            .detail("expression", written(pipe))
            .hint("a key of this dict is a whole object: was the name of a key forgotten?");
    }
    if (!notice) { return; }
    const auto warn = [&](const char* code, std::string message, const char* hint) {
        notice({Severity::warning, code, std::move(message), tree.source->position(pipe.at), hint, Exit::data});
    };
    if (value.is_nil()) {
        warn("missing-value", fmt::format("{} has no value and prints nothing", written(pipe)),
             "give the value, or say `default` or `required`");
    } else if (value.type() == Type::float64 && text.find_first_of("eE") != std::string::npos) {
        warn("float-format", fmt::format("{} prints {}: numbers of values files are float64", written(pipe), text),
             "write `int64` before it, or quote the number in the values");
    } else if (text.find("<no value>") != std::string::npos || text.find("<nil>") != std::string::npos) {
        warn("no-value-text",
             fmt::format("{} prints {} in place of a value", written(pipe),
                         text.find("<nil>") != std::string::npos ? "<nil>" : "<no value>"),
             "a value that is missing was made a text; test it with `default` before");
    } else if (text.find("%!") != std::string::npos && text.find('(', text.find("%!")) != std::string::npos) {
        warn("printf-fault", fmt::format("{} prints {}", written(pipe), base::escape(text.substr(0, k_written_max))),
             "give printf the type that its verb wants: `int64` for %d");
    }
}

Error unknown_error(const Value& value, Position position, const std::string& expression) {
    const Record& record = *value.as_record();
    return Error(Exit::data, "unknown-fact", fmt::format("{} is not known", record.text))
        .at(std::move(position))
        .detail("expression", expression)
        .hint(record.fields[0].value.text());
}

const ParsedFiles::Trees& ParsedFiles::trees(const std::string& name, const std::string& text,
                                             const std::string& file) {
    auto& [source, trees] = files_[name];
    if (source == nullptr || source->text != text || source->name != file) {
        auto made = std::make_shared<Source>(Source{file, text});
        trees = parse(name, made, library_, budget_);
        source = std::move(made);
    }
    return trees;
}

void Engine::add(const std::string& name, const std::string& text, const std::string& file) {
    for (const auto& tree : parsed_.trees(name, text, file.empty() ? name : file)) { scope_.add(tree); }
}

Position Origin::position(std::size_t line) const {
    const auto behind = std::upper_bound(marks_.begin(), marks_.end(), line,
                                         [](std::size_t wanted, const Mark& mark) { return wanted < mark.line; });
    if (behind == marks_.begin()) { return {}; }
    // Of what begins in the line, the first action, or the text that leads it; else what reaches into it from before.
    const auto begin = std::lower_bound(marks_.begin(), behind, line,
                                        [](const Mark& one, std::size_t wanted) { return one.line < wanted; });
    auto mark = std::find_if(begin, behind,
                             [](const Mark& one) { return !one.is_blank && (!one.verbatim || one.leads); });
    if (mark == behind) { mark = begin == marks_.begin() ? begin : std::prev(begin); }
    Position position = mark->source->position(mark->at);
    if (mark->verbatim) {
        // The first character of the line that is not a blank.
        position.line += line - mark->line;
        const auto lines = base::split(mark->source->text, '\n');
        const std::string_view text = position.line <= lines.size() ? lines[position.line - 1] : std::string_view();
        const std::size_t first = text.find_first_not_of(" \t");
        position.column = first == std::string_view::npos ? 1 : first + 1;
    }
    return position;
}

Output Engine::render(std::string_view name, const Value& dot) {
    const Tree* tree = scope_.find(name);
    if (tree == nullptr) { throw Error(Exit::not_found, "no-template", fmt::format("there is no template {}", name)); }
    run_.included.clear();
    run_.depth = 0;
    Output output;
    run_.output = &output;
    run_.lines = run_.counted = 0;
    execute_into(run_, scope_, *tree, dot, output.text);
    run_.output = nullptr;
    output.text = replace_all(output.text, "<no value>", "");
    return output;
}

}  // namespace kmm::recipe::tmpl
