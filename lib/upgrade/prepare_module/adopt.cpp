// SPDX-License-Identifier: Apache-2.0
#include "upgrade/prepare_module/adopt.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "api/workload.hpp"
#include "base/text.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/module_nodes/worker.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

namespace kmm::drive {
namespace {

using upgrade::Event;
using upgrade::EventKind;

// An apply has no version to come from: its record holds nothing that the cluster does not tell the next one.
constexpr const char* k_go_on_applying =
    "kmm-upgrade apply goes on from whatever is there; kmm-upgrade doctor --fix --uncordon NODE lifts a cordon of a "
    "lost run";

enum class Stand { done, middle, pending };

/// What ran on a node before the upgrade.
struct Before {
    std::string version;  ///< "" for nothing, or for something without a version: then there is an entry
    std::optional<api::NodeModule> entry;
    [[nodiscard]] std::string text() const { return !version.empty() ? version : entry ? "unversioned" : "none"; }
};

struct Standing {
    std::string name;
    NodeView view;
    std::optional<api::NodeModule> target;
    Stand stand = Stand::pending;
    std::string why;               ///< of the middle, for people
    std::optional<Before> before;  ///< nullopt: the node does not say
};

/// One Module and the version it may be on the way to.
struct Survey {
    const api::Module* module = nullptr;
    std::string to;
    std::vector<Standing> nodes;  ///< in the order that was asked for
    std::vector<upgrade::LeftOut> left_out;
    std::vector<std::string> notes;
    bool has_signs = false;
    [[nodiscard]] std::size_t count(Stand stand) const {
        return static_cast<std::size_t>(
            std::count_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.stand == stand; }));
    }
    [[nodiscard]] bool is_under_way() const {
        return has_signs || count(Stand::middle) > 0 || (count(Stand::done) > 0 && count(Stand::pending) > 0);
    }
    [[nodiscard]] std::string text() const {
        return fmt::format("to {}: {} done, {} in the middle, {} pending", to, count(Stand::done), count(Stand::middle),
                           count(Stand::pending));
    }
};

std::string cordon_lineage(const api::Node& node) {
    const auto said = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
    if (said == node.meta.annotations.end() || !said->second.starts_with(k_owner_prefix)) return "";
    return said->second.substr(k_owner_prefix.size());
}

Before before_of_entry(const api::NodeModule& entry) { return {entry.version, entry}; }

/// What the node itself says about the time before version `to`.
std::optional<Before> said_before(const NodeView& view, const std::string& to) {
    if (view.status && view.status->version != to) return before_of_entry(*view.status);
    if (view.spec && view.spec->version != to) return before_of_entry(*view.spec);
    for (const auto* label : {&view.labels.worker, &view.labels.schedule, &view.labels.device, &view.labels.module})
        if (*label && **label != to) return Before{**label, std::nullopt};
    return std::nullopt;
}

/// Nothing of version `to`, and all parts agree: as it was before anything began. After a reboot the ready labels are
/// no sign.
bool is_steady(const NodeView& view, const std::string& to) {
    const auto& labels = view.labels;
    if (!view.spec && !view.status) return labels == ModuleLabels{} && !view.ready && !view.version_ready;
    if (!view.spec || !view.status || view.spec->version == to || view.status->version == to) return false;
    const bool is_this_boot = view.status->boot_id == view.node.boot_id;
    if (is_this_boot && (view.ready != std::string() || view.version_ready != labels.module)) return false;
    return labels.worker == labels.module && (labels.schedule == labels.module || labels.device == labels.module);
}

std::string label_text(const std::optional<std::string>& label) { return label ? *label : "-"; }

std::string middle_text(const NodeView& view) {
    const auto entry = [](const std::optional<api::NodeModule>& found) {
        return !found ? std::string("nothing") : found->version.empty() ? "unversioned" : found->version;
    };
    return fmt::format("labels say {},{},{}, spec {}, status {}", label_text(view.labels.module),
                       label_text(view.labels.worker), label_text(view.labels.schedule), entry(view.spec),
                       entry(view.status));
}

std::string adopt_kernel_of(const NodeView& view) { return view.node.kernel_version; }

Standing stand_of(const api::Objects& objects, const Survey& survey, const std::string& name,
                  const std::set<std::string>& held) {
    Standing node;
    node.name = name;
    node.view = view_of(objects, name, survey.module->meta.namespace_, survey.module->meta.name);
    try {
        node.target = resolve_entry(*survey.module, adopt_kernel_of(node.view));
    } catch (const Error&) {
        node.target.reset();  // the check of the node says why
    }
    node.before = said_before(node.view, survey.to);
    if (held.contains(name)) {
        node.stand = Stand::middle;
        node.why = "a cordon or worker of the run is on it";
    } else if (node.target && is_in_place(node.view, *node.target, survey.to, node.view.node.boot_id)) {
        node.stand = Stand::done;
    } else if (node.view.labels.module == survey.to || !is_steady(node.view, survey.to)) {
        node.stand = Stand::middle;
        node.why = middle_text(node.view);
    } else if (!node.before) {
        node.before = Before{};
    }
    return node;
}

/// The run, by its lineage, and where each was found.
std::map<std::string, std::vector<std::string>> lineages_of(const api::Objects& objects,
                                                            const std::vector<std::string>& names,
                                                            const api::Module& module, const AdoptRequest& request) {
    std::map<std::string, std::vector<std::string>> found;
    for (const auto& sign : request.signs)
        if (!sign.lineage.empty() && sign.ns == module.meta.namespace_ && sign.module == module.meta.name)
            found[sign.lineage].push_back(sign.what);
    if (!found.empty()) return found;
    for (const auto& node : objects.nodes) {
        const auto lineage = cordon_lineage(node);
        if (!lineage.empty() && std::find(names.begin(), names.end(), node.meta.name) != names.end())
            found[lineage].push_back("cordon of node " + node.meta.name);
    }
    return found;
}

std::string lineage_of(const api::Objects& objects, const std::vector<std::string>& names, const api::Module& module,
                       const AdoptRequest& request) {
    if (request.run && request.run->empty()) return "";
    const auto found = lineages_of(objects, names, module, request);
    if (!request.run && found.size() < 2) return found.empty() ? "" : found.begin()->first;
    const auto cordoned = [&](const api::Node& node) { return cordon_lineage(node) == *request.run; };
    if (request.run &&
        (found.contains(*request.run) || std::any_of(objects.nodes.begin(), objects.nodes.end(), cordoned)))
        return *request.run;
    Error error = request.run ? Error(Exit::not_found, "no-run",
                                      fmt::format("nothing in the cluster is of run {} and about Module {}",
                                                  base::escape(*request.run), module.full_name()))
                              : Error(Exit::checks_failed, "adopt-ambiguous",
                                      fmt::format("{} runs have left something of Module {}", found.size(),
                                                  module.full_name()));
    for (const auto& [lineage, places] : found)
        error.detail(base::escape(lineage), base::escape(base::join(places, ", ")));
    throw std::move(error).hint("give --run LINEAGE to select one, or --run none if it is a different run");
}

Survey survey_of(const api::Objects& objects, const api::Module& module, const AdoptRequest& request,
                 std::string* lineage) {
    Survey survey;
    survey.module = &module;
    survey.to = request.start.to_version.empty() && module.module_loader ? module.module_loader->container.version
                                                                         : request.start.to_version;
    auto start = request.start;
    start.ns = module.meta.namespace_;
    // Which run it is decides which cordons count, so the order is not looked at before.
    auto any = start;
    any.order.reset();
    any.options.order = "name";
    *lineage = lineage_of(objects, choose_nodes(objects, module, any, [](const api::Node&) { return true; }).names,
                          module, request);
    std::set<std::string> held;
    for (const auto& sign : request.signs) {
        if (sign.ns != module.meta.namespace_ || sign.module != module.meta.name ||
            (!lineage->empty() && sign.lineage != *lineage))
            continue;
        survey.has_signs = true;
        if (sign.changes_node) held.insert(sign.node);
    }
    for (const auto& node : objects.nodes)
        if (!lineage->empty() && cordon_lineage(node) == *lineage) held.insert(node.meta.name);
    // The run's own cordon is a taint as well, and a node that restarts is not ready: what was begun belongs to the
    // run.
    auto chosen = choose_nodes(objects, module, start, [&](const api::Node& node) {
        return stand_of(objects, survey, node.meta.name, held).stand != Stand::pending;
    });
    for (const auto& name : chosen.names) survey.nodes.push_back(stand_of(objects, survey, name, held));
    survey.left_out = std::move(chosen.left_out);
    survey.notes = std::move(chosen.notes);
    return survey;
}

/// Without a name: the one Module with an upgrade under way.
const api::Module& find_under_way(const api::Objects& objects, const AdoptRequest& request) {
    std::vector<std::pair<const api::Module*, std::string>> found;
    for (const auto& module : objects.modules) {
        if (!module.module_loader || module.module_loader->container.version.empty()) continue;
        if (!request.start.to_version.empty() && request.start.to_version != module.module_loader->container.version)
            continue;
        if (!request.start.ns.empty() && module.meta.namespace_ != request.start.ns) continue;
        std::string lineage;
        try {
            const auto survey = survey_of(objects, module, request, &lineage);
            if (survey.is_under_way()) found.emplace_back(&module, survey.text());
        } catch (const Error& error) {
            if (error.code() != "no-nodes" && error.code() != "order-incomplete") throw;
        }
    }
    if (found.size() == 1) return *found.front().first;
    if (found.empty()) {
        Error error(Exit::not_found, "nothing-to-adopt", "no interrupted upgrade found in the cluster");
        for (const auto& sign : request.signs)
            error.detail(sign.ns + "/" + sign.module, base::escape(sign.what));
        throw std::move(error).hint(request.signs.empty() ? "name MODULE and --to VERSION to record it as it stands"
                                                          : k_go_on_applying);
    }
    Error error(Exit::checks_failed, "adopt-ambiguous",
                fmt::format("upgrades of {} Modules seem to be under way", found.size()));
    for (const auto& [module, text] : found) error.detail(module->full_name(), text);
    throw std::move(error).hint("name one of them: kmm-upgrade adopt " + found.front().first->full_name());
}

/// What nodes ran before that do not say it themselves.
std::optional<Before> common_before(const Survey& survey, const AdoptRequest& request) {
    if (request.from) return Before{*request.from, std::nullopt};
    std::map<std::string, std::vector<std::string>> kinds;
    std::vector<std::string> silent;
    std::optional<Before> last;
    for (const auto& node : survey.nodes) {
        if (!node.before) {
            silent.push_back(node.name);
            continue;
        }
        kinds[node.before->text()].push_back(node.name);
        last = node.before;
    }
    if (silent.empty()) return std::nullopt;
    if (kinds.size() == 1) return last;
    Error error(Exit::checks_failed, "adopt-ambiguous",
                fmt::format("what {} ran before the upgrade to {} is not in the cluster any more",
                            base::join(silent, ", "), survey.to));
    for (const auto& [kind, names] : kinds) error.detail(kind, base::join(names, ", "));
    throw std::move(error).hint("--from VERSION says it, --from none if nothing was loaded");
}

/// The entry of `version` for the kernel of `node`, as another node of that kernel has it.
std::optional<api::NodeModule> borrowed(const Survey& survey, const Standing& node, const Before& before) {
    for (const auto& other : survey.nodes)
        if (other.before && other.before->entry && other.before->version == before.version &&
            adopt_kernel_of(other.view) == adopt_kernel_of(node.view) &&
            other.view.node.architecture == node.view.node.architecture)
            return other.before->entry;
    return std::nullopt;
}

/// The version labels of a node before the upgrade, for one that has them no more.
ModuleLabels labels_before(const Survey& survey, const Before& before) {
    ModuleLabels labels;
    if (before.version.empty()) return labels;
    labels.module = labels.worker = before.version;
    bool has_device = false, has_schedule = false;
    for (const auto& node : survey.nodes) {
        has_device = has_device || node.view.labels.device;
        has_schedule = has_schedule || (node.stand == Stand::pending && node.view.labels.schedule);
    }
    if (has_device) labels.device = before.version;
    if (has_schedule || !has_device) labels.schedule = before.version;
    return labels;
}

upgrade::module::Node record_of(const api::Objects& objects, const Survey& survey, const Standing& node,
                                const std::optional<Before>& common, const AdoptRequest& request,
                                std::vector<std::string>& unknown) {
    upgrade::module::Node record;
    record.name = node.name;
    const auto& there = node.view.node;
    if (request.start.options.order == "zone") record.zone = zone_of(objects, node.name);
    record.kernel = there.kernel_version;
    record.boot_id = there.boot_id;
    record.architecture = there.architecture;
    if (node.target) {
        record.target_entry = api::encode(*node.target);
        record.target_image = node.target->config->container_image;
    }
    auto before = node.before ? *node.before : *common;
    const bool was_loaded = before.text() != "none";
    if (!node.before) before.entry.reset();
    if (!before.entry && was_loaded) before.entry = borrowed(survey, node, before);
    record.from_version = before.version;
    if (before.entry) record.from_entry = api::encode(*before.entry);
    else if (was_loaded) {
        if (before.version.empty()) record.from_version = "unversioned";
        unknown.push_back(node.name);
    }
    record.from_labels = encode(node.stand == Stand::pending ? node.view.labels : labels_before(survey, before));
    if (node.stand == Stand::pending && node.view.status && node.view.status->boot_id == there.boot_id)
        record.current_version = before.text();
    return record;
}

Event node_event(EventKind kind, const std::string& node, const char* step, const char* from, const char* to) {
    Event event;
    event.kind = kind;
    event.node = node;
    event.step = step;
    event.from = from;
    event.to = to;
    event.facts = value::Node::mapping();
    return event;
}

Event pause_event(const char* reason, std::string message) {
    Event event;
    event.kind = EventKind::paused;
    event.reason = reason;
    event.message = std::move(message);
    return event;
}

void add_done(const Survey& survey, const std::string& name, std::vector<Event>& events) {
    events.push_back(node_event(EventKind::intent, name, "check", "pending", "checking"));
    auto checked = node_event(EventKind::done, name, "check", "checking", "checking");
    checked.facts.set("next", "validate");
    events.push_back(std::move(checked));
    events.push_back(node_event(EventKind::intent, name, "validate", "checking", "validating"));
    auto done = node_event(EventKind::done, name, "validate", "validating", "done");
    done.facts.set("currentVersion", survey.to);
    done.message = "adopted: the cluster says that " + survey.to + " is loaded";
    events.push_back(std::move(done));
}

void add_middle(const Standing& node, const std::string& lineage, std::vector<Event>& events) {
    auto begun = node_event(EventKind::intent, node.name, "check", "pending", "checking");
    begun.message = "adopted in the middle: " + node.why;
    begun.facts.set("currentKnown", false);
    if (!lineage.empty() && cordon_lineage(node.view.node) == lineage)
        begun.facts.set("cordon", upgrade::k_cordon_ours);
    events.push_back(std::move(begun));
}

/// From the beginning of the run to where it stands. A pause comes first, so that a record that was not written to its
/// end is known as one.
std::vector<Event> events_of(const Survey& survey, const std::string& lineage) {
    std::vector<Event> events;
    Event walk;
    walk.step = "nodes";
    walk.from = "upgrade-started";
    walk.to = "upgrading-nodes";
    events.push_back(std::move(walk));
    events.push_back(pause_event(k_pause_adopting, "the record was not written to its end; adopt again"));
    for (const auto& node : survey.nodes)
        if (node.stand == Stand::done) add_done(survey, node.name, events);
    std::vector<std::string> cordoned;
    for (const auto& node : survey.nodes) {
        if (node.stand != Stand::middle) continue;
        add_middle(node, lineage, events);
        if (!lineage.empty() && cordon_lineage(node.view.node) == lineage) cordoned.push_back(node.name);
    }
    Event go;
    go.kind = EventKind::resumed;
    events.push_back(std::move(go));
    events.push_back(
        pause_event("adopted", fmt::format("as found in the cluster{}",
                                           cordoned.empty() ? "" : "; still cordoned: " + base::join(cordoned, ", "))));
    return events;
}

}  // namespace

Adopted adopt(const cluster::Snapshot& snapshot, const sys::Clock& clock, const AdoptRequest& request) {
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& objects = snapshot.objects;
    const auto& module = request.start.name.empty() ? find_under_way(objects, request)
                                                    : find_module(objects, request.start.ns, request.start.name);
    std::string lineage;
    auto survey = survey_of(objects, module, request, &lineage);
    require_version(module, survey.to);
    if (survey.to.empty())
        throw Error(Exit::checks_failed, "no-version",
                    fmt::format("Module {} has no version, so an upgrade cannot be recognised", module.full_name()))
            .at(module.meta.origin)
            .hint(k_go_on_applying);
    if (request.start.to_version.empty() && !survey.is_under_way())
        throw Error(Exit::not_found, "nothing-to-adopt",
                    fmt::format("no upgrade of Module {} is under way; {}", module.full_name(), survey.text()))
            .hint(fmt::format("--to {} records it as it stands", survey.to));
    std::stable_sort(survey.nodes.begin(), survey.nodes.end(),
                     [](const auto& left, const auto& right) { return left.stand < right.stand; });
    const auto common = common_before(survey, request);
    Adopted adopted;
    adopted.notes = survey.notes;
    auto& run = adopted.run;
    run = begin_run(request.start, upgrade::module::procedure_module(), request.start.options);
    run.adopted = true;
    if (!lineage.empty()) run.lineage = lineage;
    run.created = run.since = base::format_rfc3339(clock.now_unix());
    upgrade::module::set_subject(run, {module.meta.namespace_,
                                       module.meta.name,
                                       kernel_module_name(module.module_loader->container.modprobe.module_name),
                                       "",
                                       {}});
    run.to_version = survey.to;
    VersionsBefore versions;
    std::vector<std::string> unknown;
    VersionsBefore gone;
    bool has_cordon = false;
    for (const auto& node : survey.nodes) {
        const auto known = unknown.size();
        auto record = record_of(objects, survey, node, common, request, unknown);
        if (unknown.size() > known) gone.add(record);
        record.since = run.since;
        versions.add(record);
        run.nodes.push_back(upgrade::module::record_of(std::move(record)));
        has_cordon = has_cordon || (!lineage.empty() && cordon_lineage(node.view.node) == lineage);
    }
    run.left_out = survey.left_out;
    run.from_version = versions.text();
    if (!lineage.empty()) adopted.notes.push_back("the run is " + lineage);
    if (has_cordon && !run.options.drain) {
        run.options.drain = true;
        adopted.notes.push_back(
            "the run has cordoned a node, so that it drains nodes; --evict-users and others must be given again");
    }
    if (!unknown.empty())
        adopted.notes.push_back(fmt::format("{} of {} is not in the cluster any more: abort cannot bring {} back",
                                            gone.text(), base::join(unknown, ", "),
                                            unknown.size() == 1 ? "it" : "them"));
    adopted.in_the_middle = static_cast<std::int64_t>(survey.count(Stand::middle));
    adopted.events = events_of(survey, lineage);
    return adopted;
}

}  // namespace kmm::drive
