// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/catalogue.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/versions/builtin_text.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// One document of metadata that is being read.
class CatalogueReader {
public:
    CatalogueReader(const value::Document& document, Diagnostics& faults) : document_(document), faults_(faults) {}

    void read(Catalogue& catalogue) {
        const Node& root = document_.root;
        if (!root.is_mapping()) {
            fault(root.mark(), "bad-value", fmt::format("expected a mapping with versions, found {}", found(root)),
                  "see manifests/kubernetes-versions.yaml for the form");
            return;
        }
        check_keys(root, "the file", k_root_keys);
        const Node* versions = root.find("versions");
        if (versions == nullptr) {
            fault(root.mark(), "missing-field", "versions is missing, expected a list of versions",
                  "see manifests/kubernetes-versions.yaml for the form");
        } else if (is_list(*versions, "versions")) {
            for (const auto& item : versions->items()) { read_entry(item, catalogue); }
        }
        if (const Node* minors = root.find("minors"); minors != nullptr && is_list(*minors, "minors"))
            for (const auto& item : minors->items()) { read_minor(item, catalogue); }
        if (const Node* applications = root.find("applications");
            applications != nullptr && is_list(*applications, "applications"))
            for (const auto& item : applications->items()) { read_application(item, catalogue); }
        sort(catalogue);
    }

private:
    static constexpr std::array<std::string_view, 3> k_root_keys{"versions", "minors", "applications"};
    static constexpr std::array<std::string_view, 8> k_entry_keys{
        "version", "upgrade_from", "downgrade_to", "applied_patches", "available_patches", "etcd", "coredns", "pause"};
    static constexpr std::array<std::string_view, 4> k_minor_keys{"minor", "cgroup", "removed", "known_issues"};
    static constexpr std::array<std::string_view, 3> k_issue_keys{"versions", "issue", "when"};
    static constexpr std::array<std::string_view, 8> k_removed_keys{
        "complete",          "apiserver_flags", "controller_manager_flags", "scheduler_flags", "kubelet_flags",
        "admission_plugins", "feature_gates",   "locked_gates"};

    static constexpr std::array<std::string_view, 7> k_application_keys{"name",    "namespace", "selector", "release",
                                                                        "minimum", "maximum",   "cni"};

    void fault(value::Mark mark, const char* code, std::string message, std::string hint = {}) {
        Diagnostic made;
        made.code = code;
        made.message = std::move(message);
        made.position = document_.position(mark);
        made.hint = std::move(hint);
        faults_.push_back(std::move(made));
    }

    std::string found(const Node& node) const {
        if (node.is_mapping() || node.is_sequence()) { return fmt::format("a {}", value::kind_name(node.kind())); }
        if (node.is_null()) { return "nothing"; }
        return fmt::format("{} '{}'",
                           node.is_string() ? "the string" : fmt::format("the {}", value::kind_name(node.kind())),
                           base::escape(document_.text_of(node)));
    }

    bool is_list(const Node& node, std::string_view name) {
        if (node.is_sequence()) { return true; }
        fault(node.mark(), "bad-value", fmt::format("{}: expected a list, found {}", name, found(node)));
        return false;
    }

    template <std::size_t N>
    void check_keys(const Node& mapping, std::string_view of, const std::array<std::string_view, N>& known) {
        for (const auto& member : mapping.members()) {
            if (std::find(known.begin(), known.end(), member.key) != known.end()) { continue; }
            const std::vector<std::string> names(known.begin(), known.end());
            const auto near = base::nearest(member.key, names);
            fault(member.key_mark, "unknown-field",
                  fmt::format("{}: field {} is not known, expected one of {}", of, base::escape(member.key),
                              base::join(names, ", ")),
                  near ? fmt::format("did you mean {}?", *near) : std::string());
        }
    }

    std::optional<std::string> string_of(const Node& node, std::string_view name) {
        if (node.is_string() && !node.text().empty()) { return node.text(); }
        const bool scalar = !node.is_mapping() && !node.is_sequence() && !node.is_null() && !node.is_string();
        fault(node.mark(), "bad-value", fmt::format("{}: expected a string, found {}", name, found(node)),
              scalar ? fmt::format("put it in quotes: \"{}\"", base::escape(document_.text_of(node))) : std::string());
        return std::nullopt;
    }

    std::optional<Version> version_of(const Node& node, std::string_view name) {
        const auto text = string_of(node, name);
        if (!text) { return std::nullopt; }
        auto version = Version::parse(*text);
        if (!version) {
            fault(node.mark(), "bad-value",
                  fmt::format("{}: expected {}, found '{}'", name, k_version_form, base::escape(*text)));
        }
        return version;
    }

    std::vector<std::string> strings_of(const Node& mapping, const char* name) {
        std::vector<std::string> texts;
        const Node* node = mapping.find(name);
        if (node == nullptr || !is_list(*node, name)) { return texts; }
        for (const auto& item : node->items()) {
            auto text = string_of(item, name);
            if (!text) { continue; }
            if (std::find(texts.begin(), texts.end(), *text) != texts.end()) {
                fault(item.mark(), "bad-value", fmt::format("{}: {} is listed twice", name, base::escape(*text)));
            } else {
                texts.push_back(std::move(*text));
            }
        }
        return texts;
    }

    /// Of `upgrade_from` and `downgrade_to`: versions below `of`, each with its place.
    std::vector<Version> lower_versions(const Node& mapping, const char* name, const std::optional<Version>& of,
                                        std::int64_t minors_max) {
        std::vector<Version> versions;
        const Node* node = mapping.find(name);
        if (node == nullptr || !is_list(*node, name)) { return versions; }
        for (const auto& item : node->items()) {
            auto version = version_of(item, name);
            if (!version) { continue; }
            if (std::find(versions.begin(), versions.end(), *version) != versions.end()) {
                fault(item.mark(), "bad-value", fmt::format("{}: {} is listed twice", name, version->text()));
            } else if (of && *version >= *of) {
                fault(item.mark(), "version-order",
                      fmt::format("{} of {}: expected a lower version, found {}", name, of->text(), version->text()));
            } else if (of && minors_behind(*version, *of) > minors_max) {
                fault(item.mark(), "version-order",
                      fmt::format("{} of {}: expected a version of {}, found {}", name, of->text(),
                                  minors_max == 0 ? of->line().text() : of->line().text() + " or the minor below it",
                                  version->text()),
                      minors_max == 0 ? "a cluster goes back within its minor only"
                                      : "kubeadm upgrades one minor at a time");
            } else {
                versions.push_back(std::move(*version));
            }
        }
        return versions;
    }

    std::string optional_text(const Node& mapping, const char* name) {
        const Node* node = mapping.find(name);
        return node == nullptr ? std::string() : string_of(*node, name).value_or("");
    }

    void read_entry(const Node& item, Catalogue& catalogue) {
        if (!item.is_mapping()) {
            fault(item.mark(), "bad-value",
                  fmt::format("versions: expected a mapping with version, found {}", found(item)));
            return;
        }
        VersionEntry entry;
        entry.position = document_.position(item.mark());
        const Node* named = item.find("version");
        std::optional<Version> version;
        if (named == nullptr) {
            fault(item.mark(), "missing-field", fmt::format("version is missing, expected {}", k_version_form));
        } else {
            version = version_of(*named, "version");
            entry.position = document_.position(named->mark());
        }
        check_keys(item, version ? version->text() : "the version", k_entry_keys);
        auto from = lower_versions(item, "upgrade_from", version, 1);
        if (item.find("upgrade_from") != nullptr) { entry.upgrade_from = std::move(from); }
        entry.downgrade_to = lower_versions(item, "downgrade_to", version, 0);
        entry.applied_patches = strings_of(item, "applied_patches");
        entry.available_patches = strings_of(item, "available_patches");
        entry.etcd = optional_text(item, "etcd");
        if (!entry.etcd.empty() && !Version::parse(entry.etcd))
            fault(item.find("etcd")->mark(), "bad-value",
                  fmt::format("etcd: expected a version as 3.6.5-0, found '{}'", base::escape(entry.etcd)));
        entry.coredns = optional_text(item, "coredns");
        entry.pause = optional_text(item, "pause");
        if (!version) { return; }
        entry.version = *version;
        if (const auto* other = catalogue.find(*version)) {
            fault({static_cast<std::uint32_t>(entry.position.line), static_cast<std::uint32_t>(entry.position.column)},
                  "duplicate-version",
                  fmt::format("version {} is listed twice, first at {}", version->text(), other->position.to_string()),
                  "remove one of them");
            return;
        }
        catalogue.versions.push_back(std::move(entry));
    }

    void read_minor(const Node& item, Catalogue& catalogue) {
        if (!item.is_mapping()) {
            fault(item.mark(), "bad-value",
                  fmt::format("minors: expected a mapping with minor, found {}", found(item)));
            return;
        }
        MinorFacts facts;
        facts.position = document_.position(item.mark());
        const Node* named = item.find("minor");
        std::optional<MinorVersion> minor;
        if (named == nullptr) {
            fault(item.mark(), "missing-field", "minor is missing, expected MAJOR.MINOR as v1.34");
        } else if (const auto text = string_of(*named, "minor")) {
            minor = MinorVersion::parse(*text);
            if (!minor) {
                fault(named->mark(), "bad-value",
                      fmt::format("minor: expected MAJOR.MINOR as v1.34, found '{}'", base::escape(*text)));
            }
        }
        check_keys(item, minor ? minor->text() : "the minor", k_minor_keys);
        if (const Node* cgroup = item.find("cgroup"); cgroup != nullptr) {
            const auto text = string_of(*cgroup, "cgroup");
            if (text && *text != "v2" && *text != "any") {
                fault(cgroup->mark(), "bad-value",
                      fmt::format("cgroup: expected any or v2, found '{}'", base::escape(*text)));
            }
            facts.needs_cgroup_v2 = text == "v2";
        }
        if (const Node* removed = item.find("removed"); removed != nullptr) { read_removed(*removed, facts.removed); }
        if (const Node* issues = item.find("known_issues"); issues != nullptr && is_list(*issues, "known_issues")) {
            for (const auto& each : issues->items()) { read_known_issue(each, minor, facts.known_issues); }
        }
        if (!minor) { return; }
        facts.minor = *minor;
        if (const auto* other = catalogue.facts_of(*minor)) {
            fault(item.mark(), "duplicate-version",
                  fmt::format("minor {} is listed twice, first at {}", minor->text(), other->position.to_string()),
                  "remove one of them");
            return;
        }
        catalogue.minors.push_back(std::move(facts));
    }

    void read_removed(const Node& node, Removals& removed) {
        if (!node.is_mapping()) {
            fault(node.mark(), "bad-value", fmt::format("removed: expected a mapping, found {}", found(node)));
            return;
        }
        check_keys(node, "removed", k_removed_keys);
        removed.complete = flag_of(node, "complete");
        removed.apiserver_flags = strings_of(node, "apiserver_flags");
        removed.controller_manager_flags = strings_of(node, "controller_manager_flags");
        removed.scheduler_flags = strings_of(node, "scheduler_flags");
        removed.kubelet_flags = strings_of(node, "kubelet_flags");
        removed.admission_plugins = strings_of(node, "admission_plugins");
        removed.feature_gates = strings_of(node, "feature_gates");
        removed.locked_gates = strings_of(node, "locked_gates");
        const Node* locked = node.find("locked_gates");
        for (const auto& gate : locked == nullptr ? std::vector<Node>() : locked->items())
            if (gate.is_string() && !gate.text().ends_with("=true") && !gate.text().ends_with("=false"))
                fault(gate.mark(), "bad-value",
                      fmt::format("locked_gates: expected NAME=true or NAME=false, found {}", found(gate)));
    }

    void read_known_issue(const Node& item, const std::optional<MinorVersion>& minor, std::vector<KnownIssue>& issues) {
        if (!item.is_mapping()) {
            fault(item.mark(), "bad-value",
                  fmt::format("known_issues: expected a mapping with versions and issue, found {}", found(item)));
            return;
        }
        check_keys(item, "known_issues", k_issue_keys);
        KnownIssue made;
        for (const char* name : {"versions", "issue"}) {
            if (item.find(name) == nullptr) {
                fault(item.mark(), "missing-field", fmt::format("known_issues: {} is missing", name));
            }
        }
        made.issue = optional_text(item, "issue");
        if (const Node* versions = item.find("versions"); versions != nullptr && is_list(*versions, "versions")) {
            if (versions->items().empty()) {
                fault(versions->mark(), "bad-value", "known_issues: versions: expected a version, found none");
            }
            for (const auto& each : versions->items()) {
                const auto version = version_of(each, "versions");
                if (!version) { continue; }
                if (minor && version->line() != *minor) {
                    fault(each.mark(), "bad-value",
                          fmt::format("known_issues: expected a version of {}, found {}", minor->text(),
                                      version->text()));
                }
                made.versions.push_back(*version);
            }
        }
        if (const Node* when = item.find("when"); when != nullptr) {
            const auto text = string_of(*when, "when");
            if (text && *text != "host-name-differs") {
                fault(when->mark(), "bad-value",
                      fmt::format("when: expected host-name-differs, found '{}'", base::escape(*text)));
            }
            made.needs_other_host_name = text.has_value();
        }
        issues.push_back(std::move(made));
    }

    /// False where it is not there, or is no flag.
    bool flag_of(const Node& mapping, const char* name) {
        const Node* node = mapping.find(name);
        const auto flag = node == nullptr ? std::optional(false) : node->as_bool();
        if (!flag)
            fault(node->mark(), "bad-value", fmt::format("{}: expected true or false, found {}", name, found(*node)));
        return flag.value_or(false);
    }

    void read_application(const Node& item, Catalogue& catalogue) {
        if (!item.is_mapping()) {
            fault(item.mark(), "bad-value",
                  fmt::format("applications: expected a mapping with name, found {}", found(item)));
            return;
        }
        Application made;
        made.position = document_.position(item.mark());
        made.name = optional_text(item, "name");
        if (item.find("name") == nullptr) {
            fault(item.mark(), "missing-field", "name is missing, expected the name of the application");
        }
        const std::string of = made.name.empty() ? "the application" : "application " + base::escape(made.name);
        check_keys(item, of, k_application_keys);
        made.ns = optional_text(item, "namespace");
        made.release = optional_text(item, "release");
        made.is_cni = flag_of(item, "cni");
        const Node* selector = item.find("selector");
        if (selector != nullptr) { made.selector = selector_of(*selector, of); }
        if ((selector == nullptr) == (item.find("release") == nullptr)) {
            const bool is_neither = selector == nullptr;
            fault(item.mark(), is_neither ? "missing-field" : "bad-value",
                  fmt::format("{}: expected selector or release, found {}", of, is_neither ? "neither" : "both"),
                  "selector: labels of its Pods; release: its name in helm list");
        }
        made.supported.minimum = bound_of(item, "minimum");
        made.supported.maximum = bound_of(item, "maximum");
        if (item.find("minimum") == nullptr && item.find("maximum") == nullptr) {
            fault(item.mark(), "missing-field",
                  fmt::format("{}: minimum or maximum is missing, expected {}", of, k_bound_form));
        }
        if (!made.supported.has_any()) {
            fault(item.find("maximum")->mark(), "version-order",
                  fmt::format("{}: expected a maximum from {} on, found {}", of, made.supported.minimum->text(),
                              made.supported.maximum->text()));
        }
        const auto other = std::find_if(catalogue.applications.begin(), catalogue.applications.end(),
                                        [&](const auto& each) { return each.name == made.name && each.ns == made.ns; });
        if (!made.name.empty() && other != catalogue.applications.end()) {
            fault(item.mark(), "bad-value",
                  fmt::format("{} is listed twice, first at {}", of, other->position.to_string()),
                  "remove one of them");
            return;
        }
        catalogue.applications.push_back(std::move(made));
    }

    std::optional<VersionBound> bound_of(const Node& mapping, const char* name) {
        const Node* node = mapping.find(name);
        const auto text = node == nullptr ? std::nullopt : string_of(*node, name);
        if (!text) { return std::nullopt; }
        auto bound = VersionBound::parse(*text);
        if (!bound) {
            fault(node->mark(), "bad-value",
                  fmt::format("{}: expected {}, found '{}'", name, k_bound_form, base::escape(*text)));
        }
        return bound;
    }

    /// Labels as a mapping, or as "a=b,c=d".
    selector::LabelSelector selector_of(const Node& node, const std::string& of) {
        selector::LabelSelector terms;
        if (node.is_mapping()) {
            for (const auto& member : node.members()) {
                if (member.value.is_string()) { terms.push_back({member.key, "In", {member.value.text()}});
                } else {
                    fault(member.value.mark(), "bad-value",
                          fmt::format("{}: selector: {}: expected a string, found {}", of, base::escape(member.key),
                                      found(member.value)));
                }
            }
        } else if (const auto text = string_of(node, "selector")) {
            for (const auto piece : base::split(*text, ',')) {
                const auto equals = piece.find('=');
                const auto key = base::trim(piece.substr(0, equals));
                const auto is_label = equals != std::string_view::npos && !key.empty() &&
                                      key.find_first_of("!<>() ") == std::string_view::npos;
                const auto wanted =
                    is_label ? base::trim(piece.substr(equals + (piece.substr(equals).starts_with("==") ? 2 : 1)))
                             : std::string_view();
                if (is_label && wanted.find_first_of("=!<>() ") == std::string_view::npos) {
                    terms.push_back({std::string(key), "In", {std::string(wanted)}});
                } else {
                    fault(node.mark(), "bad-value",
                          fmt::format("{}: selector: expected LABEL=VALUE,..., found '{}'", of, base::escape(piece)),
                          "or a mapping: selector: {app: web}");
                }
            }
        }
        if (node.is_mapping() && node.members().empty()) {
            fault(node.mark(), "bad-value", fmt::format("{}: selector: expected a label, found none", of),
                  "name a label that its Pods have");
        }
        return terms;
    }

    static void sort(Catalogue& catalogue) {
        std::sort(catalogue.versions.begin(), catalogue.versions.end(),
                  [](const auto& a, const auto& b) { return a.version < b.version; });
        std::sort(catalogue.minors.begin(), catalogue.minors.end(),
                  [](const auto& a, const auto& b) { return a.minor < b.minor; });
    }

    const value::Document& document_;
    Diagnostics& faults_;
};

}  // namespace

bool VersionEntry::follows(const Version& from) const {
    if (from >= version) { return false; }
    if (upgrade_from) { return std::find(upgrade_from->begin(), upgrade_from->end(), from) != upgrade_from->end(); }
    return from.major == version.major && minors_behind(from, version) <= 1;
}

const VersionEntry* Catalogue::find(const Version& version) const noexcept {
    const auto found =
        std::find_if(versions.begin(), versions.end(), [&](const auto& entry) { return entry.version == version; });
    return found == versions.end() ? nullptr : &*found;
}

const MinorFacts* Catalogue::facts_of(MinorVersion minor) const noexcept {
    const auto found =
        std::find_if(minors.begin(), minors.end(), [&](const auto& facts) { return facts.minor == minor; });
    return found == minors.end() ? nullptr : &*found;
}

std::vector<const KnownIssue*> Catalogue::issues_of(const Version& version) const {
    std::vector<const KnownIssue*> issues;
    const auto* facts = facts_of(version.line());
    if (facts == nullptr) { return issues; }
    for (const auto& known : facts->known_issues) {
        if (std::find(known.versions.begin(), known.versions.end(), version) != known.versions.end()) {
            issues.push_back(&known);
        }
    }
    return issues;
}

Catalogue read_catalogue(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
    Catalogue catalogue;
    catalogue.source = file;
    const std::size_t before = diagnostics.size();
    const auto documents = value::read_any(text, file, diagnostics);
    if (documents.empty()) {
        if (diagnostics.size() > before) { return catalogue; }
        Diagnostic empty;
        empty.code = "missing-field";
        empty.message = "the file is empty, expected a mapping with versions";
        empty.position = Position{file, 0, 0};
        empty.hint = "see manifests/kubernetes-versions.yaml for the form";
        diagnostics.push_back(std::move(empty));
        return catalogue;
    }
    for (const auto& document : documents) { CatalogueReader(document, diagnostics).read(catalogue); }
    return catalogue;
}

const Catalogue& builtin_catalogue() {
    static const Catalogue built_in = [] {
        Diagnostics faults;
        auto made = read_catalogue(k_builtin_versions, "kubernetes-versions.yaml", faults);
        if (!faults.empty()) { throw bug(fmt::format("built-in metadata: {}", faults.front().message)); }
        made.source = "built in";
        return made;
    }();
    return built_in;
}

void add_known(Catalogue& catalogue, const Catalogue& other) {
    for (const auto& facts : other.minors)
        if (catalogue.facts_of(facts.minor) == nullptr) { catalogue.minors.push_back(facts); }
    std::sort(catalogue.minors.begin(), catalogue.minors.end(),
              [](const auto& a, const auto& b) { return a.minor < b.minor; });
    for (auto& entry : catalogue.versions) {
        const auto* known = other.find(entry.version);
        if (known == nullptr) { continue; }
        for (auto tag : {&VersionEntry::etcd, &VersionEntry::coredns, &VersionEntry::pause})
            if ((entry.*tag).empty()) { entry.*tag = known->*tag; }
    }
}

}  // namespace kmm::kubernetes
