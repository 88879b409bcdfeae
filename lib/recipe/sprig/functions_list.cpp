// SPDX-License-Identifier: Apache-2.0
// Sprig's functions of lists. Each one that Sprig has as NAME and mustNAME fails alike here: the place of the fault is
// known.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "recipe/govalue/convert.hpp"
#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {

namespace {

Value pushed(Call& call, List& a) {
    call.run.budget.take(sizeof(Value));
    return list_of(a[0], "push").appended(a[1]);
}

Value prepended(Call&, List& a) {
    List items = items_of(a[0], "prepend");
    items.insert(items.begin(), a[1]);
    return Value::list(std::move(items));
}

Value first_of(Call&, List& a) {
    const Value list = list_of(a[0], "find first");
    return list.items().empty() ? Value::nil() : list.items().front();
}

Value last_of(Call&, List& a) {
    const Value list = list_of(a[0], "find last");
    return list.items().empty() ? Value::nil() : list.items().back();
}

Value rest_of(Call&, List& a) {
    List items = items_of(a[0], "find rest");
    if (items.empty()) { return Value::none(Type::list); }
    items.erase(items.begin());
    return Value::list(std::move(items));
}

Value initial_of(Call&, List& a) {
    List items = items_of(a[0], "find initial");
    if (items.empty()) { return Value::none(Type::list); }
    items.pop_back();
    return Value::list(std::move(items));
}

Value reversed(Call&, List& a) {
    List items = items_of(a[0], "find reverse");
    std::reverse(items.begin(), items.end());
    return Value::list(std::move(items));
}

Value compacted(Call&, List& a) {
    List items = items_of(a[0], "compact");
    std::erase_if(items, empty);
    return Value::list(std::move(items));
}

bool in_list(std::span<const Value> items, const Value& value) {
    return std::any_of(items.begin(), items.end(), [&](const Value& item) { return deep_equal(value, item); });
}

Value unique(Call&, List& a) {
    List kept;
    for (const auto& item : items_of(a[0], "find uniq")) {
        if (!in_list(kept, item)) { kept.push_back(item); }
    }
    return Value::list(std::move(kept));
}

Value without(Call&, List& a) {
    const List omitted(a.begin() + 1, a.end());
    List items = items_of(a[0], "find without");
    std::erase_if(items, [&](const Value& item) { return in_list(omitted, item); });
    return Value::list(std::move(items));
}

Value has(Call&, List& a) { return Value::boolean(!a[1].is_nil() && in_list(list_of(a[1], "find has").items(), a[0])); }

Value sliced(Call&, List& a) {
    if (!a[0].is_list()) {
        throw Fault{fmt::format("list should be type of slice or array but {}", kind_name(a[0])), "template-error",
                    "substr cuts texts"};
    }
    const auto items = a[0].items();
    if (items.empty()) { return Value::nil(); }
    const auto size = static_cast<std::int64_t>(items.size());
    const std::int64_t start = a.size() > 1 ? to_int(a[1]) : 0;
    const std::int64_t end = a.size() > 2 ? to_int(a[2]) : size;
    if (start < 0 || end < start || end > size) {
        throw Fault{fmt::format("slice bounds out of range [{}:{}] with {} items", start, end, size)};
    }
    return Value::list(List(items.begin() + start, items.begin() + end), a[0].type());
}

Value concatenated(Call& call, List& a) {
    Value all = Value::none(Type::list);
    for (const auto& list : a) {
        const Value more = list_of(list, "concat");
        call.run.budget.take(more.items().size() * sizeof(Value));
        if (all.items().empty() && more.type() == Type::list && !more.items().empty()) {
            all = more;
            continue;
        }
        // By number: what is appended may be the list itself.
        const std::size_t count = more.items().size();
        for (std::size_t i = 0; i < count; ++i) {
            Value item = more.items()[i];
            all = all.appended(std::move(item));
        }
    }
    return all;
}

Value chunked(Call& call, List& a) {
    const List items = items_of(a[1], "chunk");
    const std::int64_t size = a[0].as_int();
    if (size <= 0) {
        // Sprig computes the number of chunks with floats: for negative sizes there may be none.
        const double count =
            size == 0 ? 1 : std::floor(static_cast<double>(items.size()) - 1) / static_cast<double>(size);
        if (size < 0 && std::floor(count) + 1 == 0) { return Value::list({}, Type::lists); }
        throw Fault{fmt::format("cannot make chunks of {} items", size)};
    }
    List chunks;
    for (std::size_t at = 0; at < items.size(); at += static_cast<std::size_t>(size)) {
        const std::size_t end = std::min(items.size(), at + static_cast<std::size_t>(size));
        call.run.budget.take(sizeof(Value) + k_held_bytes + (end - at) * sizeof(Value));
        chunks.push_back(Value::list(
            List(items.begin() + static_cast<std::ptrdiff_t>(at), items.begin() + static_cast<std::ptrdiff_t>(end))));
    }
    return Value::list(std::move(chunks), Type::lists);
}

Value sorted(Call& call, List& a) {
    if (!a[0].is_list() && a[0].type() != Type::bytes) { return Value::strings({text_of(a[0])}); }
    auto texts = texts_of(a[0], call.run.budget);
    std::sort(texts.begin(), texts.end());
    // Go sorts a []string where it is.
    if (a[0].type() == Type::strings && !a[0].is_none()) {
        const auto shared = a[0].shared_items();
        for (std::size_t i = 0; i < texts.size(); ++i) { shared[i] = Value::string(std::move(texts[i])); }
        return a[0];
    }
    return Value::strings(std::move(texts));
}

Value listed(Call&, List& a) { return Value::list(a); }

}  // namespace

std::span<const Function> list_functions() {
    static const Function table[] = {
        {"list", "a", true, listed},
        {"tuple", "a", true, listed},
        {"append", "aa", false, pushed},
        {"push", "aa", false, pushed},
        {"mustAppend", "aa", false, pushed},
        {"mustPush", "aa", false, pushed},
        {"prepend", "aa", false, prepended},
        {"mustPrepend", "aa", false, prepended},
        {"first", "a", false, first_of},
        {"mustFirst", "a", false, first_of},
        {"rest", "a", false, rest_of},
        {"mustRest", "a", false, rest_of},
        {"last", "a", false, last_of},
        {"mustLast", "a", false, last_of},
        {"initial", "a", false, initial_of},
        {"mustInitial", "a", false, initial_of},
        {"reverse", "a", false, reversed},
        {"mustReverse", "a", false, reversed},
        {"compact", "a", false, compacted},
        {"mustCompact", "a", false, compacted},
        {"uniq", "a", false, unique},
        {"mustUniq", "a", false, unique},
        {"without", "aa", true, without},
        {"mustWithout", "aa", true, without},
        {"has", "aa", false, has},
        {"mustHas", "aa", false, has},
        {"slice", "aa", true, sliced},
        {"mustSlice", "aa", true, sliced},
        {"concat", "a", true, concatenated},
        {"chunk", "ia", false, chunked},
        {"mustChunk", "ia", false, chunked},
        {"sortAlpha", "a", false, sorted},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
