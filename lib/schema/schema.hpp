// SPDX-License-Identifier: Apache-2.0
// What the definitions of KMM's releases accept, as data.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kmm::schema {

/// What a value of a type is.
enum class Form {
    string,
    boolean,
    integer,
    int32,
    int64,
    quantity,
    time,
    subdomain,
    any,
    empty,
    choice,
    object,
    list,
    map
};

/// Minor versions of KMM v2: from `since` on, and before `until`.
struct ReleaseSpan {
    static constexpr unsigned k_open = std::numeric_limits<unsigned>::max();
    unsigned since = 0, until = k_open;
    [[nodiscard]] bool is_all() const noexcept { return since == 0 && until == k_open; }
};

struct Type;

/// A member of an object.
struct Member {
    std::string name;
    const Type* type = nullptr;
    ReleaseSpan known;
    bool required = false;
    ReleaseSpan required_in = {};  ///< if it is required
    std::string hint = {};         ///< how to get out of a fault of it, "" for the usual one
    std::string code = "bad-value";  ///< of a value that does not fit its type
};

/// What a value may be.
struct Type {
    /// At most one of `members` may be set.
    struct OneOf {
        std::string code;
        std::vector<std::string> members;
    };

    Form form = Form::object;
    std::string name;
    std::vector<Member> members = {};  ///< of an object
    std::vector<OneOf> one_of = {};
    const Type* of = nullptr;          ///< of the entries of a list or map
    std::size_t least = 0, most = std::numeric_limits<std::size_t>::max();  ///< entries of a list
    std::vector<std::string> keys = {};      ///< of a list whose entries differ in them
    std::vector<std::string> words = {};     ///< of a choice

    [[nodiscard]] const Member* find(std::string_view member) const noexcept;
};

/// A kind of KMM.
struct Kind {
    std::string kind, api_version;
    bool is_namespaced = false;
    unsigned since = 0;  ///< minor version of KMM v2
    Type root;  ///< spec and status
};

/// All kinds and types. Pointers into it live as long as it does.
class Schema {
public:
    /// Reads the text of kmm.schema. Errors: a bug for a text that is not one. O(text).
    explicit Schema(std::string_view text);
    Schema(const Schema&) = delete;
    Schema& operator=(const Schema&) = delete;

    /// nullptr if KMM has no such kind.
    [[nodiscard]] const Kind* find_kind(std::string_view kind, std::string_view api_version) const noexcept;
    /// nullptr if no type has the name.
    [[nodiscard]] const Type* find_type(std::string_view name) const noexcept;

private:
    const Type* type_named(std::string_view name);
    void add_members(Type& type, std::string_view line);
    void add_line(Type& type, std::string_view line);

    std::map<std::string, Type, std::less<>> types_;
    std::deque<Kind> kinds_;
};

/// The text of kmm.schema.
extern const std::string_view k_text;
/// The schema of that text, read with the first call.
[[nodiscard]] const Schema& of_kmm();

}  // namespace kmm::schema
