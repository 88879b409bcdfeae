// SPDX-License-Identifier: Apache-2.0
#include "api/fields.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/repeated_parts.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

constexpr std::size_t k_shown_length_max = 40;

/// A scalar's text as it was written. Long text is cut.
std::string shown_text(const value::Document& document, const value::Node& node) {
    std::string shown = base::escape(document.text_of(node));
    if (shown.size() > k_shown_length_max) { shown = shown.substr(0, k_shown_length_max) + "..."; }
    return shown;
}

/// "number 1.5", "list": what stands there, for messages.
std::string describe(const value::Document& document, const value::Node& node) {
    const std::string_view kind = value::kind_name(node.kind());
    if (node.text().empty()) { return std::string(kind); }
    const std::string shown = shown_text(document, node);
    return node.is_string() ? fmt::format("string \"{}\"", shown) : fmt::format("{} {}", kind, shown);
}

/// What a text may be meant as where another type is expected; "" if that cannot be said.
std::string hint_of_text(std::string_view text, std::string_view expected) {
    if (expected == "boolean" && (text == "true" || text == "false")) {
        return fmt::format("write {} without quotes", text);
    }
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    if (expected == "integer" && digits) { return fmt::format("write {} without quotes", text); }
    if (expected != "mapping" || text.size() > k_shown_length_max) { return ""; }
    constexpr std::string_view k_no_break_space = "\xC2\xA0";
    if (text.find(k_no_break_space) != std::string_view::npos) {
        return "there is a no-break space (U+00A0) in it: write a plain blank";
    }
    return "";
}

/// Names that fields have elsewhere, or had in earlier releases.
std::string_view usual_name(std::string_view key) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> k_names{
        {{"imagePullSecrets", "imageRepoSecret"},
         {"imagePullSecret", "imageRepoSecret"},
         {"pullSecret", "imageRepoSecret"},
         {"pull", "registryTLS"},
         {"params", "parameters"}}};
    const auto found =
        std::find_if(k_names.begin(), k_names.end(), [&](const auto& row) { return row.first == key; });
    return found == k_names.end() ? std::string_view() : found->second;
}

/// The nearest known field; a difference of case alone always counts as near.
std::optional<std::string> suggestion(std::string_view key, const std::vector<std::string_view>& known) {
    std::vector<std::string> candidates(known.begin(), known.end());
    std::sort(candidates.begin(), candidates.end());
    for (const auto& candidate : candidates) {
        if (base::to_lower(candidate) == base::to_lower(key)) { return candidate; }
    }
    if (const auto usual = std::find(candidates.begin(), candidates.end(), usual_name(key));
        usual != candidates.end()) {
        return *usual;
    }
    if (auto near = base::nearest(key, candidates)) { return near; }
    // nodeSelector for selector, image for containerImage, else dockerfile for dockerfileConfigMap; not if two come
    // into question.
    constexpr std::size_t k_common_min = 5;
    for (const bool at_end : {true, false}) {
        std::vector<std::string> found;
        for (const auto& candidate : candidates) {
            const std::string a = base::to_lower(candidate), b = base::to_lower(key);
            const auto& [shorter, longer] = a.size() < b.size() ? std::tie(a, b) : std::tie(b, a);
            const bool is_part = at_end ? longer.ends_with(shorter) : longer.starts_with(shorter);
            if (shorter.size() >= k_common_min && is_part) { found.push_back(candidate); }
        }
        if (found.size() == 1) { return found.front(); }
        if (!found.empty()) { break; }
    }
    return std::nullopt;
}

}  // namespace

std::string selector_hint(std::string_view field, const std::string& path, std::string_view key) {
    const bool is_meant = field == "selector" && (key == "matchLabels" || key == "matchExpressions");
    return is_meant ? fmt::format("{} is a plain map of labels: write them without {}", path, key) : "";
}

void Scope::fault(std::string code, std::string message, value::Mark mark, std::string hint) const {
    Diagnostic diagnostic;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.position = document.position(mark);
    diagnostic.hint = std::move(hint);
    diagnostics.push_back(std::move(diagnostic));
}

Fields::Fields(Scope& scope, const value::Node& node, std::string path)
    : scope_(&scope), node_(&node), path_(std::move(path)) {
    constexpr std::size_t k_fields = 24;
    if (!scope.checked) { known_.reserve(k_fields); }
    if (!node.is_mapping() && !node.is_null()) { wrong_type(node, path_, "mapping"); }
}

std::string Fields::path_of(std::string_view key) const {
    std::string path;
    path.reserve(path_.size() + key.size() + 1);
    if (!path_.empty()) { path.append(path_).push_back('.'); }
    return path.append(key);
}

bool Fields::same_key(std::string_view left, std::string_view right) const {
    if (left == right) { return true; }
    return scope_->key_case == KeyCase::any && left.size() == right.size() &&
           base::to_lower(left) == base::to_lower(right);
}

const value::Member* Fields::find_member(std::string_view key) const {
    const auto& members = node_->members();
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const value::Member& m) { return same_key(m.key, key); });
    return found == members.end() ? nullptr : &*found;
}

Position Fields::position_of(std::string_view key) const {
    const value::Member* found = find_member(key);
    return scope_->document.position(found != nullptr ? found->value.mark() : node_->mark());
}

void Scope::unknown_field(const value::Member& member, std::string_view path,
                          const std::vector<std::string_view>& known, std::string other_hint) const {
    const auto near = suggestion(member.key, known);
    fault("unknown-field", fmt::format("unknown field {}", base::escape(path)), member.key_mark,
          near ? fmt::format("did you mean {}?", *near) : std::move(other_hint));
}

void Scope::wrong_type(const value::Node& found, std::string_view path, std::string_view expected,
                       std::string hint) const {
    const bool plain_scalar = found.kind() == value::Kind::boolean || found.kind() == value::Kind::integer ||
                              found.kind() == value::Kind::floating;
    if (expected == "string" && plain_scalar) {
        hint = secret ? "put it in quotes" : fmt::format("put it in quotes: \"{}\"", shown_text(document, found));
    }
    if (expected == "list") {
        hint = found.is_mapping() ? "begin each entry with \"- \"" : "write it as a list: one \"- \" line per entry";
    }
    if (hint.empty() && found.is_string() && !secret) { hint = hint_of_text(found.text(), expected); }
    if (hint.empty() && expected == "mapping" && found.is_sequence()) {
        hint = "write KEY: VALUE below it, without \"- \"";
    }
    fault("wrong-type",
          fmt::format("{}: expected {}, found {}", path.empty() ? "document" : path, expected,
                      secret ? std::string(value::kind_name(found.kind())) : describe(document, found)),
          found.mark(), std::move(hint));
    if (misread != nullptr) { misread->emplace_back(path); }
}

const value::Node* Fields::get(std::string_view key, Need need) {
    if (!scope_->checked) { known_.push_back(key); }
    const value::Member* member = find_member(key);
    const value::Node* found = member == nullptr || member->value.is_null() ? nullptr : &member->value;
    if (found == nullptr && need == Need::required && !scope_->checked && (node_->is_mapping() || node_->is_null())) {
        const auto& members = node_->members();
        const auto other = std::find_if(members.begin(), members.end(), [&](const value::Member& one) {
            return base::to_lower(one.key) == base::to_lower(key);
        });
        scope_->fault("missing-field", fmt::format("required field {} is missing", path_of(key)), node_->mark(),
                      member == nullptr && other != members.end()
                          ? fmt::format("did you mean {} where {} stands?", key, base::escape(other->key))
                          : "");
    }
    if (found != nullptr && records_places()) {
        scope_->places->emplace(path_of(key), scope_->document.position(found->mark()));
    }
    return found;
}

std::string Fields::string(std::string_view key, Need need) {
    const value::Node* found = get(key, need);
    if (found == nullptr) { return {}; }
    if (!found->is_string()) {
        wrong_type(*found, path_of(key), "string");
        return {};
    }
    return found->text();
}

bool Fields::boolean(std::string_view key, Need need) {
    const value::Node* found = get(key, need);
    if (found == nullptr) { return false; }
    if (found->kind() != value::Kind::boolean) { wrong_type(*found, path_of(key), "boolean"); }
    return found->as_bool().value_or(false);
}

std::optional<std::int64_t> Fields::integer(std::string_view key) {
    const value::Node* found = get(key);
    if (found == nullptr) { return std::nullopt; }
    const auto number = whole_number(*found);
    if (!number) { wrong_type(*found, path_of(key), "integer"); }
    return number;
}

std::optional<std::vector<std::string>> Fields::strings(std::string_view key, Need need) {
    const value::Node* found = get(key, need);
    if (found == nullptr) { return std::nullopt; }
    if (!found->is_sequence()) {
        wrong_type(*found, path_of(key), "list");
        return std::nullopt;
    }
    std::vector<std::string> result;
    for (std::size_t i = 0; i < found->items().size(); ++i) {
        const value::Node& item = found->items()[i];
        const std::string path = fmt::format("{}[{}]", path_of(key), i);
        if (!item.is_string()) { wrong_type(item, path, "string"); }
        if (records_places()) { scope_->places->emplace(path, scope_->document.position(item.mark())); }
        result.push_back(item.text());
    }
    return result;
}

Labels Fields::string_map(std::string_view key, Need need, std::string_view part) {
    const value::Node* found = get(key, need);
    Labels result;
    if (found == nullptr) { return result; }
    if (!found->is_mapping()) {
        wrong_type(*found, path_of(key), "mapping");
        return result;
    }
    if (scope_->repeats != nullptr && part.empty()) {
        scope_->repeats->each_pair(*found, [&](const auto& pair) { result.emplace(pair.key, pair.text); });
    }
    if (part.empty()) { result.reserve(result.size() + found->members().size()); }
    for (const auto& member : found->members()) {
        const auto path = [&] { return fmt::format("{}[{}]", path_of(key), member.key); };
        // A server takes null for an empty text in objects of its own kinds.
        if (member.value.is_null() && path_.empty() && (key == "data" || key == "stringData")) {
            result.emplace(member.key, "");
            continue;
        }
        if (!member.value.is_string()) {
            wrong_type(member.value, path(), "string", selector_hint(key, path_of(key), member.key));
            continue;
        }
        if (member.key.find(part) == std::string::npos) { continue; }
        if (records_places()) {
            scope_->places->emplace(path(), scope_->document.position(member.value.mark()));
        }
        if (scope_->texts != nullptr) {
            auto key_text = scope_->texts->get(member.key), text = scope_->texts->get(member.value.text());
            if (scope_->repeats != nullptr) {
                scope_->repeats->note(scope_->repeats->number(member.value), RepeatedParts::Pair{key_text, text});
            }
            result.emplace(std::move(key_text), std::move(text));
        } else {
            result.emplace(member.key, member.value.text());
        }
    }
    return result;
}

std::string Fields::name_of(std::string_view key, Need need, Need name_need) {
    if (const value::Node* found = get(key); found != nullptr && found->is_string() && !found->text().empty()) {
        wrong_type(*found, path_of(key), "mapping",
                   fmt::format("write {}: {{name: {}}}", key, shown_text(scope_->document, *found)));
        return {};
    }
    auto reference = child(key, need);
    if (!reference) { return {}; }
    std::string name = reference->string("name", name_need);
    reference->done();
    return name;
}

std::optional<Fields> Fields::child(std::string_view key, Need need) {
    const value::Node* found = get(key, need);
    if (found == nullptr) { return std::nullopt; }
    if (!found->is_mapping()) {
        wrong_type(*found, path_of(key), "mapping");
        return std::nullopt;
    }
    return Fields(*scope_, *found, path_of(key));
}

std::vector<Fields::Item> Fields::items(std::string_view key, Need need) {
    const value::Node* found = get(key, need);
    std::vector<Item> result;
    if (found == nullptr) { return result; }
    if (!found->is_sequence()) {
        wrong_type(*found, path_of(key), "list");
        return result;
    }
    for (std::size_t i = 0; i < found->items().size(); ++i) {
        std::string path = path_of(key).append("[").append(std::to_string(i)).append("]");
        if (records_places()) {
            scope_->places->emplace(path, scope_->document.position(found->items()[i].mark()));
        }
        result.push_back(Item{&found->items()[i], std::move(path)});
    }
    return result;
}

void Fields::allow(std::initializer_list<std::string_view> keys) {
    known_.insert(known_.end(), keys.begin(), keys.end());
}

void Fields::allow(const std::vector<std::string_view>& keys) { known_.insert(known_.end(), keys.begin(), keys.end()); }

void Fields::done() {
    if (scope_->checked) { return; }
    for (const auto& member : node_->members()) {
        const auto known =
            std::find_if(known_.begin(), known_.end(), [&](std::string_view key) { return same_key(member.key, key); });
        if (known != known_.end()) {
            const value::Member* first = find_member(*known);
            if (first == &member) { continue; }
            scope_->fault(
                "duplicate-key",
                fmt::format("expected each key once, found '{}' again ('{}' in line {})", base::escape(member.key),
                            base::escape(first->key), scope_->document.position(first->key_mark).line),
                member.key_mark, "case makes no difference here: remove one of the two");
            continue;
        }
        scope_->unknown_field(member, path_of(member.key), known_);
    }
}

}  // namespace kmm::api
