// SPDX-License-Identifier: Apache-2.0
// Run and its parts as trees. One list of members serves both directions of each type.
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade {
namespace {

/// Writes members that are not empty, those of a procedure behind the member of the engine that they follow.
class Writer {
public:
    explicit Writer(value::Node& target) : target_(target) {}
    Writer(value::Node& target, const std::vector<Member>& members, const value::Node& values)
        : target_(target), members_(&members), values_(&values) {}
    void text(const char* key, const std::string& value) const {
        if (!value.empty()) target_.set(key, value);
        follow(key);
    }
    void number(const char* key, std::int64_t value) const {
        if (value != 0) target_.set(key, value);
        follow(key);
    }
    void count(const char* key, std::uint64_t value) const {
        if (value != 0) target_.set(key, value);
        follow(key);
    }
    void via(const char* key, Via value) const { target_.set(key, to_string(value)); }
    void flag(const char* key, bool value, bool usual) const {
        if (value != usual) target_.set(key, value);
        follow(key);
    }

private:
    void follow(const char* key) const {
        if (members_ == nullptr || values_->is_null()) return;
        for (const auto& member : *members_)
            if (member.after == key)
                if (const auto* value = values_->find(member.name)) target_.set(member.name, *value);
    }
    value::Node& target_;
    const std::vector<Member>* members_ = nullptr;
    const value::Node* values_ = nullptr;
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
            throw Error(Exit::config, "state-newer",
                        fmt::format("{} of the record is \"{}\", expected self, operator, ssh or local", key, text))
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
    /// Those of a procedure; what is empty is taken away.
    void members(const std::vector<Member>& members, value::Node& target) const {
        for (const auto& member : members) {
            const auto* found = source_.find(member.name);
            if (found == nullptr) continue;
            const char* key = member.name.c_str();
            if (member.kind == MemberKind::text && !found->is_string()) wrong(key, "string", *found);
            if (member.kind != MemberKind::text && !found->is_mapping() && !found->is_null())
                wrong(key, "mapping", *found);
            if (target.is_null()) target = value::Node::mapping();
            const bool is_empty =
                member.kind == MemberKind::text
                    ? found->text().empty()
                    : found->is_null() || (member.kind == MemberKind::mapping && found->members().empty());
            if (is_empty) target.erase(member.name);
            else target.set(member.name, *found);
        }
    }

private:
    const value::Node& source_;
};

/// Everything of a node but its name and what only events may change.
template <typename Visitor, typename Record>
void visit_facts(const Visitor& visit, Record& it) {
    visit.text("kernel", it.kernel);
    visit.text("bootID", it.boot_id);
    visit.text("architecture", it.architecture);
    visit.text("fromVersion", it.from_version);
    visit.text("currentVersion", it.current_version);
    visit.flag("currentKnown", it.current_known, true);
    visit.text("zone", it.zone);
    visit.text("cordon", it.cordon);
    visit.text("message", it.message);
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
    visit.text("workerNamespace", it.worker_namespace);
    visit.text("imagePolicy", it.image_policy);
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
    visit.text("commandDirectory", it.command_directory);
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
    visit.flag("adopted", it.adopted, false);
    visit.text("fromVersion", it.from_version);
    visit.text("toVersion", it.to_version);
    visit.flag("partialBefore", it.partial_before, false);
    visit.text("state", it.state);
    visit.text("since", it.since);
    visit.flag("paused", it.paused, false);
    visit.text("pauseReason", it.pause_reason);
    visit.text("pauseMessage", it.pause_message);
    visit.number("batchBase", it.batch_base);
    visit.text("resumedIn", it.resumed_in);
    visit.text("until", it.until);
    visit.count("events", it.events);
    visit.text("stepReason", it.step_reason);
    visit.text("stepMessage", it.step_message);
    visit.text("stepHint", it.step_hint);
}

/// Members of a header that are the engine's.
const std::set<std::string>& header_members() {
    static const std::set<std::string> known = [] {
        Names names;
        const Run empty;
        visit_run(names, empty);
        names.keys.insert({"event", "formatVersion", "minReader", "tool", "rollback", "options", "nodes", "leftOut"});
        return names.keys;
    }();
    return known;
}

}  // namespace

void merge(NodeRecord& node, const value::Node& facts, const Procedure& procedure) {
    const Reader reader(facts);
    visit_facts(reader, node);
    reader.members(procedure.node_members(), node.facts);
}

void forget(NodeRecord& node, const Procedure& procedure, Life life) {
    if (node.facts.is_null()) return;
    for (const auto& member : procedure.node_members())
        if (member.life == life) node.facts.erase(member.name);
}

value::Node encode(const NodeRecord& node, const Procedure& procedure) {
    auto tree = value::Node::mapping();
    const Writer writer(tree, procedure.node_members(), node.facts);
    visit_progress(writer, node);
    visit_facts(writer, node);
    return tree;
}

value::Node encode(const std::vector<LeftOut>& nodes) {
    auto list = value::Node::sequence();
    for (const auto& node : nodes) list.push_back(value::Node::mapping({{"name", node.name}, {"reason", node.reason}}));
    return list;
}

value::Node encode(const Run& run) {
    auto tree = value::Node::mapping({{"event", "header"},
                                      {"formatVersion", k_format_version},
                                      {"minReader", k_format_version},
                                      {"tool", "kmm-upgrade"}});
    const auto& procedure = procedure_of(run);
    visit_run(Writer(tree, procedure.run_members(), run.subject), run);
    if (run.rollback) tree.set("rollback", to_string(*run.rollback));
    auto options = value::Node::mapping();
    visit_options(Writer(options), run.options);
    tree.set("options", std::move(options));
    auto nodes = value::Node::sequence();
    for (const auto& node : run.nodes) nodes.push_back(encode(node, procedure));
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
        throw Error(
            Exit::config, "state-newer",
            fmt::format("the record needs format {}, this program reads format {}", reader_min, k_format_version))
            .hint(fmt::format("use kmm-upgrade {} or newer", node.get_string({"toolVersion"})));
    Run run;
    if (!procedures.empty()) run.procedure = procedures.front()->table().name();  // of a record that names none
    Reader(node).text("procedure", run.procedure);
    Reader(node).text("toolVersion", run.tool_version);
    run.rules = &find_procedure(run, procedures);  // of the members of one that is not known nothing can be said
    visit_run(Reader(node), run);
    Reader(node).members(run.rules->run_members(), run.subject);
    if (const auto* options = node.find("options")) visit_options(Reader(*options), run.options);
    if (const auto* rollback = node.find("rollback")) {
        run.rollback = parse_rollback(rollback->text());
        if (!run.rollback) wrong("rollback", "known policy", *rollback);
    }
    if (const auto* nodes = node.find("nodes")) {
        std::set<std::string> names;
        for (const auto& item : nodes->items()) {
            NodeRecord record;
            visit_progress(Reader(item), record);
            merge(record, item, *run.rules);
            if (record.name.empty()) throw Error(Exit::io, "state-damaged", "a node of the record has no name");
            if (!names.insert(record.name).second)
                throw Error(Exit::io, "state-damaged", fmt::format("node {} is in the record twice", record.name));
            run.nodes.push_back(std::move(record));
        }
    }
    if (const auto* list = node.find("leftOut"))
        for (const auto& item : list->items())
            run.left_out.push_back({item.get_string({"name"}), item.get_string({"reason"})});
    require_recorded({{"state", run.state}, {"lineage", run.lineage}});
    run.rules->check(run);
    std::set<std::string> own;
    for (const auto& member : run.rules->run_members()) own.insert(member.name);
    for (const auto& member : node.members())
        if (!header_members().contains(member.key) && !own.contains(member.key))
            run.extra.set(member.key, member.value);
    return run;
}

}  // namespace kmm::upgrade
