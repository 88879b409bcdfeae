// SPDX-License-Identifier: Apache-2.0
// Values that nobody has given.
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

namespace {
constexpr std::string_view k_unknown_type = "kmm.unknown";
}  // namespace

Value unknown_value(std::string what, std::string hint) {
    auto record = std::make_shared<Record>();
    record->type = k_unknown_type;
    record->text = std::move(what);
    record->fields = {{"hint", "", false, Value::string(std::move(hint))}};
    return Value::record(std::move(record));
}

bool is_unknown(const Record& record) noexcept { return record.type == k_unknown_type; }
bool is_unknown(const Value& value) noexcept { return value.type() == Type::record && is_unknown(*value.as_record()); }

void require_known(const Record& record) {
    if (is_unknown(record)) {
        throw Fault{fmt::format("{} is not known", record.text), "unknown-fact", record.fields[0].value.text()};
    }
}

}  // namespace kmm::recipe::tmpl
