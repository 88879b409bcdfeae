// SPDX-License-Identifier: Apache-2.0
// The functions that templates may call: Go's, Sprig's and Helm's. One table a file; a function checks what Go's types
// do not.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/template/value.hpp"

namespace kmm::recipe::tmpl {

class Run;
struct Scope;

/// Who calls: what functions need that run other templates.
struct Call {
    Run& run;
    Scope& scope;
};

/// Throws Fault. `arguments` are checked against `parameters`: s string, i int, b bool, f float64, u uint32, m
/// map[string]interface {}, t time.Time, a anything.
struct Function {
    std::string_view name;
    std::string_view parameters;
    bool variadic = false;  ///< the last letter may come any number of times, or not at all
    Value (*call)(Call&, List& arguments) = nullptr;
    bool is_random = false;  ///< gives something else each time; here, a placeholder
};

/// The function of that name, nullptr if there is none. O(log n).
[[nodiscard]] const Function* find_function(std::string_view name);
/// All names in order, for "did you mean".
[[nodiscard]] const std::vector<std::string>& function_names();

[[nodiscard]] std::span<const Function> builtin_functions();
[[nodiscard]] std::span<const Function> helm_functions();
[[nodiscard]] std::span<const Function> text_functions();
[[nodiscard]] std::span<const Function> case_functions();
[[nodiscard]] std::span<const Function> number_functions();
[[nodiscard]] std::span<const Function> list_functions();
[[nodiscard]] std::span<const Function> dict_functions();
[[nodiscard]] std::span<const Function> type_functions();
[[nodiscard]] std::span<const Function> encoding_functions();
[[nodiscard]] std::span<const Function> digest_functions();
[[nodiscard]] std::span<const Function> path_functions();
[[nodiscard]] std::span<const Function> regex_functions();
[[nodiscard]] std::span<const Function> version_functions();
[[nodiscard]] std::span<const Function> time_functions();
/// Those that give something else each time.
[[nodiscard]] std::span<const Function> random_functions();

/// A method of a value, and what it takes.
struct BoundMethod {
    std::string parameters;
    std::function<Value(const List&)> call;
};

/// The method `name` of files, values, versions, times and records; `call` is empty if there is none.
[[nodiscard]] BoundMethod find_method(const Value& receiver, std::string_view name);

/// Whether RE2's `pattern` is found in `text`. Throws Fault for a wrong pattern.
[[nodiscard]] bool regex_matches(const std::string& pattern, const std::string& text);
/// Sprig's strval: the text itself, else `%v`.
[[nodiscard]] std::string text_of(const Value& value);
/// Sprig's strslice: the texts of a list without nils; of another value, its text alone.
[[nodiscard]] std::vector<std::string> texts_of(const Value& value);
/// cast.ToInt64 and cast.ToFloat64: 0 for what is no number.
[[nodiscard]] std::int64_t to_int(const Value& value);
[[nodiscard]] double to_real(const Value& value);
/// Throws Fault "recipe-too-large" if a result would be larger than what one template may print.
void check_size(std::uint64_t bytes);
/// Items of any list; throws Fault "Cannot DOES on type KIND" for other values.
[[nodiscard]] std::span<const Value> require_list(const Value& value, std::string_view does);
/// A list of any type, or bytes, as a list: what is a list already is not copied. Throws as require_list.
[[nodiscard]] Value list_of(const Value& value, std::string_view does);
/// Its items, copied.
[[nodiscard]] List items_of(const Value& value, std::string_view does);

}  // namespace kmm::recipe::tmpl
