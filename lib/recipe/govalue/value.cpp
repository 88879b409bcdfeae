// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/value.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/format.hpp"

namespace kmm::recipe::tmpl {

Value Value::boolean(bool b) {
    Value value(Type::boolean);
    value.scalar_.number = b ? 1 : 0;
    return value;
}

Value Value::integer(std::int64_t number, Type type) {
    Value value(type);
    value.scalar_.number = number;
    return value;
}

Value Value::uint(std::uint64_t number) { return integer(static_cast<std::int64_t>(number), Type::uint64); }

Value Value::real(double number) {
    Value value(Type::float64);
    value.scalar_.real = number;
    return value;
}

Value Value::string(std::string text, Type type) {
    Value value(type);
    value.ref_ = std::make_shared<std::string>(std::move(text));
    return value;
}

Value Value::list(List items, Type type) {
    Value value(type);
    value.scalar_.number = static_cast<std::int64_t>(items.size());
    value.ref_ = std::make_shared<List>(std::move(items));
    return value;
}

Value Value::strings(std::vector<std::string> items) {
    List made;
    made.reserve(items.size());
    for (auto& item : items) { made.push_back(string(std::move(item))); }
    return list(std::move(made), Type::strings);
}

Value Value::map(Map members, Type type) {
    Value value(type);
    value.ref_ = std::make_shared<Map>(std::move(members));
    return value;
}

Value Value::files(Map members, bool ends_with_empty) {
    Value made = map(std::move(members), Type::files);
    made.scalar_.number = ends_with_empty ? 1 : 0;
    return made;
}

Value Value::time(Time moment) {
    Value value(Type::time);
    value.ref_ = std::make_shared<Time>(std::move(moment));
    return value;
}

Value Value::record(std::shared_ptr<const Record> record) {
    Value value(Type::record);
    value.ref_ = std::const_pointer_cast<Record>(std::move(record));
    return value;
}

const std::string& Value::text() const noexcept {
    static const std::string none;
    return (type_ == Type::string || type_ == Type::bytes) && ref_ ? *static_cast<const std::string*>(ref_.get())
                                                                   : none;
}

std::span<const Value> Value::items() const noexcept { return shared_items(); }

const Map& Value::members() const noexcept {
    static const Map none;
    return is_map() && ref_ ? *static_cast<const Map*>(ref_.get()) : none;
}

Map* Value::shared_map() const noexcept { return is_map() ? static_cast<Map*>(ref_.get()) : nullptr; }

std::span<Value> Value::shared_items() const noexcept {
    if (!is_list() || !ref_) { return {}; }
    return std::span(*static_cast<List*>(ref_.get())).first(static_cast<std::size_t>(scalar_.number));
}

namespace {

constexpr int k_looked_at_max = 200;

/// Whether `value` holds what `list` shares, or is too large to find out. `left` is how many values may be looked at.
bool may_hold(const Value& value, const Value& list, int& left) {
    if (--left < 0 || value.same_ref(list)) { return true; }
    for (const auto& item : value.items()) {
        if (may_hold(item, list, left)) { return true; }
    }
    return std::any_of(value.members().begin(), value.members().end(),
                       [&](const auto& member) { return may_hold(member.second, list, left); });
}

}  // namespace

Value Value::appended(Value item) const {
    const auto own = items();
    auto* storage = static_cast<List*>(ref_.get());
    int left = k_looked_at_max;
    const bool can_share =
        type_ == Type::list && storage != nullptr && storage->size() == own.size() && !may_hold(item, *this, left);
    if (!can_share) {
        List copy;
        copy.reserve(own.size() + 1);
        copy.assign(own.begin(), own.end());
        copy.push_back(std::move(item));
        return list(std::move(copy));
    }
    storage->push_back(std::move(item));
    Value longer = *this;
    ++longer.scalar_.number;
    return longer;
}

std::uint64_t Value::own_bytes() const noexcept {
    if (ref_.use_count() != 1) { return 0; }
    std::uint64_t bytes = k_held_bytes + text().size() + items().size() * sizeof(Value);
    for (const auto& item : items()) { bytes += item.own_bytes(); }
    for (const auto& [key, member] : members()) { bytes += member_bytes(key.size()) + member.own_bytes(); }
    if (const Record* record = as_record()) {
        bytes += record->text.size();
        for (const auto& field : record->fields) { bytes += sizeof(field) + field.value.own_bytes(); }
    }
    return bytes;
}

const Record* Value::as_record() const noexcept {
    return type_ == Type::record ? static_cast<const Record*>(ref_.get()) : nullptr;
}

const Time& Value::as_time() const noexcept {
    static const Time none;
    return type_ == Type::time && ref_ ? *static_cast<const Time*>(ref_.get()) : none;
}

Value Value::as(Type type) const {
    Value value = *this;
    value.type_ = type;
    return value;
}

const Record::Field* Record::find(std::string_view name) const {
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
    return found == fields.end() ? nullptr : &*found;
}

std::string type_name(const Value& value) {
    switch (value.type()) {
        case Type::invalid:
        case Type::nil: return "<nil>";
        case Type::boolean: return "bool";
        case Type::integer: return "int";
        case Type::int64: return "int64";
        case Type::uint64: return "uint64";
        case Type::uint8: return "uint8";
        case Type::float64: return "float64";
        case Type::string: return "string";
        case Type::bytes: return "[]uint8";
        case Type::list: return "[]interface {}";
        case Type::strings: return "[]string";
        case Type::ints: return "[]int";
        case Type::lists: return "[][]interface {}";
        case Type::versions: return "chartutil.VersionSet";
        case Type::map: return "map[string]interface {}";
        case Type::values: return "chartutil.Values";
        case Type::string_map: return "map[string]string";
        case Type::files: return "engine.files";
        case Type::time: return "time.Time";
        case Type::record: return value.as_record()->type;
    }
    return "";
}

std::string_view kind_name(const Value& value) {
    switch (value.type()) {
        case Type::invalid:
        case Type::nil: return "invalid";
        case Type::boolean: return "bool";
        case Type::integer: return "int";
        case Type::int64: return "int64";
        case Type::uint64: return "uint64";
        case Type::uint8: return "uint8";
        case Type::float64: return "float64";
        case Type::string: return "string";
        case Type::time: return "struct";
        case Type::record: return value.as_record()->pointer ? "ptr" : "struct";
        default: return value.is_map() ? "map" : "slice";
    }
}

Value zero_element(Type container) {
    switch (container) {
        case Type::string_map:
        case Type::strings:
        case Type::versions: return Value::string("");
        case Type::files: return Value::none(Type::bytes);
        case Type::ints: return Value::integer(0);
        case Type::lists: return Value::none(Type::list);
        default: return Value::nil();
    }
}

bool truth(const Value& value) {
    switch (value.type()) {
        case Type::invalid:
        case Type::nil: return false;
        case Type::boolean:
        case Type::integer:
        case Type::int64:
        case Type::uint64:
        case Type::uint8: return value.as_int() != 0;
        case Type::float64: return value.as_real() != 0;
        case Type::string:
        case Type::bytes: return !value.text().empty();
        case Type::time:
        case Type::record: return true;
        default: return value.is_map() ? !value.members().empty() : !value.items().empty();
    }
}

bool empty(const Value& value) { return !truth(value); }

namespace {

constexpr int k_value_depth_max = 500;

void check_depth(int depth) {
    if (depth > k_value_depth_max) {
        throw Fault{"a value is nested too deep, or contains itself", "recipe-too-large", ""};
    }
}

bool equal_at(const Value& a, const Value& b, int depth) {
    check_depth(depth);
    if (a.is_nil() || b.is_nil()) { return a.is_nil() && b.is_nil(); }
    if (a.type() != b.type()) { return false; }
    switch (a.type()) {
        case Type::float64: return a.as_real() == b.as_real();
        case Type::string: return a.text() == b.text();
        case Type::bytes: return a.is_none() == b.is_none() && a.text() == b.text();
        case Type::time:
            return a.as_time().seconds == b.as_time().seconds && a.as_time().nanos == b.as_time().nanos &&
                   a.as_time().offset == b.as_time().offset;
        case Type::record:
            return a.same_ref(b) ||
                   (a.as_record()->type == b.as_record()->type && a.as_record()->text == b.as_record()->text);
        default: break;
    }
    if (a.is_list()) {
        return a.is_none() == b.is_none() &&
               std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                          [&](const Value& x, const Value& y) { return equal_at(x, y, depth + 1); });
    }
    if (a.is_map()) {
        return a.is_none() == b.is_none() && std::equal(a.members().begin(), a.members().end(), b.members().begin(),
                                                        b.members().end(), [&](const auto& x, const auto& y) {
                                                            return x.first == y.first &&
                                                                   equal_at(x.second, y.second, depth + 1);
                                                        });
    }
    return a.as_int() == b.as_int();
}

Value copy_at(const Value& value, Budget* budget, int depth) {
    check_depth(depth);
    const auto ask = [&](std::uint64_t bytes) {
        if (budget != nullptr) { budget->take(bytes); }
    };
    if (value.is_list() && !value.is_none()) {
        List items;
        ask(k_held_bytes + value.items().size() * sizeof(Value));
        items.reserve(value.items().size());
        for (const auto& item : value.items()) { items.push_back(copy_at(item, budget, depth + 1)); }
        return Value::list(std::move(items), value.type());
    }
    if (value.is_map() && !value.is_none()) {
        Map members;
        ask(k_held_bytes);
        for (const auto& [key, member] : value.members()) {
            ask(member_bytes(key.size()));
            members.emplace_hint(members.end(), key, copy_at(member, budget, depth + 1));
        }
        return Value::map(std::move(members), value.type());
    }
    return value;
}

}  // namespace

bool deep_equal(const Value& a, const Value& b) { return equal_at(a, b, 0); }

Value deep_copy(const Value& value, Budget* budget) { return copy_at(value, budget, 0); }

std::string describe(const Value& value) {
    if (value.is_nil()) { return "nil"; }
    constexpr std::size_t k_shown = 80;
    std::string text;
    if (value.is_map()) {
        text = "keys:";
        for (const auto& [key, member] : value.members()) {
            if (text.size() > k_shown) { break; }
            text += " " + key;
        }
    } else if (value.is_list()) {
        text = std::to_string(value.items().size()) + " items";
    } else if (const Record* record = value.as_record()) {
        // Printing one is a Fault where there is a pointer in it.
        text = record->text.empty() ? "fields:" : record->text;
        if (record->text.empty()) {
            for (const auto& field : record->fields) { text += " " + field.name; }
        }
    } else {
        text = value.is_text() ? quote_text(value.text()) : print_value(value);
    }
    if (text.size() > k_shown) { text = text.substr(0, k_shown) + "..."; }
    return type_name(value) + " " + base::escape(text);
}

}  // namespace kmm::recipe::tmpl
