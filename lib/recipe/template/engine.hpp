// SPDX-License-Identifier: Apache-2.0
// Templates of one release, parsed together and executed as Helm's engine does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/value.hpp"
#include "recipe/template/function.hpp"
#include "recipe/template/tree.hpp"

namespace kmm::recipe::tmpl {

/// Bytes of what functions make, what is printed, and what is parsed.
inline constexpr std::uint64_t k_made_max = std::uint64_t{1} << 30U;

/// Bounds for hostile templates; exceeding one is data "recipe-too-large".
struct Limits {
    std::uint64_t steps_max = 50'000'000;         ///< statements and operands, over all templates of an engine
    std::uint64_t made_max = k_made_max;          ///< bytes that are made, over all templates of an engine
    std::size_t depth_max = 1200;                 ///< templates that call each other
    std::size_t output_max = k_output_max;        ///< bytes of one template, and of one text that a function makes
};

/// Trees by name. A scope made by `tpl` sees those of the scope around it.
struct Scope {
    const Scope* outer = nullptr;
    std::map<std::string, std::shared_ptr<const Tree>, std::less<>> trees;
    [[nodiscard]] const Tree* find(std::string_view name) const;
    /// What to do where `name` is not found.
    [[nodiscard]] std::string hint(std::string_view name) const;
    /// As Go's Parse: an empty tree does not replace another.
    void add(std::shared_ptr<const Tree> tree);
};

/// Which statement of which template made a part of an output.
class Origin {
public:
    struct Mark {
        std::size_t line = 1;   ///< of the output, from 1, where the part begins
        std::shared_ptr<const Source> source;
        std::size_t at = 0;
        bool verbatim = false;  ///< text of the template: its lines are those of the output
        bool leads = true;      ///< nothing but blanks is before it in its line
        bool is_blank = false;  ///< it has nothing but blanks in its line
    };
    void add(Mark mark) { marks_.push_back(std::move(mark)); }
    /// The place that made line `line` of the output, or its start: an action, or the first character of a line of
    /// text.
    [[nodiscard]] Position position(std::size_t line) const;

private:
    std::vector<Mark> marks_;
};

/// What a template printed.
struct Output {
    std::string text;
    Origin origin;
};

/// What all executions of one engine share.
class Run {
public:
    Run(const Library& library, const Limits& limits) : functions(library), budget(limits.made_max), limits_(limits) {}
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    /// A map that templates have changed: it may contain itself. When the run ends it is emptied, so that nothing keeps
    /// it for ever.
    void remember(const Value& map) {
        if (changed_.emplace(map.shared_map(), map).second) { budget.take(member_bytes(0)); }
    }
    /// Counts steps; throws Fault "recipe-too-large".
    void step(std::uint64_t steps = 1);
    const Limits& limits() const noexcept { return limits_; }
    const Library& functions;  ///< of `tpl`, and of methods
    Budget budget;
    std::map<std::string, int, std::less<>> included;  ///< how deep `include` of a name is nested
    std::size_t depth = 0;
    std::size_t blocks = 0;    ///< blocks of templates that are at work
    /// Hears of prints that are rarely meant, as warnings "missing-value", "no-value-text", "float-format" and
    /// "printf-fault", and of placeholders. May be empty.
    std::function<void(Diagnostic)> notice;
    /// What an action prints. Errors: "unknown-fact"; "not-deterministic" for a text with an address.
    void look(const Tree& tree, const Pipe& pipe, const Value& value, const std::string& text) const;
    bool placeholders = false;  ///< of functions that give something else each time, which are errors otherwise
    bool has_addresses = false;  ///< some value holds a text with k_address
    bool missing_is_invalid = false;  ///< what a missing key of a map is: Helm makes it nil, text/template alone
                                      ///< nothing at all, which has no members either
    Output* output = nullptr;  ///< of the template that is rendered; nullptr: no origins
    std::size_t lines = 0, counted = 0;  ///< line feeds in the first `counted` bytes of it

private:
    Limits limits_;
    std::uint64_t steps_ = 0;
    std::map<const Map*, Value> changed_;
};

/// Counts up as long as it lives.
struct Nested {
    explicit Nested(std::size_t& number) : counted(number) { ++counted; }
    ~Nested() { --counted; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    std::size_t& counted;
};

/// Executes `tree` with `dot` and gives what it prints. Errors: data "template-error", "template-fail" (required,
/// fail), "not-deterministic", "recipe-too-large", all with the position in the template and what led there.
[[nodiscard]] std::string execute(Run& run, Scope& scope, const Tree& tree, const Value& dot);

/// The same, behind what `out` has already.
void execute_into(Run& run, Scope& scope, const Tree& tree, const Value& dot, std::string& out);

/// The error for a value of unknown_value that is read.
[[nodiscard]] Error unknown_error(const Value& value, Position position, const std::string& expression);

/// Files that were parsed before, by name: who renders the same files again and again parses each text once. Not
/// thread-safe.
class ParsedFiles {
public:
    using Trees = std::vector<std::shared_ptr<const Tree>>;
    /// The texts see the functions of `library`.
    explicit ParsedFiles(const Library& library) : library_(library) {}
    [[nodiscard]] const Library& functions() const noexcept { return library_; }
    /// The trees of `text`, which is parsed unless `name` had it and `file` last. `file` is named in messages. Errors:
    /// those of parse().
    const Trees& trees(const std::string& name, const std::string& text, const std::string& file);

private:
    const Library& library_;
    Budget budget_{k_made_max};
    std::map<std::string, std::pair<std::shared_ptr<const Source>, Trees>, std::less<>> files_;
};

class Engine {
public:
    /// `parsed` outlives the engine.
    explicit Engine(ParsedFiles& parsed, const Limits& limits = {}, std::function<void(Diagnostic)> notice = {})
        : parsed_(parsed), run_(parsed.functions(), limits) {
        run_.notice = std::move(notice);
    }
    /// Functions that give something else each time give placeholders, with a warning "placeholder", and are no errors.
    void use_placeholders() { run_.placeholders = true; }
    /// Adds the templates of a file, which Helm names `name` and messages `file`; "": `name`. Errors: those of parse().
    void add(const std::string& name, const std::string& text, const std::string& file = {});
    /// What the template prints, without "<no value>" as Helm does it. Error: not_found "no-template".
    [[nodiscard]] Output render(std::string_view name, const Value& dot);

private:
    ParsedFiles& parsed_;
    Run run_;
    Scope scope_;
};

}  // namespace kmm::recipe::tmpl
