// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/documents.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "api/canonical.hpp"
#include "api/codec.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "plan/fleet/drift.hpp"

namespace kmm::tool_plan {

namespace {

using value::Node;

void set_unless_empty(Node& node, const char* key, const std::string& text) {
    if (!text.empty()) { node.set(key, text); }
}

Node count_node(std::size_t count) { return Node(static_cast<std::uint64_t>(count)); }

Node document(const char* kind) { return Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}}); }

Node object_counts(const Source& source) {
    return Node::mapping({{"nodes", count_node(source.objects.nodes.size())},
                          {"modules", count_node(source.objects.modules.size())},
                          {"nodeModulesConfigs", count_node(source.objects.node_modules_configs.size())},
                          {"secrets", count_node(source.objects.secrets.size())},
                          {"configMaps", count_node(source.objects.config_maps.size())}});
}

Node summary(const ActionCounts& counts) {
    Node node = Node::mapping();
    for (const auto action : k_actions) {
        const auto found = counts.find(action);
        node.set(std::string(plan::to_string(action)), count_node(found == counts.end() ? 0 : found->second));
    }
    return node;
}

}  // namespace

Node entry_node(const plan::Entry& entry) {
    Node node = Node::mapping();
    node.set("node", entry.node);
    set_unless_empty(node, "kernel", entry.kernel);
    set_unless_empty(node, "bootID", entry.boot_id);
    node.set("namespace", entry.namespace_);
    node.set("module", entry.module);
    set_unless_empty(node, "version", entry.version);
    if (entry.mapping_index) {
        Node mapping = Node::mapping();
        mapping.set("index", count_node(*entry.mapping_index));
        mapping.set(entry.mapping_literal ? "literal" : "regexp", entry.mapping_text);
        node.set("mapping", std::move(mapping));
    }
    set_unless_empty(node, "image", entry.image);
    node.set("action", plan::to_string(entry.action));
    node.set("reason", entry.reason);
    node.set("message", entry.message);
    if (entry.order) { node.set("order", count_node(*entry.order)); }
    if (!entry.needs.empty()) { node.set("needs", Node::strings(entry.needs)); }
    if (entry.config) { node.set("config", api::encode(*entry.config)); }
    return node;
}

Node diagnostics_node(const Diagnostics& diagnostics) {
    Node list = Node::sequence();
    for (const auto& diagnostic : diagnostics) {
        Node node = Node::mapping();
        node.set("code", diagnostic.code);
        node.set("severity", to_string(diagnostic.severity));
        node.set("message", diagnostic.message);
        if (diagnostic.position) {
            node.set("file", diagnostic.position->file);
            if (diagnostic.position->line != 0) {
                node.set("line", count_node(diagnostic.position->line));
                node.set("column", count_node(diagnostic.position->column));
            }
        }
        set_unless_empty(node, "hint", diagnostic.hint);
        list.push_back(std::move(node));
    }
    return list;
}

Node digests_node(const api::Objects& objects) {
    std::map<std::string, std::vector<std::string>, std::less<>> lines;
    api::canonical(objects, [&](std::string_view kind, const api::ObjectMeta& meta, const std::string& json) {
        lines[std::string(kind)].push_back(
            fmt::format("{}/{} {}\n", meta.namespace_, meta.name, digest::sha256_hex(json)));
    });
    Node node = Node::mapping();
    for (auto& [kind, list] : lines) {
        std::sort(list.begin(), list.end());
        node.set(kind, "sha256:" + digest::sha256_hex(base::join(list, "")));
    }
    std::map<std::string, std::string, std::less<>> loaders;
    for (const auto& module : objects.modules) {
        if (!module.module_loader) { continue; }
        loaders[plan::loader_digest_key(module.meta.namespace_, module.meta.name)] =
            "sha256:" + digest::sha256_hex(plan::loader_text(module));
    }
    for (auto& [key, digest] : loaders) { node.set(key, std::move(digest)); }
    return node;
}

Node plan_node(const Source& source, Node digests, const ActionCounts& counts, const Diagnostics& diagnostics,
               const plan::Options& options) {
    Node node = document("Plan");
    // Not where the objects came from: the plan of a dump and of a directory are the same bytes.
    Node from = Node::mapping({{"objects", object_counts(source)}, {"digests", std::move(digests)}});
    if (const auto* said = source.description.find("whatIf"); said != nullptr) { from.set("whatIf", *said); }
    node.set("source", std::move(from));
    node.set("state", options.next ? "next" : "settled");
    node.set("entries", Node::sequence());
    node.set("summary", summary(counts));
    node.set("diagnostics", diagnostics_node(diagnostics));
    return node;
}

Node with_cluster(const std::string& cluster, Node item) {
    auto& members = item.members();
    members.insert(members.begin(), value::Member{"cluster", {}, Node(cluster)});
    return item;
}

Node joined_plan_node(const std::vector<std::pair<std::string, Node>>& plans) {
    Node clusters = Node::sequence();
    Node diagnostics = Node::sequence();
    Node sums = Node::mapping();
    std::string state;
    for (const auto& [cluster, plan] : plans) {
        clusters.push_back(with_cluster(cluster, *plan.find("source")));
        for (const auto& finding : plan.find("diagnostics")->items()) {
            diagnostics.push_back(with_cluster(cluster, finding));
        }
        for (const auto& count : plan.find("summary")->members()) {
            const Node* before = sums.find(count.key);
            const std::uint64_t sum =
                (before == nullptr ? 0 : before->as_uint().value_or(0)) + count.value.as_uint().value_or(0);
            sums.set(count.key, sum);
        }
        state = plan.get_string({"state"});
    }
    Node node = document("Plan");
    node.set("source", Node::mapping({{"clusters", std::move(clusters)}}));
    node.set("state", state);
    node.set("entries", Node::sequence());
    node.set("summary", std::move(sums));
    node.set("diagnostics", std::move(diagnostics));
    return node;
}

Node why_node(const plan::Why& why) {
    Node node = document("Why");
    node.set("settled", entry_node(why.settled));
    node.set("next", entry_node(why.next));
    Node facts = Node::sequence();
    for (const auto& line : why.lines) {
        Node fact = Node::mapping({{"topic", line.topic}});
        if (line.mark != plan::Mark::fact) { fact.set("holds", line.mark == plan::Mark::passed); }
        fact.set("text", line.text);
        facts.push_back(std::move(fact));
    }
    node.set("facts", std::move(facts));
    node.set("changes", Node::strings(why.changes));
    return node;
}

Node validation_node(const Source& source) {
    Node node = document("Validation");
    node.set("source", source.description);
    node.set("objects", object_counts(source));
    node.set("diagnostics", diagnostics_node(source.diagnostics));
    return node;
}

}  // namespace kmm::tool_plan
