// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/plan_rollout.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "base/error.hpp"
#include "cluster/live/machine_pools.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/resource/graph.hpp"
#include "upgrade/drive_recipe/readiness.hpp"
#include "value/reader.hpp"

namespace kmm::drive {
namespace {

using upgrade::recipe::DriverNode;
using upgrade::recipe::id_of;
using upgrade::recipe::Release;
using upgrade::recipe::ReleaseObject;
using upgrade::recipe::State;
using value::Node;

Node tree_of(const recipe::plan::RecipeObject& rendered) {
    Diagnostics faults;
    auto documents =
        value::read_json(recipe::tmpl::write_json(rendered.object, {false, false}), rendered.origin.file, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return std::move(documents.front().root);
}

/// A SpecialResource that is deleted, or was never in the cluster, must not take objects along behind the record.
Node without_owner(Node object) {
    const auto* meta = object.find("metadata");
    const auto* owners = meta == nullptr ? nullptr : meta->find("ownerReferences");
    if (owners == nullptr) return object;
    auto others = Node::sequence();
    for (const auto& owner : owners->items())
        if (!owner.get_string({"kind"}).starts_with("SpecialResource")) others.push_back(owner);
    auto changed = *meta;
    if (others.items().empty()) changed.erase("ownerReferences");
    else changed.set("ownerReferences", std::move(others));
    object.set("metadata", std::move(changed));
    return object;
}

/// "1000-driver" of "1000-driver.yaml", "stateless" of "(stateless)".
std::string plain_state(std::string name) {
    if (name.starts_with('(') && name.ends_with(')')) return name.substr(1, name.size() - 2);
    if (name.ends_with(".yaml")) name.resize(name.size() - 5);
    return name;
}

upgrade::recipe::NodeChoice choice_of(std::span<const recipe::plan::SpecialResource> all, const std::string& name) {
    upgrade::recipe::NodeChoice choice;
    const auto* resource = recipe::plan::find_resource(all, name);
    if (resource == nullptr) return choice;
    choice.labels = resource->node_selector;
    choice.key = resource->node_choice.key;
    choice.values = resource->node_choice.values;
    return choice;
}

/// A name of 53 characters, as a release of Helm may have it, is one too long for the label of its states.
void check_label(const State& state, std::span<const recipe::plan::SpecialResource> all, Diagnostics& faults) {
    constexpr std::size_t k_label_max = 63;
    const auto name = state.label.substr(state.label.find('/') + 1);
    if (name.size() <= k_label_max) return;
    const auto* resource = recipe::plan::find_resource(all, state.resource);
    Diagnostic fault{Severity::error, "bad-value",
                     fmt::format("SpecialResource {}: nodes get the label {} with {} characters, expected at most {}",
                                 state.resource, name, name.size(), k_label_max),
                     resource == nullptr ? Position{} : resource->place("metadata.name"),
                     fmt::format("shorten metadata.name to {} characters",
                                 state.resource.size() - (name.size() - k_label_max)),
                     Exit::data};
    const auto is_same = [&](const Diagnostic& other) { return other.hint == fault.hint; };
    if (std::none_of(faults.begin(), faults.end(), is_same)) faults.push_back(std::move(fault));
}

/// States with one number share a label: it is set behind the last of them.
void drop_early_labels(std::vector<State>& states) {
    std::set<std::string> seen;
    for (auto state = states.rbegin(); state != states.rend(); ++state)
        if (!state->label.empty() && !seen.insert(state->label).second) state->label.clear();
}

/// Kinds that definitions of the release bring, by group and kind.
std::set<std::pair<std::string, std::string>> brought_kinds(const Release& release) {
    std::set<std::pair<std::string, std::string>> kinds;
    for (const auto& state : release.states)
        for (const auto& one : state.objects)
            if (one.object.get_string({"kind"}) == "CustomResourceDefinition")
                kinds.emplace(one.object.get_string({"spec", "group"}),
                              one.object.get_string({"spec", "names", "kind"}));
    return kinds;
}

upgrade::NodeRecord record_of(const State& state, const std::string& version) {
    upgrade::NodeRecord record;
    record.name = state.name;
    record.from_version = version;
    record.current_version = version;
    upgrade::recipe::set_objects(record, static_cast<std::int64_t>(state.objects.size()));
    return record;
}

upgrade::NodeRecord record_of(const DriverNode& node, const std::string& version) {
    upgrade::NodeRecord record;
    record.name = node.name();
    record.from_version = version;
    record.current_version = version;
    upgrade::recipe::set_objects(record, static_cast<std::int64_t>(node.drivers.size()));
    upgrade::recipe::set_driver_node(record, node);
    return record;
}

/// Errors: data "kind-unknown".
void require_kinds(const Release& release, Objects& objects) {
    const auto brought = brought_kinds(release);
    for (const auto& state : release.states) {
        for (const auto& one : state.objects) {
            const auto id = upgrade::recipe::id_of(one.object);
            if (one.on_demand || brought.contains({id.group, id.kind}) || objects.resource_of(one.object)) continue;
            throw Error(Exit::data, "kind-unknown",
                        fmt::format("{}: the API server does not serve kind {} of {}", object_text(one.object), id.kind,
                                    one.object.get_string({"apiVersion"})))
                .hint("install what brings this kind, or leave the object out");
        }
    }
}

const Node& member_at(const Node& object, std::initializer_list<std::string_view> path) {
    static const Node none;
    const auto* found = object.find_path(path);
    return found == nullptr ? none : *found;
}

/// The containers of a Pod template, each with the members `wanted` alone.
Node containers_of(const Node& object, const std::vector<std::string_view>& wanted) {
    auto made = Node::sequence();
    for (const auto* list : {"initContainers", "containers"}) {
        for (const auto& container : member_at(object, {"spec", "template", "spec", list}).items()) {
            auto plain = Node::mapping();
            for (const auto name : wanted)
                if (const auto* found = container.find(name)) plain.set(std::string(name), *found);
            made.push_back(std::move(plain));
        }
    }
    return made;
}

/// What an image is built from, as far as the build says it.
Node source_of(const Node& build) {
    if (build.get_string({"kind"}) == "Job") return containers_of(build, {"image", "command", "args", "env"});
    return Node::mapping(
        {{"source", member_at(build, {"spec", "source"})}, {"strategy", member_at(build, {"spec", "strategy"})}});
}

bool always_pulls(const Node& driver) {
    const auto policies = containers_of(driver, {"imagePullPolicy"});
    return std::any_of(policies.items().begin(), policies.items().end(),
                       [](const Node& one) { return one.get_string({"imagePullPolicy"}) == "Always"; });
}

bool is_build_of(const ReleaseObject& build, const std::string& vendor, const std::string& kernel) {
    return is_paired_build(build.object) && driver_vendor(build.object) == vendor &&
           (build.kernel.empty() || build.kernel == kernel);
}

std::vector<const ReleaseObject*> builds_of(const Release& release, const std::string& vendor,
                                            const std::string& kernel) {
    std::vector<const ReleaseObject*> found;
    for (const auto& state : release.states)
        for (const auto& one : state.objects)
            if (is_build_of(one, vendor, kernel)) found.push_back(&one);
    return found;
}

bool tolerates_taint(const Node& toleration, const Node& taint) {
    const auto key = toleration.get_string({"key"}), effect = toleration.get_string({"effect"});
    const bool exists = toleration.get_string({"operator"}) == "Exists";
    const bool is_of_key =
        key.empty() ? exists
                    : key == taint.get_string({"key"}) &&
                          (exists || toleration.get_string({"value"}) == taint.get_string({"value"}));
    return is_of_key && (effect.empty() || effect == taint.get_string({"effect"}));
}

/// Whether a node's taints, but for those that its controller tolerates, keep no Pod of the DaemonSet away.
bool tolerates_taints(const Node& daemon_set, const Node& node) {
    if (daemon_set.get_string({"kind"}) != "DaemonSet") return false;
    const auto& tolerations = member_at(daemon_set, {"spec", "template", "spec", "tolerations"}).items();
    const auto& taints = member_at(node, {"spec", "taints"}).items();
    return std::all_of(taints.begin(), taints.end(), [&](const Node& taint) {
        return taint.get_string({"effect"}) == "PreferNoSchedule" ||
               taint.get_string({"key"}).starts_with("node.kubernetes.io/") ||
               std::any_of(tolerations.begin(), tolerations.end(),
                           [&](const Node& each) { return tolerates_taint(each, taint); });
    });
}

}  // namespace

void require_new_images(const Release& now, const Release& previous) {
    Diagnostics faults;
    const auto judge = [&](const ReleaseObject& driver) {
        const auto vendor = driver_vendor(driver.object);
        if (vendor.empty() || is_paired_build(driver.object)) return;
        const auto* old = previous.find(id_of(driver.object));
        const auto images = containers_of(driver.object, {"image"});
        if (old == nullptr || !containers_of(old->object, {"image"}).same_value(images)) return;
        const bool is_same = old->object.same_value(driver.object);
        const auto before = builds_of(previous, vendor, driver.kernel);
        for (const auto* build : builds_of(now, vendor, driver.kernel)) {
            const auto source = source_of(build->object);
            const bool is_known = before.empty() || std::any_of(before.begin(), before.end(), [&](const auto* each) {
                                      return source_of(each->object).same_value(source);
                                  });
            const bool is_pulled = !is_same && (!build->on_demand || always_pulls(driver.object));
            if (is_known || is_pulled) continue;
            faults.push_back({Severity::error, "image-not-renamed",
                              fmt::format("{}: {} builds its image from something else than in release {}, and the "
                                          "image has the same name: nodes would keep the driver of before",
                                          object_text(driver.object), object_text(build->object), previous.revision),
                              {},
                              "give the image a name or a tag for each version; without a chart: entry image of "
                              "spec.configuration",
                              Exit::data});
            return;
        }
    };
    for (const auto& state : now.states) std::for_each(state.objects.begin(), state.objects.end(), judge);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
}

std::vector<State> states_of(const recipe::plan::RenderedRecipes& rendered,
                             std::span<const recipe::plan::SpecialResource> all, const std::string& update_vendor) {
    std::vector<State> states;
    std::map<std::string, int> used;
    Diagnostics faults;
    std::string last_cr, last_state;
    for (const auto& one : rendered.objects) {
        if (states.empty() || one.cr != last_cr || one.state != last_state) {
            last_cr = one.cr;
            last_state = one.state;
            State state;
            const auto plain = plain_state(one.state);
            state.name = one.cr + "/" + plain;
            if (const auto number = ++used[state.name]; number > 1) state.name += fmt::format("-{}", number);
            state.resource = one.cr;
            state.label = upgrade::recipe::state_label(one.cr, plain);
            state.nodes = choice_of(all, one.cr);
            check_label(state, all, faults);
            states.push_back(std::move(state));
        }
        auto object = without_owner(tree_of(one));
        if (auto fault = log_pattern_fault(object); !fault.empty())
            faults.push_back({Severity::error, "bad-gate", std::move(fault), one.origin,
                              "correct the annotation specialresource.openshift.io/wait-for-logs", Exit::data});
        const bool on_demand = is_paired_build(object) && driver_vendor(object) != update_vendor;
        states.back().objects.push_back({one.kernel, std::move(object), on_demand});
    }
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    if (states.empty())
        throw Error(Exit::data, "nothing-to-apply", fmt::format("recipe {} renders no object", rendered.main))
            .hint("see kmm-plan render recipe");
    drop_early_labels(states);
    return states;
}

std::vector<Judged> review(const Release& release, kube::Client& client, Objects& objects, OwnObjects& own,
                           kube::Force force, bool is_upgrade) {
    require_kinds(release, objects);
    const HookRun hooks{release.lineage, is_upgrade};
    std::map<std::string, bool> namespaces;
    const auto has_namespace = [&](const std::string& name) {
        const auto known = namespaces.find(name);
        if (known != namespaces.end()) return known->second;
        return namespaces[name] = client.find(kube::resources::k_namespaces, {"", name}).has_value();
    };
    std::vector<Judged> judged;
    for (const auto& state : release.states) {
        for (const auto& one : state.objects) {
            judged.push_back({&state, &one, std::nullopt});
            const auto resource = objects.resource_of(one.object);
            if (!resource) continue;
            const auto object = placed(one.object, *resource);
            const auto space = object.get_string({"metadata", "namespace"});
            if (!space.empty() && !has_namespace(space)) continue;
            std::string wait;
            judged.back().change = own.apply(*resource, object, force, kube::DryRun::all, wait, hooks);
            if (!wait.empty()) judged.back().change.reset();
        }
    }
    return judged;
}

std::set<std::string> needed_kernels(kube::Client& client, const upgrade::recipe::Subject& subject,
                                     const std::vector<Release>& all) {
    std::set<std::string> kernels(subject.keep_kernels.begin(), subject.keep_kernels.end());
    const auto pools = cluster::MachinePools(client).read();
    std::set<std::string> with_nodes;
    for (const auto& node : client.list_all(kube::resources::k_nodes, {})) {
        kernels.insert(node.get_string({"status", "nodeInfo", "kernelVersion"}));
        if (const auto* pool = cluster::pool_of(pools, node)) with_nodes.insert(pool->name);
    }
    const auto is_open = [&](const cluster::MachinePool& pool) {
        return pool.paused && !with_nodes.contains(pool.name);
    };
    if (std::none_of(pools.begin(), pools.end(), is_open)) return kernels;
    for (const auto& release : all) {
        for (const auto& state : release.states)
            for (const auto& one : state.objects) kernels.insert(one.kernel);
        for (const auto& one : release.kept) kernels.insert(one.kernel);
    }
    kernels.erase("");
    return kernels;
}

std::vector<UncoveredNode> uncovered_nodes(kube::Client& client, const Release& release) {
    std::vector<UncoveredNode> found;
    for (const auto& node : client.list_all(kube::resources::k_nodes, {})) {
        if (!api::runs_linux(node)) continue;
        auto object = node;
        object.set("apiVersion", "v1");
        object.set("kind", "Node");
        const std::vector<value::Document> alone{{"cluster", std::move(object)}};
        const bool is_left_out = recipe::plan::observe_facts(alone, false).kernels.empty();
        const auto kernel = node.get_string({"status", "nodeInfo", "kernelVersion"});
        if (kernel.empty()) continue;
        const auto lacks = [&](const State& state) {
            const auto has = [&](const ReleaseObject& one) { return one.kernel == kernel; };
            const auto is_copy = [&](const ReleaseObject& one) {
                return !one.kernel.empty() && (!is_left_out || tolerates_taints(one.object, node));
            };
            return state.nodes.selects(node) && std::any_of(state.objects.begin(), state.objects.end(), is_copy) &&
                   std::none_of(state.objects.begin(), state.objects.end(), has);
        };
        if (std::any_of(release.states.begin(), release.states.end(), lacks))
            found.push_back({node.get_string({"metadata", "name"}), kernel, is_left_out});
    }
    return found;
}

upgrade::Run rollout_run(const RecipeRequest& request, const Release& now, const Release* previous,
                         const std::vector<DriverNode>& nodes) {
    auto run = begin_run(request,
                         nodes.empty() ? upgrade::recipe::procedure_rollout() : upgrade::recipe::procedure_downgrade(),
                         request.options);
    auto subject = request.subject;
    subject.revision = now.revision;
    subject.previous = previous == nullptr ? 0 : previous->revision;
    upgrade::recipe::set_subject(run, subject);
    run.from_version = previous == nullptr ? "" : previous->version;
    run.to_version = now.version;
    for (const auto& state : now.states) {
        for (const auto& node : nodes)
            if (node.state == state.name) run.nodes.push_back(record_of(node, run.from_version));
        run.nodes.push_back(
            record_of(state, previous == nullptr || previous->find(state.name) == nullptr ? "" : previous->version));
    }
    const auto has_wave = [&](const State& state) { return request.waves.contains(state.resource); };
    if (!nodes.empty() || !std::all_of(now.states.begin(), now.states.end(), has_wave)) return run;
    std::map<std::int64_t, std::set<std::string>> resources;
    for (std::size_t place = 0; place < now.states.size(); ++place) {
        const auto& resource = now.states[place].resource;
        const auto wave = request.waves.at(resource);
        resources[wave].insert(resource);
        upgrade::recipe::set_wave(run.nodes[place], wave);
    }
    for (const auto& [wave, names] : resources)
        run.options.max_unavailable =
            std::max(run.options.max_unavailable, static_cast<std::int64_t>(names.size()));
    return run;
}

upgrade::Run removal_run(const RecipeRequest& request, const Release& everything) {
    auto run = begin_run(request, upgrade::recipe::procedure_removal(), request.options);
    auto subject = request.subject;
    subject.revision = everything.revision;
    upgrade::recipe::set_subject(run, subject);
    run.from_version = everything.version;
    for (auto state = everything.states.rbegin(); state != everything.states.rend(); ++state)
        run.nodes.push_back(record_of(*state, everything.version));
    return run;
}

}  // namespace kmm::drive
