// SPDX-License-Identifier: Apache-2.0
#include "image/mirrors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>

#include "base/text.hpp"
#include "image/mirror_sets.hpp"
#include "value/kind_phrase.hpp"
#include "value/reader.hpp"
#include "toml/reader.hpp"

namespace kmm::image {

namespace {

using value::Node;

constexpr std::string_view k_wildcard = "*.";
constexpr std::size_t k_config_bytes = 4U << 20U;

/// Members of one mapping by name; what nobody asked for is a fault at done().
class MirrorFields {
public:
    MirrorFields(const value::Document& document, const Node& node, std::string what, Diagnostics& faults)
        : document_(document), node_(node), what_(std::move(what)), faults_(faults) {
        if (!node.is_mapping()) {
            fault("bad-value", fmt::format("{}: expected a mapping, found {}", what_, value::a_kind(node.kind())),
                  node.mark());
        }
    }

    const Node* get(std::string_view key) {
        known_.emplace_back(key);
        const Node* found = node_.find(key);
        return found != nullptr && found->is_null() ? nullptr : found;
    }

    std::string string(std::string_view key) {
        const Node* found = get(key);
        if (found != nullptr && !found->is_string()) {
            wrong(key, *found, "a string");
            return {};
        }
        return found == nullptr ? std::string() : found->text();
    }

    bool boolean(std::string_view key) {
        const Node* found = get(key);
        const auto flag = found == nullptr ? std::optional(false) : found->as_bool();
        if (!flag) {
            wrong(key, *found, "true or false");
        }
        return flag.value_or(false);
    }

    /// One of `words`, the index of it; 0 if absent or empty.
    std::size_t choice(std::string_view key, const std::vector<std::string>& words) {
        const Node* found = get(key);
        if (found == nullptr || (found->is_string() && found->text().empty())) {
            return 0;
        }
        const auto word = std::find(words.begin(), words.end(), found->text());
        if (word == words.end()) {
            wrong(key, *found, "one of " + base::join(words, ", "));
            return 0;
        }
        return static_cast<std::size_t>(word - words.begin());
    }

    /// "HOST[:PORT][/PATH]" in its normal form, "*.DOMAIN" where that may be; "" after a fault. One image alone is
    /// taken as it is if there is no `mark`, else without its mark, which must be that one.
    std::string location(std::string_view key, bool wildcard_allowed, std::optional<std::string_view> mark) {
        const std::string text = string(key);
        if (text.empty()) {
            return {};
        }
        if (const auto normal = normal_location(text, wildcard_allowed)) {
            return *normal;
        }
        const std::string image = normal_image(text);
        const std::string_view own = image_mark(image);
        if (!own.empty() && own == mark.value_or(own)) {
            return image.substr(0, image.size() - (mark ? own.size() : 0));
        }
        const Node* found = node_.find(key);
        fault("bad-value",
              fmt::format("{}: expected HOST[:PORT][/PATH]{}, found \"{}\"", key,
                          wildcard_allowed ? " or *.DOMAIN" : "", base::escape(text)),
              found->mark());
        return {};
    }

    [[nodiscard]] static std::optional<std::string> normal_location(std::string text, bool wildcard_allowed) {
        while (text.ends_with('/')) {
            text.pop_back();  // as containers/image has it
        }
        const bool wildcard = wildcard_allowed && text.starts_with(k_wildcard);
        static constexpr std::string_view k_tail = "/x/y";
        try {
            const Reference parsed =
                parse_reference((wildcard ? "any." + text.substr(k_wildcard.size()) : text) + std::string(k_tail));
            const std::string first = base::to_lower(std::string_view(text).substr(0, text.find('/')));
            const bool hub = first == "docker.io" || first == "registry-1.docker.io" || first == "index.docker.io";
            if (parsed.registry == "index.docker.io" && !hub) {
                return std::nullopt;  // without a registry host
            }
            std::string normal = parsed.name();
            normal.resize(normal.size() - k_tail.size());
            return wildcard ? std::string(k_wildcard) + normal.substr(4) : normal;
        } catch (const Error&) {
            return std::nullopt;
        }
    }

    /// "HOST/REPOSITORY:TAG" or "HOST/REPOSITORY@DIGEST" in its normal form; "" for anything else.
    [[nodiscard]] static std::string normal_image(const std::string& text) {
        const std::string_view mark = image_mark(text);
        if (mark.empty() || !normal_location(text.substr(0, text.size() - mark.size()), false)) {
            return {};  // without a host, or with a wildcard
        }
        try {
            return parse_reference(text).name() + std::string(mark);
        } catch (const Error&) {
            return {};
        }
    }

    /// True if the member says nothing: absent, null or an empty text.
    [[nodiscard]] bool lacks(std::string_view key) const {
        const Node* found = node_.find(key);
        return node_.is_mapping() &&
               (found == nullptr || found->is_null() || (found->is_string() && found->text().empty()));
    }

    void missing(std::string_view key) {
        fault("missing-field", fmt::format("{}: expected {}, found none", what_, key), node_.mark());
    }
    void wrong(std::string_view key, const Node& found, const std::string& expected) {
        const std::string text = found.text().empty() ? value::a_kind(found.kind())
                                                      : "\"" + base::escape(found.text()) + "\"";
        fault("bad-value", fmt::format("{}: expected {}, found {}", key, expected, text), found.mark());
    }
    void fault(std::string code, std::string message, value::Mark mark, std::string hint = {}) {
        faults_.push_back({Severity::error, std::move(code), std::move(message), document_.position(mark),
                           std::move(hint), Exit::data});
    }
    void allow(std::string_view key) { known_.emplace_back(key); }
    void done() {
        for (const value::Member& member : node_.members()) {
            if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) {
                continue;
            }
            const auto near = base::nearest(member.key, known_);
            fault("unknown-field", fmt::format("{}: unknown key {}", what_, base::escape(member.key)), member.key_mark,
                  near ? fmt::format("did you mean {}?", *near) : "known are " + base::join(known_, ", "));
        }
    }

private:
    const value::Document& document_;
    const Node& node_;
    std::string what_;
    Diagnostics& faults_;
    std::vector<std::string> known_;
};

/// The items of a list; a fault for anything else.
std::vector<const Node*> items_of(MirrorFields& fields, std::string_view key) {
    std::vector<const Node*> result;
    const Node* found = fields.get(key);
    if (found != nullptr && !found->is_sequence()) {
        fields.wrong(key, *found, "a list");
    } else if (found != nullptr) {
        for (const Node& item : found->items()) {
            result.push_back(&item);
        }
    }
    return result;
}

void read_registry(const value::Document& document, const Node& node, std::vector<MirrorRule>& rules,
                   Diagnostics& faults) {
    MirrorFields fields(document, node, "registry", faults);
    MirrorRule rule;
    const bool alone = fields.lacks("prefix");
    rule.prefix = fields.location(alone ? "location" : "prefix", !alone, std::nullopt);
    const std::string_view mark = image_mark(rule.prefix);
    rule.location = alone ? rule.prefix.substr(0, rule.prefix.size() - mark.size())
                          : fields.location("location", false, mark);
    rule.insecure = fields.boolean("insecure");
    rule.blocked = fields.boolean("blocked");
    const bool digest_only = fields.boolean("mirror-by-digest-only");
    for (const Node* item : items_of(fields, "mirror")) {
        MirrorFields mirror(document, *item, "registry.mirror", faults);
        Mirror made;
        made.location = mirror.location("location", false, mark);
        made.insecure = mirror.boolean("insecure");
        made.use = static_cast<MirrorUse>(mirror.choice("pull-from-mirror", {"all", "digest-only", "tag-only"}));
        if (digest_only && !mirror.lacks("pull-from-mirror")) {
            mirror.wrong("pull-from-mirror", *item->find("pull-from-mirror"),
                         "none where the registry has mirror-by-digest-only");
        } else if (digest_only) {
            made.use = MirrorUse::digest_only;
        }
        if (mirror.lacks("location")) {
            mirror.missing("location");
        }
        mirror.done();
        rule.mirrors.push_back(std::move(made));
    }
    fields.allow("prefix");
    fields.done();
    if (alone && fields.lacks("location")) {
        fields.missing("prefix or location");
    }
    if (const std::string other = join_rule(rules, std::move(rule)); !other.empty()) {
        fields.fault("bad-value",
                     fmt::format("registry: expected one {} for each prefix, found a second [[registry]] with another",
                                 other),
                     node.mark(), "write one [[registry]] for each prefix, with all of its mirrors");
    }
}

/// The first format of registries.conf, which containers/image still reads: `registries`, lists of hosts, below
/// [registries.search], [registries.insecure] and [registries.block]. It has no mirrors.
void read_first_format(const value::Document& document, const Node& node, std::vector<MirrorRule>& rules,
                       Diagnostics& faults) {
    static constexpr std::string_view k_tables[] = {"search", "insecure", "block"};
    MirrorFields tables(document, node, "registries", faults);
    for (const std::string_view name : k_tables) {
        const Node* table = tables.get(name);
        if (table == nullptr) {
            continue;
        }
        MirrorFields fields(document, *table, "registries." + std::string(name), faults);
        for (const Node* item : items_of(fields, "registries")) {
            if (name == "search") {
                continue;  // only concerns short names
            }
            const auto normal = item->is_string() ? MirrorFields::normal_location(item->text(), false) : std::nullopt;
            if (!normal) {
                fields.wrong("registries", *item, "HOST[:PORT][/PATH]");
                continue;
            }
            MirrorRule rule;
            rule.prefix = *normal;
            if (name == "insecure") {
                rule.insecure = true;
            }
            rule.blocked = name == "block";
            static_cast<void>(join_rule(rules, std::move(rule)));  // without locations
        }
        fields.done();
    }
    tables.done();
}

void read_toml_rules(const value::Document& document, std::vector<MirrorRule>& rules, Diagnostics& faults) {
    MirrorFields fields(document, document.root, "registries.conf", faults);
    for (const Node* item : items_of(fields, "registry")) {
        read_registry(document, *item, rules, faults);
    }
    if (const Node* first = fields.get("registries"); first != nullptr && document.root.find("registry") != nullptr) {
        fields.fault("bad-value", "expected one format of registries.conf, found [[registry]] and [registries]",
                     first->mark(), "write every registry as [[registry]] with location, insecure and blocked");
    } else if (first != nullptr) {
        read_first_format(document, *first, rules, faults);
    }
    for (const char* key : {"unqualified-search-registries", "short-name-mode", "aliases", "credential-helpers",
                            "additional-layer-store-auth-helper"}) {
        fields.allow(key);
    }
    fields.done();
}

struct MirrorKind {
    std::string_view kind, list;
    MirrorUse use;
};

constexpr MirrorKind k_kinds[] = {
    {"ImageDigestMirrorSet", "imageDigestMirrors", MirrorUse::digest_only},
    {"ImageTagMirrorSet", "imageTagMirrors", MirrorUse::tag_only},
    {"ImageContentSourcePolicy", "repositoryDigestMirrors", MirrorUse::digest_only},
};

/// nullptr for an object of another kind.
const MirrorKind* kind_of(const Node& root) {
    const std::string kind = root.get_string({"kind"});
    const auto row =
        std::find_if(std::begin(k_kinds), std::end(k_kinds), [&](const MirrorKind& r) { return r.kind == kind; });
    return row == std::end(k_kinds) ? nullptr : row;
}

void read_set(const value::Document& document, const Node& root, std::vector<MirrorSetEntry>& entries,
              Diagnostics& faults) {
    const std::string kind = root.get_string({"kind"});
    if (kind == "List") {
        MirrorFields fields(document, root, "List", faults);
        for (const Node* item : items_of(fields, "items")) {
            read_set(document, *item, entries, faults);
        }
        return;
    }
    const MirrorKind* row = kind_of(root);
    MirrorFields top(document, root, kind.empty() ? "document" : base::escape(kind), faults);
    if (row == nullptr) {
        if (root.is_mapping()) {
            top.fault(
                "unknown-kind",
                fmt::format("expected an ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy, found {}",
                            kind.empty() ? "no kind" : "kind " + base::escape(kind)),
                root.mark());
        }
        return;
    }
    for (const char* key : {"apiVersion", "kind", "metadata", "status"}) {
        top.allow(key);
    }
    const Node* spec = top.get("spec");
    top.done();
    if (spec == nullptr) {
        top.missing("spec");
        return;
    }
    MirrorFields fields(document, *spec, "spec", faults);
    for (const Node* item : items_of(fields, row->list)) {
        MirrorFields entry(document, *item, std::string(row->list), faults);
        MirrorSetEntry made;
        made.use = row->use;
        made.source = entry.location("source", true, "");
        if (entry.lacks("source")) {
            entry.missing("source");
        }
        for (const Node* mirror : items_of(entry, "mirrors")) {
            const auto normal =
                mirror->is_string() ? MirrorFields::normal_location(mirror->text(), false) : std::nullopt;
            if (!normal) {
                entry.wrong("mirrors", *mirror, "HOST[:PORT][/PATH]");
            } else {
                made.mirrors.push_back(*normal);
            }
        }
        if (row->kind != "ImageContentSourcePolicy") {
            made.never_source =
                entry.choice("mirrorSourcePolicy", {"AllowContactingSource", "NeverContactSource"}) == 1;
        }
        entry.done();
        entries.push_back(std::move(made));
    }
    fields.done();
}

/// TOML begins with a key and "=", or with a table; YAML and JSON documents of Kubernetes never do.
bool is_toml(std::string_view text) {
    for (const std::string_view line : base::split(text, '\n')) {
        const std::string_view words = base::trim(line);
        if (!words.empty() && !words.starts_with('#')) {
            const std::size_t colon = words.find(':');
            return words.starts_with('[') || (words.find('=') < colon && !words.starts_with('{'));
        }
    }
    return true;
}

/// The configuration of another program about the same subject; "" if `root` is none that is known.
std::string_view foreign_form(const Node& root) {
    struct Form {
        std::string_view key, name;
    };
    static constexpr Form k_forms[] = {{"host", "hosts.toml of containerd"},
                                       {"server", "hosts.toml of containerd"},
                                       {"plugins", "config.toml of containerd"},
                                       {"crio", "crio.conf of CRI-O"},
                                       {"mirrors", "registries.yaml of K3s and RKE2"},
                                       {"configs", "registries.yaml of K3s and RKE2"},
                                       {"registry-mirrors", "daemon.json of Docker"},
                                       {"insecure-registries", "daemon.json of Docker"}};
    for (const auto& [key, name] : k_forms) {
        if (root.find(key) != nullptr && root.find("registry") == nullptr && root.find("kind") == nullptr) {
            return name;
        }
    }
    return {};
}

/// True after a fault that names it.
bool is_foreign(const value::Document& document, Diagnostics& faults) {
    const std::string_view form = document.root.is_mapping() ? foreign_form(document.root) : std::string_view();
    if (!form.empty()) {
        faults.push_back({Severity::error, "unknown-kind",
                          fmt::format("expected registries.conf or mirror sets of OpenShift, found {}", form),
                          document.position(document.root.mark()),
                          "write its mirrors as [[registry]] with location and [[registry.mirror]]", Exit::data});
    }
    return !form.empty();
}

}  // namespace

std::vector<MirrorRule> read_mirrors(std::string_view text, std::string_view file) {
    Diagnostics faults;
    std::vector<MirrorRule> rules;
    value::ReadLimits limits;
    limits.bytes_max = k_config_bytes;
    if (is_toml(text)) {
        if (const auto document = toml::read(text, file, faults, limits);
            document && !is_foreign(*document, faults)) {
            read_toml_rules(*document, rules, faults);
        }
    } else {
        std::vector<MirrorSetEntry> entries;
        for (const value::Document& document : value::read_any(text, file, faults, limits)) {
            if (!is_foreign(document, faults)) {
                read_set(document, document.root, entries, faults);
            }
        }
        rules = rules_of(entries);
    }
    if (has_errors(faults)) {
        throw Error::from_diagnostics(std::move(faults));
    }
    return rules;
}

std::vector<MirrorRule> read_mirror_sets(std::span<const value::Document> objects, Diagnostics& faults) {
    std::vector<MirrorSetEntry> entries;
    for (const auto& document : objects) {
        if (kind_of(document.root) != nullptr) {
            read_set(document, document.root, entries, faults);
        }
    }
    return rules_of(entries);
}

std::string join_rule(std::vector<MirrorRule>& rules, MirrorRule rule) {
    const auto same =
        std::find_if(rules.begin(), rules.end(), [&](const MirrorRule& r) { return r.prefix == rule.prefix; });
    if (same == rules.end()) {
        rules.push_back(std::move(rule));
        return {};
    }
    const auto differ = [](const std::optional<bool>& one, const std::optional<bool>& other) {
        return one && other && *one != *other;
    };
    if (!rule.location.empty() && !same->location.empty() && rule.location != same->location) {
        return "location";
    }
    if (differ(same->insecure, rule.insecure)) {
        return "insecure";
    }
    if (same->insecure && rule.insecure && same->blocked != rule.blocked) {
        return "blocked";  // each of the two is of registries.conf, and says it
    }
    const auto known = [&](const Mirror& mirror) {
        return std::find_if(same->mirrors.begin(), same->mirrors.end(), [&](const Mirror& one) {
            return one.location == mirror.location && one.use == mirror.use;
        });
    };
    for (const Mirror& mirror : rule.mirrors) {
        if (const auto one = known(mirror); one != same->mirrors.end() && differ(one->insecure, mirror.insecure)) {
            return "insecure of the mirror " + mirror.location;
        }
    }
    if (same->location.empty()) {
        same->location = std::move(rule.location);
    }
    same->insecure = same->insecure ? same->insecure : rule.insecure;
    same->blocked = same->blocked || rule.blocked;
    for (Mirror& mirror : rule.mirrors) {
        if (const auto one = known(mirror); one == same->mirrors.end()) {
            same->mirrors.push_back(std::move(mirror));
        } else if (!one->insecure) {
            one->insecure = mirror.insecure;
        }
    }
    return {};
}

}  // namespace kmm::image
