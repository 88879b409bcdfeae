// SPDX-License-Identifier: Apache-2.0
// Sprig's functions that look at types, and its defaults.
#include <algorithm>

#include "recipe/govalue/convert.hpp"
#include "recipe/sprig/sprig.hpp"

namespace kmm::recipe::tmpl {

namespace {

Value fallback(Call&, List& a) { return a.size() < 2 || empty(a[1]) ? a[0] : a[1]; }

Value first_set(Call&, List& a) {
    const auto found = std::find_if(a.begin(), a.end(), truth);
    return found == a.end() ? Value::nil() : *found;
}

}  // namespace

std::span<const Function> type_functions() {
    static const Function table[] = {
        {"default", "aa", true, fallback},
        {"empty", "a", false, [](Call&, List& a) { return Value::boolean(empty(a[0])); }},
        {"coalesce", "a", true, first_set},
        {"all", "a", true, [](Call&, List& a) { return Value::boolean(std::all_of(a.begin(), a.end(), truth)); }},
        {"any", "a", true, [](Call&, List& a) { return Value::boolean(std::any_of(a.begin(), a.end(), truth)); }},
        {"ternary", "aab", false, [](Call&, List& a) { return a[2].as_bool() ? a[0] : a[1]; }},
        {"typeOf", "a", false, [](Call&, List& a) { return Value::string(type_name(a[0])); }},
        {"typeIs", "sa", false, [](Call&, List& a) { return Value::boolean(a[0].text() == type_name(a[1])); }},
        {"typeIsLike", "sa", false,
         [](Call&, List& a) {
             return Value::boolean(a[0].text() == type_name(a[1]) || '*' + a[0].text() == type_name(a[1]));
         }},
        {"kindOf", "a", false, [](Call&, List& a) { return Value::string(std::string(kind_name(a[0]))); }},
        {"kindIs", "sa", false, [](Call&, List& a) { return Value::boolean(a[0].text() == kind_name(a[1])); }},
        {"deepEqual", "aa", false, [](Call&, List& a) { return Value::boolean(deep_equal(a[0], a[1])); }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
