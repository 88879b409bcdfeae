// SPDX-License-Identifier: Apache-2.0
// Source: apiextensions-apiserver, pkg/apiserver/schema (pruning, defaulting of nulls, lists of the type map) and
// pkg/apiserver/validation.
#include "api/schema_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "api/repeated_parts.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

/// Where a value stands. Made into a text only where one is needed: fleets have millions of values, and few faults.
struct SchemaPlace {
    const SchemaPlace* up = nullptr;
    std::string_view member = {};  ///< of an object
    std::string_view key = {};     ///< of a map
    std::size_t index = 0;         ///< of a list
    enum class Step { root, member, key, index } step = Step::root;

    [[nodiscard]] std::string text() const {
        if (step == Step::root) { return {}; }
        std::string path = up->text();
        if (step == Step::member) { return path.empty() ? std::string(member) : path.append(".").append(member); }
        return step == Step::key ? path.append("[").append(key).append("]") : path.append(fmt::format("[{}]", index));
    }
};

/// Doubles hold whole numbers up to here, and an API server takes 1.0 for 1 as far.
constexpr double k_whole_max = 9007199254740991.0;
constexpr std::int64_t k_int32_max = 2147483647;

std::string found_text(const Scope& scope, const value::Node& node) {
    return base::escape(scope.document.text_of(node));
}

class SchemaCheck {
public:
    explicit SchemaCheck(Scope& scope) : scope_(scope) {}

    void check_root(const value::Node& root, const schema::Kind& kind) {
        const bool is_of_operator = kind.kind == "NodeModulesConfig" || kind.kind == "ModuleImagesConfig" ||
                                    kind.kind == "ModuleBuildSignConfig";
        subject_ = fmt::format("{} {}", kind.kind, name_of(root));
        by_operator_ = is_of_operator;
        if (kind.since > 0) { mark({kind.since}, SchemaPlace{}, root.mark(), ReleaseMark::What::kind); }
        const SchemaPlace place;
        std::vector<std::string_view> known{"apiVersion", "kind", "metadata"};
        check_members(root, kind.root, place, known,
                      [&](const value::Member& member, const schema::Member& of, const SchemaPlace& inner) {
                          only_unknown_ = member.key == "status" && !is_of_operator;
                          check(member.value, *of.type, inner, of);
                          only_unknown_ = false;
                      });
    }

    void check(const value::Node& node, const schema::Type& type, const SchemaPlace& place,
               const schema::Member& owner) {
        if (scope_.repeats != nullptr && scope_.repeats->knows(scope_.repeats->number(node))) {
            return;
        }  // nothing is in it, and nothing was wrong with it
        switch (type.form) {
            case schema::Form::any:
            case schema::Form::empty:
            case schema::Form::object: return check_mapping(node, type, place, owner);
            case schema::Form::map: return check_map(node, type, place, owner);
            case schema::Form::list: return check_list(node, type, place, owner);
            default: return check_scalar(node, type, place, owner);
        }
    }

private:
    [[nodiscard]] std::string name_of(const value::Node& root) const {
        const std::string name = root.get_string({"metadata", "name"});
        std::string ns = root.get_string({"metadata", "namespace"});
        if (ns.empty() && scope_.kind->is_namespaced) { ns = scope_.given_namespace.value_or(""); }
        return ns.empty() ? name : ns + "/" + name;
    }

    void wrong_type(const value::Node& node, const SchemaPlace& place, std::string_view expected,
                    const schema::Member& owner, std::string hint = "") {
        if (only_unknown_) { return; }
        scope_.wrong_type(node, place.text(), expected, hint.empty() ? owner.hint : std::move(hint));
    }

    void bad_value(const value::Node& node, const SchemaPlace& place, const std::string& what,
                   const schema::Member& owner, std::string hint = "") {
        if (only_unknown_) { return; }
        scope_.fault(owner.code, fmt::format("{}: {}", place.text(), what), node.mark(),
                     hint.empty() ? owner.hint : std::move(hint));
    }

    void record(const value::Node& node, const SchemaPlace& place) {
        if (scope_.places != nullptr) { scope_.places->emplace(place.text(), scope_.document.position(node.mark())); }
    }

    void mark(const schema::ReleaseSpan& span, const SchemaPlace& place, value::Mark mark, ReleaseMark::What what) {
        if (scope_.release_marks == nullptr || only_unknown_) { return; }
        auto& marks = *scope_.release_marks;
        if (by_operator_ && has_operator_mark(marks, what, span.since, span.until)) { return; }
        marks.push_back(
            {subject_, place.text(), scope_.document.position(mark), span.since, span.until, what, by_operator_});
    }

    template <typename Each>
    void check_members(const value::Node& node, const schema::Type& type, const SchemaPlace& place,
                       std::vector<std::string_view>& others, const Each& each) {
        for (const auto& member : node.members()) {
            const schema::Member* of = type.find(member.key);
            if (of == nullptr) {
                if (std::find(others.begin(), others.end(), member.key) != others.end()) { continue; }
                for (const auto& one : type.members) { others.push_back(one.name); }
                scope_.unknown_field(member, SchemaPlace{&place, member.key, {}, 0, SchemaPlace::Step::member}.text(),
                                     others, hint_of_indentation(node, member.key, type, place));
                others.resize(others.size() - type.members.size());
                continue;
            }
            if (member.value.is_null()) { continue; }  // as if it were not there
            const SchemaPlace inner{&place, of->name, {}, 0, SchemaPlace::Step::member};
            if (!of->known.is_all()) { mark(of->known, inner, member.value.mark(), ReleaseMark::What::field); }
            record(member.value, inner);
            around_.push_back({&type, &place});
            each(member, *of, inner);
            around_.pop_back();
        }
        for (const auto& one : type.members) {
            if (one.required) { check_required(node, one, place); }
        }
        for (const auto& rule : type.one_of) { check_one_of(node, rule, place); }
    }

    /// Whether `field` may be an entry of `map`, which has none in `node`.
    [[nodiscard]] static bool is_left_empty(const value::Node& node, const schema::Member& map,
                                            std::string_view field) {
        const value::Node* found = node.find(map.name);
        return map.type->form == schema::Form::map && found != nullptr && found->is_null() &&
               field.find_first_of("./") != std::string_view::npos;
    }

    /// Where a field is known that stands in the wrong mapping, mostly for some blanks: within one of the fields there,
    /// or in a mapping around it; "" if nowhere near.
    [[nodiscard]] std::string hint_of_indentation(const value::Node& node, std::string_view field,
                                                  const schema::Type& type, const SchemaPlace& place) const {
        std::vector<std::string> within;
        for (const auto& one : type.members) {
            if (is_left_empty(node, one, field)) {
                within.push_back(SchemaPlace{&place, one.name, {}, 0, SchemaPlace::Step::member}.text());
            }
            if (one.name == "status" || one.type->form != schema::Form::object) { continue; }
            const SchemaPlace inner{&place, one.name, {}, 0, SchemaPlace::Step::member};
            if (one.type->find(field) != nullptr) { within.push_back(inner.text()); }
        }
        std::vector<std::string> hints;
        for (auto around = around_.rbegin(); around != around_.rend() && hints.empty(); ++around) {
            if (around->type->find(field) == nullptr) { continue; }
            const std::string path = around->place->text();
            const std::string top = scope_.kind == nullptr ? "at the top" : "beside spec";
            hints.push_back(fmt::format("{}: indent it less", path.empty() ? top : "into " + path));
        }
        if (within.size() == 1) { hints.push_back(fmt::format("into {}: indent it more", within.front())); }
        return hints.empty() ? "" : "it belongs " + base::join(hints, "; or ");
    }

    void check_required(const value::Node& node, const schema::Member& member, const SchemaPlace& place) {
        const value::Node* found = node.find(member.name);
        if ((found != nullptr && !found->is_null()) || only_unknown_) { return; }
        const SchemaPlace inner{&place, member.name, {}, 0, SchemaPlace::Step::member};
        // What a release brought is required since then.
        const bool is_new = member.known.since != 0 && member.known.since == member.required_in.since;
        if (member.required_in.until != schema::ReleaseSpan::k_open || (is_new && scope_.release_marks != nullptr)) {
            mark(member.required_in, inner, node.mark(), ReleaseMark::What::missing);
        } else {
            scope_.fault("missing-field", fmt::format("required field {} is missing", inner.text()), node.mark(),
                         member.hint);
        }
    }

    void check_one_of(const value::Node& node, const schema::Type::OneOf& rule, const SchemaPlace& place) {
        std::vector<std::string> set;
        const value::Node* first = nullptr;
        for (const auto& name : rule.members) {
            const value::Node* found = node.find(name);
            if (found == nullptr || found->is_null()) { continue; }
            if (first == nullptr) { first = found; }
            set.push_back(SchemaPlace{&place, name, {}, 0, SchemaPlace::Step::member}.text());
        }
        if (set.size() < 2 || only_unknown_) { return; }
        scope_.fault(rule.code, fmt::format("{} are mutually exclusive, found both", base::join(set, " and ")),
                     first->mark(), "keep one of them");
    }

    /// What a text in the place of a mapping is meant as: "moduleName:drv", where the blank is missing, or a label
    /// as kubectl takes it, "role=worker"; "" if it is neither.
    [[nodiscard]] std::string hint_of_entry(const value::Node& node, const schema::Type& type) const {
        constexpr std::size_t k_length_max = 80;
        if (!node.is_string() || scope_.secret || node.text().size() > k_length_max) { return ""; }
        const std::string_view text = node.text();
        const std::size_t at = text.find(type.form == schema::Form::map ? '=' : ':');
        const auto is_odd = [](char c) { return c <= ' ' || c > '~'; };  // among them the no-break space
        if (at == std::string_view::npos || std::any_of(text.begin(), text.end(), is_odd)) { return ""; }
        const std::string_view key = text.substr(0, at), value = text.substr(at + 1);
        if (type.form != schema::Form::map && type.find(key) == nullptr) { return ""; }
        return value.empty() ? fmt::format("write {}: \"\"", base::escape(key))
                             : fmt::format("write {}: {}", base::escape(key), base::escape(value));
    }

    void check_mapping(const value::Node& node, const schema::Type& type, const SchemaPlace& place,
                       const schema::Member& owner) {
        if (!node.is_mapping()) {
            const bool is_reference = type.members.size() == 1 && type.members.front().name == "name";
            const bool is_name = is_reference && node.is_string() && !node.text().empty();
            const bool is_entry = place.step == SchemaPlace::Step::index;
            return wrong_type(
                node, place, "mapping", owner,
                !is_name   ? hint_of_entry(node, type)
                : is_entry ? fmt::format("write - name: {}", found_text(scope_, node))
                           : fmt::format("write {}: {{name: {}}}", owner.name, found_text(scope_, node)));
        }
        if (type.form == schema::Form::any) { return; }
        std::vector<std::string_view> none;
        check_members(node, type, place, none,
                      [&](const value::Member& member, const schema::Member& of, const SchemaPlace& inner) {
                          check(member.value, *of.type, inner, of);
                      });
    }

    void check_map(const value::Node& node, const schema::Type& type, const SchemaPlace& place,
                   const schema::Member& owner) {
        if (!node.is_mapping()) { return wrong_type(node, place, "mapping", owner, hint_of_entry(node, type)); }
        for (const auto& member : node.members()) {
            const SchemaPlace inner{&place, {}, member.key, 0, SchemaPlace::Step::key};
            if (member.value.is_null()) {
                note_null(member, inner);
                continue;
            }
            record(member.value, inner);
            if (type.of->form == schema::Form::string && !member.value.is_string()) {
                wrong_type(member.value, inner, "string", owner, selector_hint(owner.name, place.text(), member.key));
            } else {
                check(member.value, *type.of, inner, owner);
            }
        }
    }

    /// An API server leaves it out without a word, and a selector without it means other nodes.
    void note_null(const value::Member& member, const SchemaPlace& place) {
        if (only_unknown_) { return; }
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "null-dropped";
        finding.message = fmt::format("{}: the API server drops an entry without a value", base::escape(place.text()));
        finding.position = scope_.document.position(member.key_mark);
        finding.hint = fmt::format("write {}: \"\" for an empty value, or remove the line", base::escape(member.key));
        scope_.diagnostics.push_back(std::move(finding));
    }

    void check_list(const value::Node& node, const schema::Type& type, const SchemaPlace& place,
                    const schema::Member& owner) {
        if (!node.is_sequence()) { return wrong_type(node, place, "list", owner); }
        const auto& items = node.items();
        if (items.size() < type.least) {
            bad_value(node, place,
                      fmt::format("expected at least {}, found {}",
                                  type.least == 1 ? "one entry" : fmt::format("{} entries", type.least),
                                  items.empty() ? "none" : std::to_string(items.size())),
                      owner);
        } else if (items.size() > type.most) {
            bad_value(node, place, fmt::format("expected at most {} entries, found {}", type.most, items.size()), owner,
                      "remove the rest");
        }
        for (std::size_t i = 0; i < items.size(); ++i) {
            const SchemaPlace inner{&place, {}, {}, i, SchemaPlace::Step::index};
            record(items[i], inner);
            check(items[i], *type.of, inner, owner);
        }
        if (!type.keys.empty()) { check_keys(items, type, place, owner); }
    }

    void check_keys(const std::vector<value::Node>& items, const schema::Type& type, const SchemaPlace& place,
                    const schema::Member& owner) {
        std::set<std::vector<std::string>> seen;
        for (std::size_t i = 0; i < items.size(); ++i) {
            std::vector<std::string> keys;
            for (const auto& key : type.keys) { keys.push_back(items[i].get_string({key})); }
            if (std::find(keys.begin(), keys.end(), "") != keys.end() || seen.insert(keys).second) { continue; }
            const SchemaPlace inner{&place, {}, {}, i, SchemaPlace::Step::index};
            bad_value(items[i], inner,
                      fmt::format("expected each {} once, found \"{}\" again", base::join(type.keys, "/"),
                                  base::escape(base::join(keys, "/"))),
                      owner, "remove one of them");
        }
    }

    void check_scalar(const value::Node& node, const schema::Type& type, const SchemaPlace& place,
                      const schema::Member& owner) {
        switch (type.form) {
            case schema::Form::boolean:
                if (node.kind() != value::Kind::boolean) { wrong_type(node, place, "boolean", owner); }
                return;
            case schema::Form::integer:
            case schema::Form::int32:
            case schema::Form::int64: return check_integer(node, type.form, place, owner);
            case schema::Form::quantity: return check_quantity(node, place, owner);
            default: break;
        }
        if (!node.is_string()) { return wrong_type(node, place, "string", owner); }
        if (type.form == schema::Form::choice &&
            std::find(type.words.begin(), type.words.end(), node.text()) == type.words.end()) {
            const auto near = base::nearest(node.text(), type.words);
            bad_value(
                node, place,
                fmt::format("expected one of {}, found \"{}\"", base::join(type.words, ", "), found_text(scope_, node)),
                owner, near ? fmt::format("did you mean {}?", *near) : "");
        } else if (type.form == schema::Form::subdomain && !has_subdomain_form(node.text())) {
            bad_value(node, place, fmt::format("expected a DNS subdomain, found \"{}\"", found_text(scope_, node)),
                      owner, "lower-case letters, digits, '-' and '.', a letter or digit at both ends");
        } else if (type.form == schema::Form::time && !base::parse_rfc3339(node.text())) {
            bad_value(
                node, place,
                fmt::format("expected a time such as 2026-01-31T12:00:00Z, found \"{}\"", found_text(scope_, node)),
                owner);
        }
    }

    void check_integer(const value::Node& node, schema::Form form, const SchemaPlace& place,
                       const schema::Member& owner) {
        const auto number = whole_number(node);
        if (!number) { return wrong_type(node, place, "integer", owner); }
        const bool fits = *number <= k_int32_max && *number >= -k_int32_max - 1;
        if (form != schema::Form::int32 || only_unknown_ || fits) { return; }
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "bad-value";
        finding.message =
            fmt::format("{}: expected an integer of 32 bits, found {}", place.text(), found_text(scope_, node));
        finding.position = scope_.document.position(node.mark());
        finding.hint = "the API server admits it, and KMM cannot read the object";
        scope_.diagnostics.push_back(std::move(finding));
    }

    void check_quantity(const value::Node& node, const SchemaPlace& place, const schema::Member& owner) {
        if (whole_number(node) || (node.is_string() && is_quantity(node.text()))) { return; }
        wrong_type(node, place, "quantity", owner,
                   node.kind() == value::Kind::floating
                       ? fmt::format("the API server takes whole numbers and strings: \"{}\"", found_text(scope_, node))
                   : node.is_string()
                       ? "write a number and one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, without a blank: 500m, 2Gi"
                       : "");
    }

    /// As the pattern has it, which knows no length.
    static bool has_subdomain_form(std::string_view text) {
        const auto is_alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
        for (const auto part : base::split(text, '.')) {
            if (part.empty() || !is_alnum(part.front()) || !is_alnum(part.back())) { return false; }
            if (!std::all_of(part.begin(), part.end(), [&](char c) { return is_alnum(c) || c == '-'; })) {
                return false;
            }
        }
        return true;
    }

    /// A mapping, and what it is.
    struct Around {
        const schema::Type* type;
        const SchemaPlace* place;
    };

    Scope& scope_;
    std::vector<Around> around_;  ///< what the value is in that is looked at, outermost first
    std::string subject_;
    bool by_operator_ = false;
    bool only_unknown_ = false;
};

}  // namespace

std::optional<std::int64_t> whole_number(const value::Node& node) {
    if (node.kind() == value::Kind::integer) { return node.as_int(); }
    if (node.kind() != value::Kind::floating) { return std::nullopt; }
    const double number = std::strtod(node.text().c_str(), nullptr);
    const bool is_whole = std::abs(number) <= k_whole_max && std::floor(number) == number;
    return is_whole ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

void check_object(Scope& scope, const value::Node& root) {
    if (scope.kind != nullptr && root.is_mapping()) { SchemaCheck(scope).check_root(root, *scope.kind); }
    scope.checked = true;
}

void check_part(Scope& scope, const value::Node& node, std::string_view type) {
    const schema::Type* found = schema::of_kmm().find_type(type);
    if (found == nullptr) { throw bug(fmt::format("kmm.schema has no type {}", type)); }
    const schema::Member owner{std::string(type), found, {}};
    SchemaCheck(scope).check(node, *found, SchemaPlace{}, owner);
    scope.checked = true;
}

}  // namespace kmm::api
