// SPDX-License-Identifier: Apache-2.0
// What templates may call.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/govalue/value.hpp"

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

/// A method of a value, and what it takes.
struct BoundMethod {
    std::string parameters;
    std::function<Value(const List&)> call;
};

/// The functions that a text sees, and the methods of values. One lives as long as the program.
class Library {
public:
    virtual ~Library() = default;
    /// The function of that name, nullptr if there is none.
    [[nodiscard]] virtual const Function* find(std::string_view name) const = 0;
    /// All names in order, for "did you mean".
    [[nodiscard]] virtual const std::vector<std::string>& names() const = 0;
    /// The method `name` of files, values, versions, times and records; `call` is empty if there is none.
    [[nodiscard]] virtual BoundMethod method(const Value& receiver, std::string_view name) const = 0;
};

}  // namespace kmm::recipe::tmpl
