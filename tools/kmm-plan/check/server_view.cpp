// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/check/server_view.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::tool_plan {

namespace {

using value::Node;

Diagnostic server_finding(Severity severity, const char* code, std::string message, std::string hint) {
    Diagnostic finding;
    finding.severity = severity;
    finding.code = code;
    finding.message = std::move(message);
    finding.hint = std::move(hint);
    return finding;
}

}  // namespace

Node merge_patch_between(const Node& from, const Node& to) {
    Node patch = Node::mapping();
    for (const auto& member : to.members()) {
        const Node* old = from.find(member.key);
        if (old == nullptr) {
            patch.set(member.key, member.value);
        } else if (old->is_mapping() && member.value.is_mapping()) {
            Node inner = merge_patch_between(*old, member.value);
            if (!inner.members().empty()) { patch.set(member.key, std::move(inner)); }
        } else if (!old->same_value(member.value)) {
            patch.set(member.key, member.value);
        }
    }
    for (const auto& member : from.members()) {
        if (to.find(member.key) == nullptr) { patch.set(member.key, Node()); }
    }
    return patch;
}

std::optional<Node> ServerView::after(const std::string& kind, const std::string& name, const Node& observed,
                                      const Node& wanted) {
    std::optional<Node> result;
    live_.in_time([&] { result = ask(kind, name, observed, wanted); });
    return result;
}

std::optional<Node> ServerView::ask(const std::string& kind, const std::string& name, const Node& observed,
                                    const Node& wanted) {
    const kube::Resource& resource =
        kind == "Node" ? kube::resources::k_nodes : kube::resources::k_node_modules_configs;
    kube::Client& client = live_.client();
    if (!is_allowed_ || (!resource.group.empty() && !client.serves(resource))) { return std::nullopt; }
    try {
        if (!observed.is_null()) {
            return client.merge_patch(resource, {"", name}, merge_patch_between(observed, wanted), "",
                                      kube::DryRun::all);
        }
        Node object = Node::mapping({{"apiVersion", resource.api_version()}, {"kind", kind}});
        Node metadata = Node::mapping({{"name", name}});
        if (const Node* labels = wanted.find_path({"metadata", "labels"}); labels != nullptr) {
            metadata.set("labels", *labels);
        }
        object.set("metadata", std::move(metadata));
        if (const Node* spec = wanted.find("spec"); spec != nullptr) { object.set("spec", *spec); }
        return client.create(resource, object, kube::DryRun::all);
    } catch (const Error& error) {
        if (error.code() == "forbidden") {
            is_allowed_ = false;
            findings_.push_back(server_finding(
                Severity::warning, "dry-run-forbidden",
                "the server does not let us ask what would change, so it is compared here: " + error.message(),
                error.hint()));
        } else if (error.code() == "rejected") {
            findings_.push_back(server_finding(Severity::error, "rejected", error.message(), ""));
        } else if (error.code() != "object-not-found" && error.code() != "already-exists") {
            throw;
        }
        return std::nullopt;
    }
}

}  // namespace kmm::tool_plan
