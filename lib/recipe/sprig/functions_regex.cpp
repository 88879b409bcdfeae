// SPDX-License-Identifier: Apache-2.0
// Sprig's regular expressions.
#include <utility>

#include "recipe/golib/regex.hpp"
#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {

namespace {

Value regex_match(Call&, List& a) { return Value::boolean(regex_matches(a[0].text(), a[1].text())); }

/// Sprig's regexMatch says false for a wrong expression; one that is only too large for us is no such.
Value regex_match_or_false(Call& call, List& a) {
    try {
        return regex_match(call, a);
    } catch (const Fault& fault) {
        if (fault.code != Fault{}.code) { throw; }
        return Value::boolean(false);
    }
}

Value find_all(Call& call, List& a) {
    auto found = regex_find(a[0].text(), a[1].text(), a[2].as_int(), call.run.budget);
    return found.empty() ? Value::none(Type::strings) : Value::strings(std::move(found));
}

Value find_one(Call& call, List& a) {
    const auto found = regex_find(a[0].text(), a[1].text(), 1, call.run.budget);
    return Value::string(found.empty() ? "" : found.front());
}

Value replace(Call&, List& a) { return Value::string(regex_replace(a[0].text(), a[1].text(), a[2].text(), false)); }
Value replace_literal(Call&, List& a) {
    return Value::string(regex_replace(a[0].text(), a[1].text(), a[2].text(), true));
}

Value split(Call& call, List& a) {
    auto pieces = regex_split(a[0].text(), a[1].text(), a[2].as_int(), call.run.budget);
    return pieces ? Value::strings(std::move(*pieces)) : Value::none(Type::strings);
}

Value quote_meta(Call&, List& a) { return Value::string(regex_quote(a[0].text())); }

}  // namespace

std::span<const Function> regex_functions() {
    static const Function table[] = {
        {"regexMatch", "ss", false, regex_match_or_false},
        {"mustRegexMatch", "ss", false, regex_match},
        {"regexFindAll", "ssi", false, find_all},
        {"mustRegexFindAll", "ssi", false, find_all},
        {"regexFind", "ss", false, find_one},
        {"mustRegexFind", "ss", false, find_one},
        {"regexReplaceAll", "sss", false, replace},
        {"mustRegexReplaceAll", "sss", false, replace},
        {"regexReplaceAllLiteral", "sss", false, replace_literal},
        {"mustRegexReplaceAllLiteral", "sss", false, replace_literal},
        {"regexSplit", "ssi", false, split},
        {"mustRegexSplit", "ssi", false, split},
        {"regexQuoteMeta", "s", false, quote_meta},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
