// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/check/scan.hpp"

#include <algorithm>
#include <set>

#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

struct Way {
    const char *name, *member;
};
constexpr Way k_ways[] = {{"binaries", "directories"}, {"packages", "packages"}};

std::vector<std::string> texts(const std::vector<Version>& versions) {
    std::vector<std::string> made;
    for (const auto& version : versions) { made.push_back(version.text()); }
    return made;
}

/// What a node says of each version; "" where it is whole.
using Offer = std::map<Version, std::string>;

Offer read_offer(const std::string& node, const Node& facts, const Way& way, ScanResult& result) {
    Offer offer;
    const auto* found = facts.find_path({"scan", way.member});
    const auto* versions = found == nullptr ? nullptr : found->find("versions");
    if (versions == nullptr) {
        const auto field = fmt::format("scan.{}", way.member);
        result.unread.push_back({node, way.name, unread(facts, field)});
        return offer;
    }
    for (const auto& item : versions->items()) {
        const auto text = text_of(item, {"version"});
        const auto version = Version::parse(text);
        if (!version) {
            result.ignored.push_back({node, text, fmt::format("expected {}", k_version_form)});
        } else {
            const auto problem = text_of(item, {"problem"});
            offer[*version] = flag_of(item, {"whole"}) == true ? "" : problem.empty() ? "not whole" : problem;
        }
    }
    if (const auto* ignored = found->find("ignored")) {
        for (const auto& item : ignored->items())
            result.ignored.push_back({node, text_of(item, {"name"}), text_of(item, {"reason"})});
    }
    return offer;
}

std::set<Version> running(const Observation& seen) {
    std::set<Version> versions;
    for (const auto& node : seen.control_plane_nodes) {
        if (const auto version = seen.control_plane_of(node)) { versions.insert(*version); }
    }
    for (const auto& kubelet : seen.kubelets) {
        if (kubelet.version) { versions.insert(*kubelet.version); }
    }
    return versions;
}

}  // namespace

ScanResult read_scan(const NodeAnswers& answers, const Observation& seen, const Catalogue& catalogue) {
    ScanResult result;
    const auto runs = running(seen);
    std::map<Version, ScannedVersion> all;
    for (const auto& version : runs) { all[version].runs = true; }
    for (const auto& [name, answer] : answers) {
        if (answer.facts.is_null()) { result.silent.push_back({name, "", answer.problem}); }
    }
    for (const auto& way : k_ways) {
        std::map<std::string, Offer> offers;
        std::set<Version> offered;
        std::set<std::string> unread_nodes;
        for (const auto& [name, answer] : answers) {
            if (answer.facts.is_null()) { continue; }
            const auto before = result.unread.size();
            offers[name] = read_offer(name, answer.facts, way, result);
            if (result.unread.size() != before) { unread_nodes.insert(name); }
            for (const auto& [version, problem] : offers[name]) { offered.insert(version); }
        }
        for (const auto& version : offered) {
            ScannedWay made{way.name, {}, {}};
            for (const auto& [name, offer] : offers) {
                const auto found = offer.find(version);
                if (found != offer.end() && found->second.empty()) {
                    made.nodes.push_back(name);
                } else {
                    made.lacking.emplace_back(name, found != offer.end()       ? found->second
                                                    : unread_nodes.contains(name) ? "could not be read"
                                                                                  : "not there");
                }
            }
            auto& one = all[version];
            one.is_proposed = one.is_proposed || (made.lacking.empty() && result.silent.empty());
            one.ways.push_back(std::move(made));
        }
    }
    std::vector<Version> known;
    for (auto& [version, one] : all) {
        one.version = version;
        one.is_proposed = one.is_proposed || one.runs;
        if (one.is_proposed) { known.push_back(version); }
        result.versions.push_back(std::move(one));
    }
    for (const auto& version : known) {
        const auto* listed = catalogue.find(version);
        VersionEntry entry;
        if (listed != nullptr) { entry = *listed; }
        entry.version = version;
        if (!entry.upgrade_from) {
            std::vector<Version> from;
            for (const auto& other : known) {
                if (entry.follows(other)) { from.push_back(other); }
            }
            entry.upgrade_from = std::move(from);
        }
        result.entries.push_back(std::move(entry));
    }
    return result;
}

Node entry_node(const VersionEntry& entry) {
    auto made = Node::mapping({{"version", entry.version.text()}});
    if (entry.upgrade_from) { made.set("upgrade_from", Node::strings(texts(*entry.upgrade_from))); }
    if (!entry.downgrade_to.empty()) { made.set("downgrade_to", Node::strings(texts(entry.downgrade_to))); }
    if (!entry.applied_patches.empty()) { made.set("applied_patches", Node::strings(entry.applied_patches)); }
    if (!entry.available_patches.empty()) { made.set("available_patches", Node::strings(entry.available_patches)); }
    for (const auto& [name, text] : {std::pair("etcd", &entry.etcd), std::pair("coredns", &entry.coredns),
                                     std::pair("pause", &entry.pause)}) {
        if (!text->empty()) { made.set(name, *text); }
    }
    return made;
}

}  // namespace kmm::kubernetes
