// SPDX-License-Identifier: Apache-2.0
// The strict reader of one mapping, for decoders of this room, of recipes and of the operator's configuration.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/schema.hpp"
#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

class RepeatedParts;

/// How keys are compared. Go's JSON decoder, which KMM's worker reads its configuration with, takes any case (facts:
/// KMM 7.1); the API server does not.
enum class KeyCase { exact, any };

/// Where findings go and where places are recorded. Passed by reference down the decoders of one document.
struct Scope {
    const value::Document& document;
    Diagnostics& diagnostics;
    Places* places = nullptr;  ///< null: places are not recorded
    bool secret = false;       ///< values are never quoted in messages
    KeyCase key_case = KeyCase::exact;
    std::optional<std::string_view> given_namespace = std::nullopt;  ///< see decode
    const schema::Kind* kind = nullptr;  ///< of the object that is read; null: of a kind that KMM does not have
    std::vector<ReleaseMark>* release_marks = nullptr;  ///< null: none is recorded
    bool homeless = false;  ///< the object is of a kind of Kubernetes' own, and in no namespace: it is left out
    bool checked = false;  ///< check_object has reported all faults: readers take what fits and say nothing
    RepeatedParts* repeats = nullptr;     ///< parts of a stream that were decoded before; null: none
    TextPool* texts = nullptr;            ///< shares texts of labels and annotations; null: each has its own
    std::vector<std::string>* misread =
        nullptr;  ///< gets the path of every value of a wrong type; null: none is recorded

    /// Appends an error at `mark`.
    void fault(std::string code, std::string message, value::Mark mark, std::string hint = "") const;
    /// Appends wrong-type, "PATH: expected X, found Y"; without a hint that of the types. The value is misread.
    void wrong_type(const value::Node& found, std::string_view path, std::string_view expected,
                    std::string hint = "") const;
    /// Appends unknown-field; the hint is the nearest of `known`, else `other_hint`.
    void unknown_field(const value::Member& member, std::string_view path, const std::vector<std::string_view>& known,
                       std::string other_hint = "") const;
};

/// KMM's selectors are maps of labels; for a member that belongs into those of Kubernetes' own kinds, what to write;
/// else "".
[[nodiscard]] std::string selector_hint(std::string_view field, const std::string& path, std::string_view key);
/// The number of an integer, or of a number without a fraction, which an API server takes for one.
[[nodiscard]] std::optional<std::int64_t> whole_number(const value::Node& node);

enum class Need { optional, required };

/// Reads the members of one mapping by name. Every getter makes its field a known one; `done` reports the rest as
/// unknown fields. null counts as absent, as it does for the API server.
class Fields {
public:
    /// `path` is the field path for messages, "" at the root. A node that is neither mapping nor null is reported.
    Fields(Scope& scope, const value::Node& node, std::string path);

    /// The value, nullptr if absent or null. Reports missing-field if it is required.
    const value::Node* get(std::string_view key, Need need = Need::optional);
    std::string string(std::string_view key, Need need = Need::optional);
    bool boolean(std::string_view key, Need need = Need::optional);
    std::optional<std::int64_t> integer(std::string_view key);
    std::optional<std::vector<std::string>> strings(std::string_view key, Need need = Need::optional);
    /// A mapping of strings; all are checked, those whose key has `part` in it are returned.
    Labels string_map(std::string_view key, Need need = Need::optional, std::string_view part = "");
    /// The string at `key`.name, as in secret references; unknown fields beside it are reported.
    std::string name_of(std::string_view key, Need need = Need::optional, Need name_need = Need::optional);
    /// A nested mapping; nullopt if absent or no mapping (which is reported).
    std::optional<Fields> child(std::string_view key, Need need = Need::optional);
    /// The items of a list, each with its own path; empty if absent or no list (which is reported).
    struct Item {
        const value::Node* node;
        std::string path;
    };
    std::vector<Item> items(std::string_view key, Need need = Need::optional);
    /// Fields that exist in the API but that nothing here reads.
    void allow(std::initializer_list<std::string_view> keys);
    void allow(const std::vector<std::string_view>& keys);
    /// Reports every member that no getter asked for, and names that stand there twice in other case.
    void done();

    [[nodiscard]] std::string path_of(std::string_view key) const;
    [[nodiscard]] const value::Node& node() const noexcept { return *node_; }
    [[nodiscard]] Scope& scope() const noexcept { return *scope_; }
    /// Place of the member's value; the mapping's own place if the member is absent.
    [[nodiscard]] Position position_of(std::string_view key) const;
    void wrong_type(const value::Node& found, std::string_view path, std::string_view expected,
                    std::string hint = "") const {
        if (!scope_->checked) { scope_->wrong_type(found, path, expected, std::move(hint)); }
    }

private:
    [[nodiscard]] bool records_places() const noexcept { return scope_->places != nullptr && !scope_->checked; }
    [[nodiscard]] bool same_key(std::string_view left, std::string_view right) const;
    [[nodiscard]] const value::Member* find_member(std::string_view key) const;

    Scope* scope_;
    const value::Node* node_;
    std::string path_;
    std::vector<std::string_view> known_;
};

}  // namespace kmm::api
