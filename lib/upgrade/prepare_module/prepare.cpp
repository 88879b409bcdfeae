// SPDX-License-Identifier: Apache-2.0
#include "upgrade/prepare_module/prepare.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "api/linux_nodes.hpp"
#include "api/workload.hpp"
#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/decide/plan.hpp"
#include "plan/decide/policy.hpp"
#include "plan/fleet/upgrade_view.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/find_named.hpp"
#include "plan/lint/validate.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/module_nodes/look.hpp"
#include "upgrade/module_nodes/operator_check.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

namespace kmm::drive {
namespace {

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
    const auto near = base::nearest(word, names);
    return near            ? "did you mean " + *near + "?"
           : names.empty() ? "there are none"
                           : "there are: " + base::join(names, ", ");
}

/// The names, of many the first ones and how many others there are.
std::string some_of(const std::vector<std::string>& names) {
    constexpr std::size_t k_named = 8;
    return base::join_some(names, k_named);
}

/// Each node that was selected is left out.
Error none_can_take(const api::Module& module, const std::vector<upgrade::LeftOut>& left_out) {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const auto& node : left_out) by_reason[node.reason].push_back(node.name);
    Error error(Exit::checks_failed, "no-nodes",
                fmt::format("no node that Module {} selects can take it", module.full_name()));
    for (const auto& [reason, names] : by_reason) error.detail(reason, some_of(names));
    return error.at(module.meta.origin)
        .hint("remove the taint (kubectl uncordon, if it is a cordon), then start again");
}

constexpr const char* k_label_zone = "topology.kubernetes.io/zone";

/// Asks again, twice at most, when the connection was lost at once: the connections of a `start` that was killed a
/// moment ago may still be ending. Only for calls that change nothing.
template <typename Call>
auto ask(sys::Clock& clock, const Call& call) {
    constexpr std::chrono::milliseconds k_at_once{20'000};
    for (int tries = 1;; ++tries) {
        const auto start = clock.monotonic();
        auto reply = call();
        const bool lost = reply.end == cluster::CallEnd::unknown && clock.monotonic() - start < k_at_once;
        if (!lost || tries == 3 || !clock.sleep_for(std::chrono::milliseconds(1000))) return reply;
    }
}

bool same_trouble(const Error& a, const Error& b) {
    return a.code() == b.code() && a.message() == b.message() && a.details() == b.details() && a.hint() == b.hint();
}

/// Adds the trouble of node `index` to `all`, with all nodes that have the same; nothing if an earlier one told of it.
void tell_once(Error& all, const std::vector<std::string>& names, const std::vector<std::optional<Error>>& errors,
               std::size_t index) {
    const auto& error = *errors[index];
    std::vector<std::string> same;
    for (std::size_t other = 0; other < names.size(); ++other) {
        if (!errors[other] || !same_trouble(error, *errors[other])) continue;
        if (other < index) return;
        same.push_back(names[other]);
    }
    all.detail(base::join(same, ", "), fmt::format("{}: {}", error.code(), error.message()));
    for (const auto& [key, text] : error.details())
        if (text != error.message()) all.detail(names[index] + " " + key, text);
    if (!error.hint().empty()) all.detail(names[index] + " hint", error.hint());
}

}  // namespace

std::string where_labels_are(const api::Node& node) {
    const auto& file = node.meta.origin.file;
    return file.empty() || file == "nodes/" + node.meta.name
               ? "kubectl get nodes --show-labels"
               : fmt::format("metadata.labels of each Node, as in {}", base::escape(file));
}

void require_one_host(const upgrade::Options& options, std::size_t nodes) {
    if (options.via != upgrade::Via::local || nodes < 2) return;
    throw Error(Exit::usage, "several-nodes", fmt::format("--via local reaches this host only, found {} nodes", nodes))
        .hint("name the Node that is this host with --node, or reach them all with --via ssh");
}

std::string zone_of(const api::Objects& objects, const std::string& name) {
    const auto* node = plan::find_named(objects.nodes, name);
    if (node == nullptr) return "";
    const auto found = node->meta.labels.find(k_label_zone);
    return found == node->meta.labels.end() ? "" : found->second;
}

void require_known_nodes(const api::Objects& objects, const std::vector<std::string>& names) {
    std::vector<std::string> known;
    for (const auto& node : objects.nodes) known.push_back(node.meta.name);
    for (const auto& name : names)
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw Error(Exit::not_found, "node-not-found",
                        fmt::format("node {} is not in the cluster", base::escape(name)))
                .hint(name.find(',') == std::string::npos ? did_you_mean(name, known)
                                                          : "give --node once for each node");
}

std::string left_out_reason(const api::Module& module, const api::Node& node) {
    api::Taint blocking;
    if (plan::tolerates(plan::loader_tolerations(module), node.taints, &blocking)) return "";
    if (blocking.key == api::k_taint_unschedulable) {
        const auto owner = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
        return owner == node.meta.annotations.end() ? "cordoned" : "cordoned by " + owner->second;
    }
    if (blocking.key == "node.kubernetes.io/not-ready" || blocking.key == "node.kubernetes.io/unreachable")
        return "not ready";
    return fmt::format("taint {}:{}", blocking.key, blocking.effect);
}

Chosen choose_nodes(const api::Objects& objects, const api::Module& module, const StartRequest& request,
                    const std::function<bool(const api::Node& node)>& is_begun) {
    require_known_nodes(objects, request.nodes);
    const auto tolerations = plan::loader_tolerations(module);
    Chosen result;
    std::vector<std::string> chosen;
    std::vector<std::string> refused;
    std::map<std::string, std::vector<std::string>> untolerated;
    std::vector<std::string> foreign, deselected;
    bool any_matches = false;
    for (const auto& node : objects.nodes) {
        const auto& name = node.meta.name;
        const bool named = std::find(request.nodes.begin(), request.nodes.end(), name) != request.nodes.end();
        if (!request.nodes.empty() && !named) continue;
        if (!request.selector.matches(node.meta.labels)) continue;
        any_matches = true;
        api::Taint blocking;
        std::string why;
        if (!plan::selects(module.selector, node.meta.labels)) why = "the Module's selector does not match its labels";
        else if (!api::runs_linux(node)) why = std::string(k_no_linux);
        else if (!plan::tolerates(tolerations, node.taints, &blocking) && !(is_begun && is_begun(node)))
            why = fmt::format("its taint {}:{} is not tolerated", blocking.key, blocking.effect);
        if (why.empty()) chosen.push_back(name);
        else if (named) refused.push_back(fmt::format("node {}: {}", name, why));
        else if (why == k_no_linux) foreign.push_back(name);
        else if (plan::selects(module.selector, node.meta.labels)) {
            result.left_out.push_back({name, left_out_reason(module, node)});
            untolerated[fmt::format("{}:{}", blocking.key, blocking.effect)].push_back(name);
        } else if (entry_there(view_of(objects, name, module.meta.namespace_, module.meta.name)) != nullptr) {
            result.left_out.push_back({name, why});
            deselected.push_back(name);
        }
    }
    if (deselected.size() == 1)
        result.notes.push_back(fmt::format("node {} is left out: it has the Module, which does not select it",
                                           deselected.front()));
    else if (!deselected.empty())
        result.notes.push_back(fmt::format("nodes {} are left out: they have the Module, which does not select them",
                                           some_of(deselected)));
    for (const auto& [taint, names] : untolerated)
        result.notes.push_back(
            names.size() == 1
                ? fmt::format("node {} is left out: its taint {} is not tolerated", names.front(), taint)
                : fmt::format("nodes {} are left out: their taint {} is not tolerated", some_of(names), taint));
    if (foreign.size() == 1)
        result.notes.push_back(fmt::format("node {} has no part in it: {}", foreign.front(), k_no_linux));
    else if (!foreign.empty())
        result.notes.push_back(fmt::format("nodes {} have no part in it: they run no Linux", some_of(foreign)));
    if (!refused.empty())
        throw Error(Exit::checks_failed, "node-not-eligible", base::join(refused, "; "))
            .hint("change the node, or leave it out of --node");
    if (chosen.empty() && !untolerated.empty()) throw none_can_take(module, result.left_out);
    if (chosen.empty() && !objects.nodes.empty() && !any_matches)
        throw Error(Exit::checks_failed, "no-nodes", "--selector matches no node")
            .hint("compare it with the labels of the nodes: " + where_labels_are(objects.nodes.front()));
    if (chosen.empty() && !foreign.empty())
        throw plan::no_linux_error(foreign, !request.nodes.empty()).at(module.meta.origin);
    if (chosen.empty())
        throw Error(Exit::checks_failed, "no-nodes",
                    fmt::format("no node is selected for Module {}", module.full_name()))
            .at(module.meta.origin)
            .hint(objects.nodes.empty() ? "there is no Node" : "kmm-plan show says why");
    result.names = walk_order(objects, request, std::move(chosen), result.notes);
    return result;
}

std::vector<std::string> walk_order(const api::Objects& objects, const StartRequest& request,
                                    std::vector<std::string> chosen, std::vector<std::string>& notes) {
    std::vector<std::string> known;
    for (const auto& node : objects.nodes) known.push_back(node.meta.name);
    std::sort(chosen.begin(), chosen.end());
    if (request.options.order == "zone") {
        // Nodes without a zone come last.
        std::stable_sort(chosen.begin(), chosen.end(), [&](const std::string& left, const std::string& right) {
            const auto a = zone_of(objects, left), b = zone_of(objects, right);
            return a.empty() != b.empty() ? b.empty() : a < b;
        });
        for (const auto& name : chosen)
            if (zone_of(objects, name).empty())
                notes.push_back(fmt::format("node {} has no label {}: it comes last", name, k_label_zone));
        return chosen;
    }
    if (!request.order) return chosen;
    std::vector<std::string> ordered;
    std::vector<std::string> missing;
    for (const auto& name : *request.order) {
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw Error(Exit::not_found, "node-not-found",
                        fmt::format("node {} of the order is not in the cluster", name))
                .hint(did_you_mean(name, known));
        const bool wanted = std::find(chosen.begin(), chosen.end(), name) != chosen.end();
        if (wanted && std::find(ordered.begin(), ordered.end(), name) == ordered.end()) ordered.push_back(name);
    }
    for (const auto& name : chosen)
        if (std::find(ordered.begin(), ordered.end(), name) == ordered.end()) missing.push_back(name);
    if (!missing.empty())
        throw Error(Exit::checks_failed, "order-incomplete",
                    fmt::format("the order leaves out {}", base::join(missing, ", ")))
            .hint("name every node, or choose nodes with --node");
    return ordered;
}

namespace {

/// The boot id of a host is that of its Node, or a new one after a reboot, never that of another Node.
void require_own_host(const api::Objects& objects, const std::string& name, const NodeFacts& facts) {
    const auto* own = plan::find_named(objects.nodes, name);
    if (own == nullptr) return;
    if (!own->architecture.empty() && !facts.architecture.empty() && own->architecture != facts.architecture)
        throw wrong_host(fmt::format("the host that answers as node {} has architecture {}, its Node says {}", name,
                                     base::escape(facts.architecture), base::escape(own->architecture)));
    if (const auto other = other_host(objects, name, facts.boot_id)) throw Error(*other);
}

}  // namespace

upgrade::module::Node look_before(const api::Objects& objects, Worker& worker, sys::Clock& clock,
                                  const StartRequest& request, const std::string& kernel_module,
                                  const std::string& name, LiveModule& live, const Waiting& waiting) {
    upgrade::module::Node record;
    record.name = name;
    if (request.options.order == "zone") record.zone = zone_of(objects, name);
    const auto timeout =
        std::chrono::milliseconds(std::clamp<std::int64_t>(request.options.node_timeout_ms, 1000, 60'000));
    const auto silence = silence_from_now(clock, "status", timeout);
    auto watched = waiting.watchdog.watch(k_silence, [&] { waiting.observer(name, silence.text()); });
    const auto status = ask(clock, [&] { return worker.status(name, kernel_module, timeout); });
    watched.end();
    if (status.error) throw *status.error;
    const auto& facts = status.value->facts;
    if (is_led_by_name(request.options.via)) require_own_host(objects, name, facts);
    record.kernel = facts.kernel;
    record.boot_id = facts.boot_id;
    record.architecture = facts.architecture;
    live = status.value->module;
    if (live.presence == Presence::moving)
        throw Error(Exit::hung, "loader-hung",
                    fmt::format("a load or unload of {} is stuck in the kernel", kernel_module));
    return record;
}

void note_previous(upgrade::module::Node& record, const NodeView& view, const LiveModule& live) {
    record.from_labels = encode(view.labels);
    if (view.status) {
        record.from_entry = api::encode(*view.status);
        record.from_version = view.status->version;
    }
    record.live = live.identity;
    if (live.presence != Presence::live) return;
    record.from_identity = live.identity;
    record.current_version = record.from_version.empty() ? "unversioned" : record.from_version;
}

const api::Secret* secret_for(const api::Objects& objects, const api::Module& module, const std::string& name) {
    if (name.empty()) return nullptr;
    for (const auto& candidate : objects.secrets)
        if (candidate.meta.namespace_ == module.meta.namespace_ && candidate.meta.name == name) return &candidate;
    throw Error(Exit::not_found, "secret-not-found",
                fmt::format("pull Secret {}/{} is not in the cluster", module.meta.namespace_, name))
        .hint("create it, or remove spec.imageRepoSecret from the Module");
}

void require_unshared(const api::Objects& objects, const std::string& node, const std::string& module,
                      const std::string& kernel_module, const std::string& boot_id) {
    const auto* config = plan::find_named(objects.node_modules_configs, node);
    if (config == nullptr) return;
    for (const auto& entry : config->status) {
        const auto owner = entry.namespace_ + "/" + entry.name;
        if (owner == module || kernel_module_name(entry.config->modprobe.module_name) != kernel_module) continue;
        if (!boot_id.empty() && !entry.boot_id.empty() && entry.boot_id != boot_id) continue;
        throw Error(Exit::checks_failed, "module-shared",
                    fmt::format("{} is also loaded for Module {}", kernel_module, owner))
            .hint("let the selectors of the two Modules exclude each other; or remove the entry of one of them from "
                  "the NodeModulesConfig of the node");
    }
}

upgrade::module::Node check_node(const api::Objects& objects, const api::Module& module, Worker& worker,
                                 sys::Clock& clock, const StartRequest& request, const std::string& kernel_module,
                                 const std::string& name, const Waiting& waiting) {
    if (request.options.via == upgrade::Via::operator_) {
        const auto view = operator_view(objects, name, module.meta.namespace_, module.meta.name);
        require_operable(objects, module, view, request.options, request.to_version);
        auto record = operator_record(module, view);
        if (request.options.order == "zone") record.zone = zone_of(objects, name);
        return record;
    }
    const auto view = view_of(objects, name, module.meta.namespace_, module.meta.name);
    require_name(view, module.full_name(), kernel_module);
    const Deadline deadline(clock, std::chrono::milliseconds(request.options.node_timeout_ms));
    waiting.observer(name, "status");
    LiveModule module_there;
    auto record = look_before(objects, worker, clock, request, kernel_module, name, module_there, waiting);
    const auto entry = resolve_entry(module, record.kernel);
    const auto* secret = secret_for(objects, module, entry.image_repo_secret);
    waiting.observer(name, "check");
    const auto checked =
        ask(clock, [&] { return worker.run("check", name, worker_input(entry.config, secret), deadline.left()); });
    if (checked.error) throw *checked.error;
    record.target_entry = api::encode(entry);
    record.target_identity = checked.value->identity;
    record.target_image = entry.config->container_image;
    record.target_digest = checked.value->digest;
    const bool live = module_there.presence == Presence::live;
    const bool is_target = live && upgrade::module::compare(module_there.identity, record.target_identity) ==
                                       upgrade::module::Sameness::same;
    if (live && !is_target && !view.status && !view.spec) {
        require_unshared(objects, name, module.full_name(), kernel_module, record.boot_id);
        throw Error(Exit::checks_failed, "module-unmanaged",
                    fmt::format("{} is live, but the cluster says nothing of it", kernel_module))
            .hint("unload it on the node, or add what loaded it to status.modules of its NodeModulesConfig");
    }
    if (live && view.status && !view.status->boot_id.empty() && view.status->boot_id != record.boot_id && !is_target)
        throw Error(Exit::checks_failed, "module-unmanaged",
                    fmt::format("{} is live, but its NodeModulesConfig entry is of an earlier boot", kernel_module))
            .hint("something loads it at boot: remove that, unload it on the node and start again");
    if (live && begins_with_unload(view, entry, request.to_version, live, is_target)) {
        require_unguarded(plan::unload_guard(objects, module, name, record.boot_id));
        require_unshared(objects, name, module.full_name(), kernel_module, record.boot_id);
    }
    if (!is_target) require_unguarded(plan::load_guard(objects, module, name, record.boot_id));
    note_previous(record, view, module_there);
    if (is_target && (!view.status || view.status->version == request.to_version) && !request.to_version.empty())
        record.current_version = request.to_version;
    return record;
}

void require_valid(const api::Objects& objects, const api::Module& module) {
    Diagnostics faults;
    plan::validate_module(module, {}, faults);
    plan::check_policy(module, faults);
    plan::check_needs(objects.modules, faults);
    std::erase_if(faults, [](const Diagnostic& fault) { return fault.severity != Severity::error; });
    if (!faults.empty()) throw Error::from_diagnostics(std::move(faults));
}

const api::Module& find_module(const api::Objects& objects, const std::string& ns, const std::string& name) {
    const api::Module* found = nullptr;
    std::vector<std::string> names;
    for (const auto& module : objects.modules) {
        names.push_back(module.meta.name);
        if (module.meta.name != name || (!ns.empty() && module.meta.namespace_ != ns)) continue;
        if (found != nullptr)
            throw Error(Exit::usage, "module-ambiguous",
                        fmt::format("{} and {} have the same name", found->full_name(), module.full_name()))
                .hint("name it as NAMESPACE/NAME, or use -n");
        found = &module;
    }
    if (found != nullptr) return *found;
    const auto elsewhere = std::find_if(objects.modules.begin(), objects.modules.end(),
                                        [&](const auto& module) { return module.meta.name == name; });
    throw Error(Exit::not_found, "module-not-found",
                fmt::format("Module {} is not in the cluster", ns.empty() ? name : ns + "/" + name))
        .hint(elsewhere == objects.modules.end() ? did_you_mean(name, names)
                                                 : "did you mean " + elsewhere->full_name() + "?");
}

std::vector<std::optional<Error>> shared_hosts(const api::Objects& objects, const StartRequest& request,
                                               const std::vector<std::optional<upgrade::module::Node>>& records) {
    std::vector<std::optional<Error>> errors(records.size());
    if (!is_led_by_name(request.options.via)) return errors;
    std::map<std::string_view, std::vector<std::size_t>> by_boot;
    for (std::size_t index = 0; index < records.size(); ++index)
        if (records[index] && is_boot_id(records[index]->boot_id)) by_boot[records[index]->boot_id].push_back(index);
    for (const auto& [boot, places] : by_boot) {
        if (places.size() < 2) continue;
        for (const auto index : places) {
            const auto& name = records[index]->name;
            const auto* node = plan::find_named(objects.nodes, name);
            if (node != nullptr && node->boot_id == boot) continue;
            const auto other = places.front() == index ? places.back() : places.front();
            errors[index] = wrong_host(fmt::format("one host answers as nodes {} and {}, with boot id {}", name,
                                                   records[other]->name, boot));
        }
    }
    return errors;
}

std::vector<upgrade::module::Node> check_all(const api::Objects& objects, const StartRequest& request,
                                             const std::vector<std::string>& names,
                                             const std::function<upgrade::module::Node(const std::string&)>& check) {
    std::vector<std::optional<upgrade::module::Node>> records(names.size());
    std::vector<std::optional<Error>> errors(names.size());
    for_each_at_once(names.size(), [&](std::size_t index) {
        try {
            records[index] = check(names[index]);
        } catch (const Error& error) {
            if (error.code() == "interrupted") throw Error(error).hint("nothing was changed; start again");
            if (cluster::ends_run(error)) throw;  // no node's fault
            errors[index] = error;
        }
    });
    auto shared = shared_hosts(objects, request, records);
    std::size_t failing = 0;
    for (std::size_t index = 0; index < errors.size(); ++index)
        if (!errors[index]) errors[index] = std::move(shared[index]);
    for (const auto& error : errors)
        if (error) ++failing;
    if (failing > 0) {
        Error all(Exit::checks_failed, "nodes-not-ready",
                  fmt::format("{} of {} cannot be upgraded; nothing was changed", failing,
                              base::counted(names.size(), "node")));
        for (std::size_t index = 0; index < names.size(); ++index)
            if (errors[index]) tell_once(all, names, errors, index);
        throw all.hint("repair these nodes, or choose others with --node, then start again");
    }
    std::vector<upgrade::module::Node> all;
    for (auto& record : records) all.push_back(std::move(*record));
    return all;
}

upgrade::Run make_run(const StartRequest& request, const std::string& ns, const std::string& module,
                      const std::string& kernel_module, std::vector<upgrade::module::Node> records,
                      const sys::Clock& clock) {
    auto run = begin_run(request, upgrade::module::procedure_module(), request.options);
    run.created = run.since = base::format_rfc3339(clock.now_unix());
    upgrade::module::set_subject(run, {ns, module, kernel_module, "", {}});
    run.to_version = request.to_version;
    VersionsBefore versions;
    for (auto& record : records) {
        record.since = run.since;
        versions.add(record);
        run.nodes.push_back(upgrade::module::record_of(std::move(record)));
    }
    run.from_version = versions.text();
    return run;
}

void VersionsBefore::add(const upgrade::module::Node& node) {
    if (node.from_version == "unversioned" || (node.from_version.empty() && !node.from_entry.is_null()))
        has_unversioned_ = true;
    else if (!node.from_version.empty()) named_.insert(node.from_version);
}

std::string VersionsBefore::text() const {
    std::vector<std::string> versions(named_.begin(), named_.end());
    if (has_unversioned_) versions.emplace_back("unversioned");
    return base::join(versions, ",");
}

Prepared prepare(const cluster::Snapshot& snapshot, Worker& worker, sys::Clock& clock, const StartRequest& request,
                 const CheckObserver& observer) {
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& objects = snapshot.objects;
    const auto& module = find_module(objects, request.ns, request.name);
    require_valid(objects, module);
    require_wanted(module);
    require_version(module, request.to_version);
    Prepared prepared;
    auto chosen = choose_nodes(objects, module, request);
    const auto& names = chosen.names;
    prepared.notes = std::move(chosen.notes);
    require_one_host(request.options, names.size());
    const auto kernel_module = kernel_module_name(module.module_loader->container.modprobe.module_name);
    Watchdog watchdog;
    auto records = check_all(objects, request, names, [&](const std::string& node) {
        return check_node(objects, module, worker, clock, request, kernel_module, node, {watchdog, observer});
    });
    prepared.run =
        make_run(request, module.meta.namespace_, module.meta.name, kernel_module, std::move(records), clock);
    prepared.run.left_out = std::move(chosen.left_out);
    return prepared;
}

}  // namespace kmm::drive
