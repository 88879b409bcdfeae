// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/foreign_text.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

bool is_foreign_object(const value::Document& document) {
    api::Objects objects;
    Diagnostics faults;
    api::decode(document, objects, faults, "");
    return faults.size() == 1 && faults.front().code == "unknown-kind" && faults.front().severity == Severity::note &&
           objects.wrapped.empty();
}

namespace {

bool names_kmm(std::string_view text, KmmNamed where) {
    constexpr std::string_view k_name = "kmm", k_version = "apiVersion";
    if (where == KmmNamed::anywhere) { return text.find(k_name) != std::string_view::npos; }
    for (auto at = text.find(k_version); at != std::string_view::npos; at = text.find(k_version, at + 1)) {
        const auto rest = text.substr(at);
        if (rest.substr(0, rest.find_first_of(",\n")).find(k_name) != std::string_view::npos) { return true; }
    }
    return false;
}

/// The value of member `key` if the line has it, of a document's own members; nullopt else.
std::optional<std::string_view> own_member(std::string_view line, std::string_view key) {
    for (const std::string_view quote : {"", "\"", "'"}) {
        auto rest = line;
        for (const auto part : {quote, key, quote, std::string_view(":")}) {
            if (!rest.starts_with(part)) {
                rest = {};
                break;
            }
            rest.remove_prefix(part.size());
        }
        if (rest.empty() || (rest.front() != ' ' && rest.front() != '\t')) { continue; }
        rest = base::trim(rest.substr(0, rest.find(" #")));
        if (rest.size() > 1 && (rest.front() == '"' || rest.front() == '\'') && rest.front() == rest.back()) {
            rest = rest.substr(1, rest.size() - 2);
        }
        return rest;
    }
    return std::nullopt;
}

/// What a document says of itself, as far as its lines have it.
struct OwnKind {
    std::string api_version, kind;
    bool is_empty = true;
    [[nodiscard]] bool is_foreign(const std::string& file) const {
        if (is_empty) { return true; }
        const auto is_word = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/' ||
                   c == '-';
        };
        const auto is_name = [&](const std::string& text) {
            return !text.empty() && std::all_of(text.begin(), text.end(), is_word);
        };
        if (!is_name(api_version) || !is_name(kind)) { return false; }
        value::Document document;
        document.file = file;
        document.root = value::Node::mapping({{"apiVersion", api_version}, {"kind", kind}});
        return is_foreign_object(document);
    }
};

/// Whether something has neither kind nor apiVersion, whatever stands deeper in it.
bool is_of_others(const value::Node& node) {
    return node.find("kind") == nullptr && node.find("apiVersion") == nullptr;
}

}  // namespace

bool may_hold_objects(std::string_view front) {
    static constexpr std::string_view k_members[] = {
        "kind", "apiVersion", "items", "healthProbeBindAddress", "worker", "leaderElection", "webhookPort", "job"};
    constexpr std::size_t k_front_max = std::size_t{1} << 14U;  // of a longer text not all is seen
    if (front.size() >= k_front_max) { return true; }
    const auto trimmed = base::trim(front);
    if (trimmed.empty()) { return true; }
    if (trimmed.front() == '{' || trimmed.front() == '[') {
        return trimmed.find("kind") != std::string_view::npos || trimmed.find("apiVersion") != std::string_view::npos;
    }
    bool is_empty = true;
    std::optional<std::size_t> own;  // where members of the document stand, of a list those of its items
    for (const auto line : base::split(front, '\n')) {
        auto text = base::trim(line);
        if (text.empty() || text.front() == '#' || text.front() == '%') { continue; }
        if (text.starts_with("---")) {
            if (text.size() > 3) { return true; }
            own.reset();
            continue;
        }
        is_empty = false;
        const bool is_item = text.starts_with("- ");
        if (is_item && !own) { text = base::trim(text.substr(2)); }
        if (text.empty() || text.front() == '{') { return true; }
        const auto column = static_cast<std::size_t>(text.data() - line.data());
        if (!own) { own = column; }
        if (text.front() == '"' || text.front() == '\'') { text.remove_prefix(1); }
        if (column == *own && std::any_of(std::begin(k_members), std::end(k_members),
                                          [&](auto key) { return text.starts_with(key); })) {
            return true;
        }
    }
    return is_empty;
}

bool names_kmm_object(std::string_view text) {
    constexpr std::string_view k_version = "apiVersion";
    for (auto at = text.find(k_version); at != std::string_view::npos; at = text.find(k_version, at + 1)) {
        auto rest = text.substr(at + k_version.size());
        rest.remove_prefix(std::min(rest.find_first_not_of("\"': \t"), rest.size()));
        if (rest.starts_with("hub.")) { rest.remove_prefix(4); }
        if (rest.starts_with("kmm.sigs.x-k8s.io/")) { return true; }
    }
    return false;
}

bool may_be_meant(std::string_view text, KmmNamed where) {
    if (names_kmm(text, where)) { return true; }
    constexpr std::string_view k_kind = "kind";
    for (auto at = text.find(k_kind); at != std::string_view::npos; at = text.find(k_kind, at + 1)) {
        auto rest = text.substr(at + k_kind.size());
        rest.remove_prefix(std::min(rest.find_first_not_of("\"': \t"), rest.size()));
        for (const std::string_view kind : {"Node", "NodeList", "List", "Module", "ModuleList", "SpecialResource",
                                            "SpecialResourceModule"}) {
            const auto after = rest.substr(std::min(kind.size(), rest.size()));
            if (rest.starts_with(kind) && (after.empty() || after.find_first_of("\"', \t\r\n}") == 0)) { return true; }
        }
    }
    return false;
}

bool names_object(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) { return true; }
    const std::string small = base::to_lower(text);
    static constexpr std::string_view k_words[] = {"kind", "apiversion", "healthprobebindaddress", "webhookport",
                                                   "leaderelection"};
    return std::any_of(std::begin(k_words), std::end(k_words),
                       [&](auto word) { return small.find(word) != std::string::npos; });
}

bool is_of_others(std::string_view text, const std::string& file) {
    Diagnostics faults;
    const auto documents = value::read_any(text, file, faults);
    return faults.empty() && !documents.empty() &&
           std::all_of(documents.begin(), documents.end(), [](const value::Document& document) {
               const auto& items = document.root.items();
               return document.root.is_mapping()
                          ? is_of_others(document.root)
                          : document.root.is_sequence() && std::all_of(items.begin(), items.end(), [](auto& item) {
                                return !item.is_mapping() || is_of_others(item);
                            });
           });
}

Diagnostic* hint_at_template(std::string_view text, std::span<Diagnostic> faults) {
    // A template is no YAML before its tool has filled it.
    const auto has = [&](std::string_view open, std::string_view close) {
        return text.find(open) != std::string_view::npos && text.find(close) != std::string_view::npos;
    };
    const bool is_jinja = has("{%", "%}");
    if (!is_jinja && !has("{{", "}}")) { return nullptr; }
    for (auto& fault : faults) {
        if (fault.code != "yaml-syntax" && fault.code != "bad-key" && fault.code != "json-syntax") { continue; }
        fault.hint = is_jinja
                         ? "this looks like a template of Jinja: fill it, and give the result to kmm-plan validate -f -"
                         : "this looks like a template of a Helm chart: helm template DIR | kmm-plan validate -f -";
        return &fault;
    }
    return nullptr;
}

namespace {

/// What the documents of a YAML text say of themselves.
std::vector<OwnKind> own_kinds(std::string_view text) {
    std::vector<OwnKind> kinds(1);
    for (const auto line : base::split(text, '\n')) {
        if (line.starts_with("---")) {
            kinds.emplace_back();
            // An object may begin there.
            if (base::trim(line).size() > 3) { kinds.back().is_empty = false; }
            continue;
        }
        const auto trimmed = base::trim(line);
        if (trimmed.empty() || trimmed.front() == '#' || line.front() == '%') { continue; }
        auto& own = kinds.back();
        own.is_empty = false;
        if (const auto kind = own_member(line, "kind")) { own.kind = *kind; }
        if (const auto version = own_member(line, "apiVersion")) { own.api_version = *version; }
    }
    return kinds;
}

/// Whether each document of a YAML text that cannot be read says that it is an object of a kind that decisions do not
/// need, and nothing of KMM stands deeper in it.
bool holds_foreign_objects(std::string_view text, const std::string& file) {
    if (names_kmm(text, KmmNamed::as_group)) { return false; }
    const auto kinds = own_kinds(text);
    const auto is_foreign = [&](const OwnKind& own) { return own.is_foreign(file); };
    return std::all_of(kinds.begin(), kinds.end(), is_foreign) &&
           !std::all_of(kinds.begin(), kinds.end(), [](const OwnKind& own) { return own.is_empty; });
}

/// Whether a document of a YAML text has a member kind.
bool has_kind(std::string_view text) { return text.starts_with("kind:") || text.find("\nkind:") != text.npos; }

}  // namespace

LeftOut leave_out_unreadable(const std::string& file, const KindUse& uses, Diagnostics& diagnostics,
                             std::size_t begin) {
    const auto is_syntax = [](const Diagnostic& one) {
        return one.code == "yaml-syntax" || one.code == "json-syntax" || one.code == "bad-key" ||
               one.code == "duplicate-key" || one.code == "not-utf8";
    };
    const auto first = diagnostics.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto is_either = [&](const Diagnostic& one) { return one.is_of_no_object || is_syntax(one); };
    if (std::none_of(first, diagnostics.end(), is_either)) { return LeftOut::nothing; }
    const auto text = TextSource(file).whole();
    if (!text) { return LeftOut::nothing; }
    const auto kinds = own_kinds(*text);
    const auto is_used = [&](const OwnKind& own) { return uses(own.api_version, own.kind); };
    if (std::any_of(kinds.begin(), kinds.end(), is_used)) { return LeftOut::nothing; }
    const bool is_template = text->find("{{") != std::string::npos || text->find("{%") != std::string::npos;
    const bool has_no_object = std::any_of(first, diagnostics.end(), [](auto& one) { return one.is_of_no_object; });
    // kubectl takes the last of two members: that is for those who read the object.
    const auto is_double = [](const Diagnostic& one) { return one.code == "duplicate-key"; };
    if (!is_kustomization(file) && holds_foreign_objects(*text, file)) {
        diagnostics.erase(std::remove_if(first, diagnostics.end(), is_double), diagnostics.end());
        if (is_template && std::any_of(first, diagnostics.end(), is_syntax)) {
            diagnostics.erase(std::remove_if(first, diagnostics.end(), is_syntax), diagnostics.end());
            return LeftOut::foreign_template;
        }
        for (auto one = first; one != diagnostics.end(); ++one) {
            if (!is_syntax(*one)) { continue; }
            one->severity = Severity::note;
            one->hint = "KMM does not use objects of this kind: the file was not read any further";
        }
        return LeftOut::nothing;
    }
    const auto where = is_template || has_no_object ? KmmNamed::as_group : KmmNamed::anywhere;
    if (may_be_meant(*text, where) && !is_of_others(*text, file)) { return LeftOut::nothing; }
    // Tags and numbers that other programs read stand in no object.
    const bool is_setting = has_no_object && !has_kind(*text);
    const bool is_foreign = is_template || !(is_kustomization(file) || names_object(*text));
    diagnostics.erase(std::remove_if(first, diagnostics.end(), is_double), diagnostics.end());
    const auto is_left_out = [&](const Diagnostic& one) {
        return one.is_of_no_object || (is_foreign && is_syntax(one)) ||
               (is_setting && (one.code == "bad-tag" || one.code == "bad-number"));
    };
    const auto kept = std::remove_if(first, diagnostics.end(), is_left_out);
    if (kept == diagnostics.end()) { return LeftOut::nothing; }
    diagnostics.erase(kept, diagnostics.end());
    return LeftOut::text;
}

}  // namespace kmm::cluster
