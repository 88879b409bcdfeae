// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module/subject.hpp"

#include <algorithm>
#include <array>

namespace kmm::upgrade::module {
namespace {

const std::string& text_in(const value::Node& tree, std::string_view name) {
    static const std::string none;
    const auto* found = tree.is_null() ? nullptr : tree.find(name);
    return found == nullptr ? none : found->text();
}

value::Node tree_in(const value::Node& tree, std::string_view name) {
    const auto* found = tree.is_null() ? nullptr : tree.find(name);
    return found == nullptr ? value::Node() : *found;
}

/// Collects members that are not empty.
class Members {
public:
    void text(const char* name, const std::string& text) {
        if (!text.empty()) set(name, text);
    }
    void tree(const char* name, const value::Node& tree) {
        if (!tree.is_null()) set(name, tree);
    }
    void identity(const char* name, const Identity& identity) {
        if (auto tree = encode(identity); !tree.members().empty()) set(name, std::move(tree));
    }
    [[nodiscard]] value::Node take() { return std::move(members_); }

private:
    void set(const char* name, value::Node value) {
        if (members_.is_null()) members_ = value::Node::mapping();
        members_.set(name, std::move(value));
    }
    value::Node members_;
};

}  // namespace

std::string Identity::brief() const {
    const std::string& best = !srcversion.empty() ? srcversion : !build_id.empty() ? build_id : sha256;
    return best.substr(0, 12);
}

Sameness compare(const Identity& left, const Identity& right) noexcept {
    const bool has_sources = !left.srcversion.empty() && !right.srcversion.empty();
    if (has_sources && left.srcversion != right.srcversion) return Sameness::different;
    if (!left.build_id.empty() && !right.build_id.empty())
        return left.build_id == right.build_id ? Sameness::same : Sameness::different;
    return has_sources ? Sameness::same : Sameness::unknown;
}

value::Node encode(const Identity& identity) {
    auto tree = value::Node::mapping();
    if (!identity.srcversion.empty()) tree.set("srcversion", identity.srcversion);
    if (!identity.build_id.empty()) tree.set("buildID", identity.build_id);
    if (!identity.sha256.empty()) tree.set("sha256", identity.sha256);
    if (!identity.version.empty()) tree.set("version", identity.version);
    return tree;
}

Identity decode_identity(const value::Node& node) {
    return Identity{text_in(node, "srcversion"), text_in(node, "buildID"), text_in(node, "sha256"),
                    text_in(node, "version")};
}

Subject subject_of(const Header& run) {
    const auto& tree = run.subject;
    Subject subject;
    subject.ns = text_in(tree, "moduleNamespace");
    subject.name = text_in(tree, "moduleName");
    subject.kernel_module = text_in(tree, "kernelModule");
    subject.created_definitions = text_in(tree, "createdDefinitions");
    subject.rest = Rest{text_in(tree, "restModules"), text_in(tree, "restNodes"), text_in(tree, "restSelector"),
                        text_in(tree, "restShare")};
    return subject;
}

void set_subject(Header& run, const Subject& subject) {
    Members members;
    members.text("moduleNamespace", subject.ns);
    members.text("moduleName", subject.name);
    members.text("kernelModule", subject.kernel_module);
    members.text("createdDefinitions", subject.created_definitions);
    members.text("restModules", subject.rest.modules);
    members.text("restNodes", subject.rest.nodes);
    members.text("restSelector", subject.rest.selector);
    members.text("restShare", subject.rest.share);
    run.subject = members.take();
}

void set_created_definitions(Header& run, const std::string& names) {
    auto subject = subject_of(run);
    subject.created_definitions = names;
    set_subject(run, subject);
}

std::string full_name(const Header& run) {
    return text_in(run.subject, "moduleNamespace") + "/" + text_in(run.subject, "moduleName");
}

Node read(const NodeRecord& record) {
    Node node;
    static_cast<NodeRecord&>(node) = record;
    const auto& tree = record.facts;
    node.next = text_in(tree, "next");
    node.goal = text_in(tree, "goal");
    node.from_entry = tree_in(tree, "fromEntry");
    node.from_identity = decode_identity(tree_in(tree, "fromIdentity"));
    node.from_labels = tree_in(tree, "fromLabels");
    node.target_image = text_in(tree, "targetImage");
    node.target_digest = text_in(tree, "targetDigest");
    node.target_entry = tree_in(tree, "targetEntry");
    node.target_identity = decode_identity(tree_in(tree, "targetIdentity"));
    node.live = decode_identity(tree_in(tree, "live"));
    node.kernel_line = text_in(tree, "kernelLine");
    return node;
}

NodeRecord record_of(Node node) {
    Members members;
    members.text("next", node.next);
    members.text("goal", node.goal);
    members.tree("fromEntry", node.from_entry);
    members.identity("fromIdentity", node.from_identity);
    members.tree("fromLabels", node.from_labels);
    members.text("targetImage", node.target_image);
    members.text("targetDigest", node.target_digest);
    members.tree("targetEntry", node.target_entry);
    members.identity("targetIdentity", node.target_identity);
    members.identity("live", node.live);
    members.text("kernelLine", node.kernel_line);
    NodeRecord record = std::move(node);
    record.facts = members.take();
    return record;
}

const std::string& text_of(const NodeRecord& record, std::string_view name) { return text_in(record.facts, name); }

bool goes_away(const NodeRecord& record) { return text_of(record, "goal") == k_goal_absent; }

bool drains_ahead(const Run& run) {
    constexpr std::array<std::string_view, 5> k_before{"pending", "checking", "cordoning", "cordoned", "draining"};
    if (!run.options.drain || run.rollback || is_final_run_state(run.state)) return false;
    return std::any_of(run.nodes.begin(), run.nodes.end(), [&](const NodeRecord& node) {
        std::string_view state = node.state;
        if (is_failed_node_state(state)) state = state.substr(0, state.rfind('-'));
        return std::find(k_before.begin(), k_before.end(), state) != k_before.end();
    });
}

}  // namespace kmm::upgrade::module
