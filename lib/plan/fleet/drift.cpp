// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/drift.hpp"

#include <fmt/format.h>

#include "api/canonical.hpp"
#include "api/codec.hpp"
#include "base/text.hpp"

namespace kmm::plan {

namespace {

using value::Node;

Error bad_plan(const value::Document& document, const Node& at, std::string message) {
    return Error(Exit::data, "bad-plan", std::move(message))
        .at(document.position(at.mark()))
        .hint("a plan file is what kmm-plan show -o json prints of one cluster");
}

std::string required_text(const value::Document& document, const Node& entry, const char* key) {
    const auto* found = entry.find(key);
    if (found == nullptr || !found->is_string())
        throw bad_plan(document, entry, fmt::format("an entry of the plan has no text \"{}\"", key));
    return entry.get_string({key});
}

std::string said(const std::string& text) { return text.empty() ? "none" : text; }

/// "kernel 6.1.0-55 is now 6.1.0-56; action load (not-loaded) is now blocked (taint)", "" if nothing differs.
std::string difference(const SavedEntry& was, const Entry& is) {
    std::vector<std::string> parts;
    const auto compare = [&](const char* what, const std::string& before, const std::string& after) {
        if (before != after) parts.push_back(fmt::format("{} {} is now {}", what, said(before), said(after)));
    };
    compare("kernel", was.kernel, is.kernel);
    compare("version", was.version, is.version);
    compare("image", was.image, is.image);
    compare("action", fmt::format("{} ({})", was.action, was.reason),
            fmt::format("{} ({})", to_string(is.action), is.reason));
    const Node config = is.config ? api::encode(*is.config) : Node();
    if (parts.empty() && !was.config.same_value(config)) {
        for (const auto& member : config.members()) {
            const auto* before = was.config.find(member.key);
            if (before == nullptr || !before->same_value(member.value))
                parts.push_back("config." + member.key + " differs");
        }
        for (const auto& member : was.config.members())
            if (config.find(member.key) == nullptr) parts.push_back("config." + member.key + " is gone");
    }
    return base::join(parts, "; ");
}

}  // namespace

std::string loader_digest_key(const std::string& ns, const std::string& module) {
    return fmt::format("moduleLoader/{}/{}", ns, module);
}

std::string loader_text(const api::Module& module) {
    api::Objects alone;
    alone.modules.emplace_back().module_loader = module.module_loader;
    std::string text;
    api::canonical(alone, [&](std::string_view, const api::ObjectMeta&, const std::string& json) { text = json; });
    return text;
}

SavedPlan read_saved_plan(const value::Document& document, const std::string& ns, const std::string& module) {
    const Node& root = document.root;
    const auto version = root.get_string({"apiVersion"});
    const auto kind = root.get_string({"kind"});
    if (version != "kmmtools/v1" || kind != "Plan")
        throw bad_plan(
            document, root,
            fmt::format("expected apiVersion kmmtools/v1 and kind Plan, found \"{}\" and \"{}\"", version, kind));
    const auto* entries = root.find("entries");
    if (entries == nullptr || !entries->is_sequence())
        throw bad_plan(document, root, "the plan has no list of entries");
    if (const auto* imagined = root.find_path({"source", "whatIf"}); imagined != nullptr && !imagined->items().empty())
        throw bad_plan(document, *imagined, "the plan was made of facts that are only imagined (whatIf)");
    SavedPlan saved;
    saved.next = root.get_string({"state"}) == "next";
    saved.loader_digest = root.get_string({"source", "digests", loader_digest_key(ns, module)});
    for (const auto& item : entries->items()) {
        if (item.find("cluster") != nullptr) throw bad_plan(document, item, "the plan covers several clusters");
        const auto node = required_text(document, item, "node");
        if (required_text(document, item, "namespace") != ns || required_text(document, item, "module") != module)
            continue;
        SavedEntry entry;
        entry.kernel = item.get_string({"kernel"});
        entry.version = item.get_string({"version"});
        entry.image = item.get_string({"image"});
        entry.action = required_text(document, item, "action");
        entry.reason = required_text(document, item, "reason");
        if (const auto* config = item.find("config")) entry.config = *config;
        if (!saved.nodes.emplace(node, std::move(entry)).second)
            throw bad_plan(document, item,
                           fmt::format("the plan has two entries of {}/{} on node {}", ns, module, node));
    }
    if (saved.nodes.empty())
        throw bad_plan(document, *entries, fmt::format("the plan has no entry of {}/{}", ns, module));
    return saved;
}

std::vector<std::pair<std::string, std::string>> drift(const SavedPlan& saved, const Plan& now, const std::string& ns,
                                                       const std::string& module) {
    std::map<std::string, std::string> found;
    for (const auto& [node, entry] : saved.nodes) found.emplace(node, "is in the plan, but no longer in the cluster");
    for (const auto& entry : now.entries) {
        if (entry.namespace_ != ns || entry.module != module) continue;
        const auto was = saved.nodes.find(entry.node);
        found[entry.node] = was == saved.nodes.end() ? fmt::format("is not in the plan; action is {} ({})",
                                                                   to_string(entry.action), entry.reason)
                                                     : difference(was->second, entry);
    }
    std::erase_if(found, [](const auto& item) { return item.second.empty(); });
    return {found.begin(), found.end()};
}

}  // namespace kmm::plan
