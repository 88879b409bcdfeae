// SPDX-License-Identifier: Apache-2.0
// Run and its parts as trees. One list of members serves both directions of each type.
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "upgrade/replay.hpp"
#include "upgrade/run.hpp"

namespace kmm::upgrade {
namespace {

/// Writes members that are not empty.
class Writer {
public:
    explicit Writer(value::Node& target) : target_(target) {}
    void text(const char* key, const std::string& value) const {
        if (!value.empty()) target_.set(key, value);
    }
    void number(const char* key, std::int64_t value) const {
        if (value != 0) target_.set(key, value);
    }
    void count(const char* key, std::uint64_t value) const {
        if (value != 0) target_.set(key, value);
    }
    void via(const char* key, Via value) const { target_.set(key, to_string(value)); }
    void flag(const char* key, bool value, bool usual) const {
        if (value != usual) target_.set(key, value);
    }
    void tree(const char* key, const value::Node& value) const {
        if (!value.is_null()) target_.set(key, value);
    }
    void identity(const char* key, const Identity& value) const {
        if (!value.empty() || !value.version.empty()) target_.set(key, encode(value));
    }

private:
    value::Node& target_;
};

/// Collects the names of members.
class Names {
public:
    template <typename Value>
    void text(const char* key, const Value&) const { keys.insert(key); }
    template <typename Value>
    void number(const char* key, const Value&) const { keys.insert(key); }
    template <typename Value>
    void count(const char* key, const Value&) const { keys.insert(key); }
    template <typename Value>
    void via(const char* key, const Value&) const { keys.insert(key); }
    template <typename Value>
    void flag(const char* key, const Value&, bool) const { keys.insert(key); }
    mutable std::set<std::string> keys;
};

[[noreturn]] void wrong(const char* key, const char* expected, const value::Node& found) {
    throw Error(Exit::io, "state-damaged",
                fmt::format("{} of the record is a {}, expected a {}", key, value::kind_name(found.kind()), expected));
}

/// Reads members that are there; absent ones leave the target alone.
class Reader {
public:
    explicit Reader(const value::Node& source) : source_(source) {}
    void text(const char* key, std::string& target) const {
        const auto* found = source_.find(key);
        if (found == nullptr) return;
        if (!found->is_string()) wrong(key, "string", *found);
        target = found->text();
    }
    void number(const char* key, std::int64_t& target) const {
        const auto* found = source_.find(key);
        if (found == nullptr) return;
        const auto number = found->as_int();
        if (!number) wrong(key, "number", *found);
        target = *number;
    }
    void count(const char* key, std::uint64_t& target) const {
        const auto* found = source_.find(key);
        if (found == nullptr) return;
        const auto number = found->as_uint();
        if (!number) wrong(key, "number", *found);
        target = *number;
    }
    void via(const char* key, Via& target) const {
        std::string text(to_string(target));
        this->text(key, text);
        const auto known = parse_via(text);
        if (!known)
            throw Error(Exit::config, "state-newer", fmt::format("{} of the record is \"{}\", expected self, operator, ssh or local", key, text))
                .hint("use the version of kmm-upgrade that wrote it");
        target = *known;
    }
    void flag(const char* key, bool& target, bool /*usual*/) const {
        const auto* found = source_.find(key);
        if (found == nullptr) return;
        const auto flag = found->as_bool();
        if (!flag) wrong(key, "boolean", *found);
        target = *flag;
    }
    void tree(const char* key, value::Node& target) const {
        const auto* found = source_.find(key);
        if (found != nullptr) target = *found;
    }
    void identity(const char* key, Identity& target) const {
        const auto* found = source_.find(key);
        if (found == nullptr) return;
        if (!found->is_mapping()) wrong(key, "mapping", *found);
        target = decode_identity(*found);
    }

private:
    const value::Node& source_;
};

template <typename Visitor, typename Record>
void visit_identity(const Visitor& visit, Record& it) {
    visit.text("srcversion", it.srcversion);
    visit.text("buildID", it.build_id);
    visit.text("sha256", it.sha256);
    visit.text("version", it.version);
}

/// Everything of a node but its name and what only events may change.
template <typename Visitor, typename Record>
void visit_facts(const Visitor& visit, Record& it) {
    visit.text("kernel", it.kernel);
    visit.text("bootID", it.boot_id);
    visit.text("architecture", it.architecture);
    visit.text("next", it.next);
    visit.text("goal", it.goal);
    visit.text("fromVersion", it.from_version);
    visit.tree("fromEntry", it.from_entry);
    visit.identity("fromIdentity", it.from_identity);
    visit.tree("fromLabels", it.from_labels);
    visit.text("targetImage", it.target_image);
    visit.text("targetDigest", it.target_digest);
    visit.tree("targetEntry", it.target_entry);
    visit.identity("targetIdentity", it.target_identity);
    visit.text("currentVersion", it.current_version);
    visit.flag("currentKnown", it.current_known, true);
    visit.identity("live", it.live);
    visit.text("zone", it.zone);
    visit.text("cordon", it.cordon);
    visit.text("message", it.message);
    visit.text("kernelLine", it.kernel_line);
    visit.text("hint", it.hint);
}

template <typename Visitor, typename Record>
void visit_progress(const Visitor& visit, Record& it) {
    visit.text("name", it.name);
    visit.text("state", it.state);
    visit.flag("open", it.open, false);
    visit.text("step", it.step);
    visit.text("since", it.since);
    visit.count("touched", it.touched);
    visit.number("attempts", it.attempts);
    visit.text("reason", it.reason);
}

template <typename Visitor, typename Record>
void visit_options(const Visitor& visit, Record& it) {
    visit.text("order", it.order);
    visit.flag("allNodes", it.all_nodes, false);
    visit.number("canary", it.canary);
    visit.number("pauseAfter", it.pause_after);
    visit.number("maxUnavailable", it.max_unavailable);
    visit.number("nodeTimeoutMs", it.node_timeout_ms);
    visit.flag("manual", it.manual, false);
    visit.via("runner", it.via);
    visit.text("operatorSaid", it.operator_said);
    visit.flag("repair", it.repair, false);
    visit.text("worker", it.worker);
    visit.text("workerImage", it.worker_image);
    visit.text("leaseNamespace", it.lease_namespace);
    visit.text("sshConfig", it.ssh_config);
    visit.flag("drain", it.drain, false);
    visit.flag("evictUsers", it.evict_users, false);
    visit.text("userResources", it.user_resources);
    visit.flag("drainUnmanaged", it.drain_unmanaged, false);
    visit.flag("drainLocalData", it.drain_local_data, false);
    visit.number("graceSeconds", it.grace_seconds);
    visit.flag("evictAtOnce", it.evict_at_once, false);
    visit.flag("countUnavailable", it.count_unavailable, false);
    visit.number("failureBudget", it.failure_budget);
    visit.number("soakMs", it.soak_ms);
    visit.text("between", it.between);
    visit.text("timeZone", it.time_zone);
    visit.text("check", it.check);
    visit.text("onEvent", it.on_event);
}

template <typename Visitor, typename Record>
void visit_run(const Visitor& visit, Record& it) {
    visit.text("lineage", it.lineage);
    visit.text("procedure", it.procedure);
    visit.text("clusterIdentity", it.cluster_identity);
    visit.text("clusterPlace", it.cluster_place);
    visit.text("clusterContext", it.cluster_context);
    visit.text("created", it.created);
    visit.text("createdBy", it.created_by);
    visit.text("toolVersion", it.tool_version);
    visit.text("createdDefinitions", it.created_definitions);
    visit.flag("adopted", it.adopted, false);
    visit.text("moduleNamespace", it.module_namespace);
    visit.text("moduleName", it.module_name);
    visit.text("kernelModule", it.kernel_module);
    visit.text("fromVersion", it.from_version);
    visit.text("toVersion", it.to_version);
    visit.text("restModules", it.rest.modules);
    visit.text("restNodes", it.rest.nodes);
    visit.text("restSelector", it.rest.selector);
    visit.text("restShare", it.rest.share);
    visit.flag("partialBefore", it.partial_before, false);
    visit.text("state", it.state);
    visit.text("since", it.since);
    visit.flag("paused", it.paused, false);
    visit.text("pauseReason", it.pause_reason);
    visit.text("pauseMessage", it.pause_message);
    visit.number("batchBase", it.batch_base);
    visit.text("resumedIn", it.resumed_in);
    visit.count("events", it.events);
    visit.text("stepReason", it.step_reason);
    visit.text("stepMessage", it.step_message);
    visit.text("stepHint", it.step_hint);
}

/// True for a member of a header that this program does not know.
bool unknown_member(const std::string& key) {
    static const std::set<std::string> known = [] {
        Names names;
        const Run empty;
        visit_run(names, empty);
        names.keys.insert({"event", "formatVersion", "minReader", "tool", "rollback", "options", "nodes", "leftOut"});
        return names.keys;
    }();
    return known.count(key) == 0;
}

}  // namespace

value::Node encode(const Identity& identity) {
    auto node = value::Node::mapping();
    visit_identity(Writer(node), identity);
    return node;
}

Identity decode_identity(const value::Node& node) {
    Identity identity;
    visit_identity(Reader(node), identity);
    return identity;
}

void merge(NodeRecord& node, const value::Node& facts) { visit_facts(Reader(facts), node); }

value::Node encode(const NodeRecord& node) {
    auto tree = value::Node::mapping();
    visit_progress(Writer(tree), node);
    visit_facts(Writer(tree), node);
    return tree;
}

value::Node encode(const std::vector<LeftOut>& nodes) {
    auto list = value::Node::sequence();
    for (const auto& node : nodes) list.push_back(value::Node::mapping({{"name", node.name}, {"reason", node.reason}}));
    return list;
}

value::Node encode(const Run& run) {
    auto tree = value::Node::mapping({{"event", "header"}, {"formatVersion", k_format_version}, {"minReader", k_format_version},
                                      {"tool", "kmm-upgrade"}});
    visit_run(Writer(tree), run);
    if (run.rollback) tree.set("rollback", to_string(*run.rollback));
    auto options = value::Node::mapping();
    visit_options(Writer(options), run.options);
    tree.set("options", std::move(options));
    auto nodes = value::Node::sequence();
    for (const auto& node : run.nodes) nodes.push_back(encode(node));
    tree.set("nodes", std::move(nodes));
    if (!run.left_out.empty()) tree.set("leftOut", encode(run.left_out));
    for (const auto& member : run.extra.members()) tree.set(member.key, member.value);
    return tree;
}

Run decode_run(const value::Node& node, const Procedures& procedures) {
    if (!node.is_mapping() || node.get_string({"event"}) != "header")
        throw Error(Exit::io, "state-damaged", "the journal does not begin with a header");
    std::int64_t reader_min = k_format_version;
    Reader(node).number("minReader", reader_min);
    if (reader_min > k_format_version)
        throw Error(Exit::config, "state-newer",
                    fmt::format("the record needs format {}, this program reads format {}", reader_min, k_format_version))
            .hint(fmt::format("use kmm-upgrade {} or newer", node.get_string({"toolVersion"})));
    Run run;
    Reader(node).text("procedure", run.procedure);
    Reader(node).text("toolVersion", run.tool_version);
    run.rules = &find_procedure(run, procedures);  // of the members of one that is not known nothing can be said
    visit_run(Reader(node), run);
    if (const auto* options = node.find("options")) visit_options(Reader(*options), run.options);
    if (const auto* rollback = node.find("rollback")) {
        run.rollback = parse_rollback(rollback->text());
        if (!run.rollback) wrong("rollback", "known policy", *rollback);
    }
    if (const auto* nodes = node.find("nodes")) {
        for (const auto& item : nodes->items()) {
            NodeRecord record;
            visit_progress(Reader(item), record);
            visit_facts(Reader(item), record);
            if (record.name.empty()) throw Error(Exit::io, "state-damaged", "a node of the record has no name");
            if (run.find(record.name) != nullptr)
                throw Error(Exit::io, "state-damaged", fmt::format("node {} is in the record twice", record.name));
            run.nodes.push_back(std::move(record));
        }
    }
    if (const auto* list = node.find("leftOut"))
        for (const auto& item : list->items()) run.left_out.push_back({item.get_string({"name"}), item.get_string({"reason"})});
    for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"state", run.state},
                                     {"lineage", run.lineage},
                                     {"moduleName", run.module_name},
                                     {"toVersion", run.is_apply() ? run.module_name : run.to_version}})
        if (text.empty()) throw Error(Exit::io, "state-damaged", fmt::format("the record has no {}", name));
    for (const auto& member : node.members())
        if (unknown_member(member.key)) run.extra.set(member.key, member.value);
    return run;
}

}  // namespace kmm::upgrade
