// SPDX-License-Identifier: Apache-2.0
// The values that templates compute with: Go's types as far as Helm lets templates see them, kept apart as Go keeps
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kmm::recipe::tmpl {

/// A Go type, named as `printf "%T"` names it.
enum class Type : std::uint8_t {
    invalid,     ///< no value at all: what a pipeline leaves that came out nil
    nil,         ///< an interface that holds nothing, as a missing key of a map is
    boolean,     ///< bool
    integer,     ///< int
    int64,       ///< int64
    uint64,      ///< uint64
    uint8,       ///< uint8: one byte of a text or of `bytes`
    float64,     ///< float64
    string,      ///< string
    bytes,       ///< []uint8
    list,        ///< []interface {}
    strings,     ///< []string
    ints,        ///< []int
    lists,       ///< [][]interface {}
    versions,    ///< chartutil.VersionSet
    map,         ///< map[string]interface {}
    values,      ///< chartutil.Values, a map[string]interface {} with methods
    string_map,  ///< map[string]string
    files,       ///< engine.files, a map[string][]uint8 with methods
    time,        ///< time.Time
    record,      ///< a struct or a pointer to one, see Record
};

class Budget;
class Value;
struct Record;
using List = std::vector<Value>;
using Map = std::map<std::string, Value, std::less<>>;

/// A time with its offset from UTC.
struct Time {
    std::int64_t seconds = 0;  ///< since 1970
    std::int64_t nanos = 0;
    std::int32_t offset = 0;  ///< seconds east of UTC
    std::string zone = "UTC";
};

/// One value. Copies of lists, maps and records share what they hold, as in Go: `set` on one is seen through all.
class Value {
public:
    Value() = default;  ///< invalid
    [[nodiscard]] static Value nil() { return Value(Type::nil); }
    [[nodiscard]] static Value boolean(bool b);
    [[nodiscard]] static Value integer(std::int64_t number, Type type = Type::integer);
    [[nodiscard]] static Value uint(std::uint64_t number);
    [[nodiscard]] static Value real(double number);
    [[nodiscard]] static Value string(std::string text, Type type = Type::string);
    /// `type` is list, strings, ints, lists or versions.
    [[nodiscard]] static Value list(List items, Type type = Type::list);
    /// A nil slice or map: empty, and null in JSON.
    [[nodiscard]] static Value none(Type type) { return Value(type); }
    [[nodiscard]] static Value strings(std::vector<std::string> items);
    /// `type` is map, values, string_map or files.
    [[nodiscard]] static Value map(Map members, Type type = Type::map);
    /// .Files; `ends_with_empty` is whether Lines has an empty line after the last line feed, as in Helm 3.7.
    [[nodiscard]] static Value files(Map members, bool ends_with_empty);
    [[nodiscard]] static Value time(Time moment);
    [[nodiscard]] static Value record(std::shared_ptr<const Record> record);

    [[nodiscard]] Type type() const noexcept { return type_; }
    [[nodiscard]] bool is_nil() const noexcept { return type_ == Type::invalid || type_ == Type::nil; }
    [[nodiscard]] bool is_map() const noexcept { return type_ >= Type::map && type_ <= Type::files; }
    [[nodiscard]] bool is_list() const noexcept { return type_ >= Type::list && type_ <= Type::versions; }
    [[nodiscard]] bool is_int() const noexcept { return type_ == Type::integer || type_ == Type::int64; }
    [[nodiscard]] bool is_uint() const noexcept { return type_ == Type::uint64 || type_ == Type::uint8; }
    [[nodiscard]] bool is_text() const noexcept { return type_ == Type::string; }
    /// A slice or map that was never made.
    [[nodiscard]] bool is_none() const noexcept { return ref_ == nullptr; }

    [[nodiscard]] bool as_bool() const noexcept { return scalar_.number != 0; }
    [[nodiscard]] std::int64_t as_int() const noexcept { return scalar_.number; }
    [[nodiscard]] std::uint64_t as_uint() const noexcept { return static_cast<std::uint64_t>(scalar_.number); }
    [[nodiscard]] double as_real() const noexcept { return scalar_.real; }
    /// The text of `string` and `bytes`; empty for others.
    [[nodiscard]] const std::string& text() const noexcept;
    /// Items of a list; empty for others. Valid until the next appended() of this list or of one that began as it.
    [[nodiscard]] std::span<const Value> items() const noexcept;
    /// Members of a map; empty for others.
    [[nodiscard]] const Map& members() const noexcept;
    /// The members to change; nullptr for a nil map.
    [[nodiscard]] Map* shared_map() const noexcept;
    /// The items to change; empty for a nil slice.
    [[nodiscard]] std::span<Value> shared_items() const noexcept;
    /// A list (type `list`) of the items and one more; the list itself stays as it is. Amortised O(1): both share their
    /// items, as slices of Go do. Lists of other types, and items that hold the list again, are copied.
    [[nodiscard]] Value appended(Value item) const;
    [[nodiscard]] const Record* as_record() const noexcept;
    [[nodiscard]] const Time& as_time() const noexcept;
    /// The same members or items seen as another type of the same shape.
    [[nodiscard]] Value as(Type type) const;
    /// Bytes of what this value alone holds, down to the last item; 0 for what is shared with another value, which has
    /// made it.
    [[nodiscard]] std::uint64_t own_bytes() const noexcept;
    /// Whether both share what they hold.
    [[nodiscard]] bool same_ref(const Value& other) const noexcept { return ref_ == other.ref_; }
    /// invalid in place of nil: what Go does with an interface at the end of a pipeline.
    [[nodiscard]] Value dug() const { return type_ == Type::nil ? Value() : *this; }

private:
    explicit Value(Type type) : type_(type) {}
    Type type_ = Type::invalid;
    union {
        std::int64_t number = 0;
        double real;
    } scalar_;
    std::shared_ptr<void> ref_;
};

/// What a text of so many bytes takes in a list, and a member of a map without its value.
constexpr std::uint64_t k_held_bytes = 64;  ///< what a Value shares, without its items and bytes
constexpr std::uint64_t text_bytes(std::size_t size) { return sizeof(Value) + k_held_bytes + size; }
constexpr std::uint64_t member_bytes(std::size_t key_size) {
    return sizeof(Map::value_type) + 4 * sizeof(void*) + key_size;
}

/// A function of a record. `parameters` has a letter for each: s string, i int, b bool, f float64, a anything.
struct Method {
    std::string name;
    std::string parameters;
    std::function<Value(const List&)> call;
};

/// A Go struct, or a pointer to one.
struct Record {
    struct Field {
        std::string name;  ///< as templates write it
        std::string json;  ///< key in JSON and YAML; "" leaves it out
        bool omit_empty = false;
        Value value;
    };
    std::string type;                     ///< "*semver.Version"
    bool pointer = false;                 ///< kind "ptr" in place of "struct"
    std::vector<Field> fields;            ///< in the order of the declaration
    std::vector<Method> methods;
    bool has_text = false;                ///< has a String method
    std::string text;                     ///< what String gives
    std::size_t embedded = 0;             ///< so many fields in front are those of an embedded struct
    bool text_by_address = false;         ///< only the pointer has it: `{{ . }}` prints text, an argument does not
    [[nodiscard]] const Field* find(std::string_view name) const;
};

/// Stands where a value belongs that nobody has given. To read it is an error, "unknown-fact", that says `what` is
/// missing and gives `hint`.
[[nodiscard]] Value unknown_value(std::string what, std::string hint);
[[nodiscard]] bool is_unknown(const Value& value) noexcept;
[[nodiscard]] bool is_unknown(const Record& record) noexcept;

/// What a function of templates says when it fails; the executor adds the place.
struct Fault {
    std::string message;
    std::string code = "template-error";
    std::string hint = "";
};

/// Throws Fault "unknown-fact" for unknown_value.
void require_known(const Record& record);

/// As `printf "%T"`: "int64", "map[string]interface {}", "<nil>".
[[nodiscard]] std::string type_name(const Value& value);
/// As reflect.Kind: "int64", "slice", "map", "invalid".
[[nodiscard]] std::string_view kind_name(const Value& value);
/// The types of the elements, as Go names them in faults.
[[nodiscard]] Value zero_element(Type container);
/// Go's truth: not the zero value of its type, not empty.
[[nodiscard]] bool truth(const Value& value);
/// Sprig's "empty".
[[nodiscard]] bool empty(const Value& value);
/// reflect.DeepEqual: types count.
[[nodiscard]] bool deep_equal(const Value& a, const Value& b);
/// Maps and lists copied all the way down. Asks `budget` before each, if there is one.
[[nodiscard]] Value deep_copy(const Value& value, Budget* budget = nullptr);
/// A short form for messages: type and value, at most about 80 bytes.
[[nodiscard]] std::string describe(const Value& value);

}  // namespace kmm::recipe::tmpl
