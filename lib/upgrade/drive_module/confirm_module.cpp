// SPDX-License-Identifier: Apache-2.0
// The look at nodes that are done, before the run says that all of them are: labels, and what is live.
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/actor_parts/readiness.hpp"
#include "upgrade/drive/pool.hpp"
#include "upgrade/drive_module/module_actor.hpp"

namespace kmm::drive {

using upgrade::Event, upgrade::EventKind;

namespace {

constexpr const char* k_failed_state = "validating-failed";

}  // namespace

std::vector<std::string> ModuleActor::changed_labels(const api::Node& node) const {
    const auto& version = tools_.run().to_version;
    const auto wanted = version.empty() ? std::nullopt : std::optional<std::string>(version);
    const auto labels = module_labels_of(node, subject_.ns, subject_.name);
    std::vector<std::string> others;
    const auto compare_label = [&](const char* label, const std::optional<std::string>& value) {
        if (value != wanted)
            others.push_back(fmt::format("label {} to {}", label, value ? base::escape(*value) : "nothing"));
    };
    compare_label("version-module", labels.module);
    if (way_->sets_worker_label()) compare_label("version-worker-pod", labels.worker);
    return others;
}

std::optional<Event> ModuleActor::find_change(const api::Node& object) {
    const auto& name = object.meta.name;
    if (upgrade::module::goes_away(tools_.recorder.node(name))) return std::nullopt;
    const auto others = changed_labels(object);
    if (others.empty()) return std::nullopt;
    auto changed = tools_.event(EventKind::observed, name, "", k_failed_state);
    const auto& version = tools_.run().to_version;
    changed.reason = "label-changed";
    changed.message = fmt::format("someone else changed {} after the upgrade to {}", base::join(others, ", "),
                                  version.empty() ? "the Module" : version);
    changed.facts.set("currentKnown", false);
    changed.facts.set(
        "hint",
        fmt::format("find out who; kmm-upgrade retry {} sets it again, kmm-upgrade skip {} --reason TEXT leaves it",
                    name, name));
    return changed;
}

Event ModuleActor::event_of(const Loss& loss, const std::string& name) const {
    if (loss.code.empty()) return silent_event(tools_.recorder, name, k_failed_state);
    auto lost = tools_.event(EventKind::observed, name, "", k_failed_state);
    lost.reason = loss.code;
    lost.message = loss.message;
    lost.facts.set("currentKnown", false);
    if (!loss.hint.empty()) lost.facts.set("hint", loss.hint);
    return lost;
}

std::vector<Event> ModuleActor::confirm() {
    std::set<std::string> proven, may_pass;  // of this look
    std::mutex mutex;
    const auto find = [&] {
        const auto run = tools_.recorder.run();
        const auto snapshot = fleet_.store().read();
        std::map<std::string_view, const api::Node*> present;
        for (const auto& node : snapshot.objects.nodes) present.emplace(node.meta.name, &node);
        std::vector<const api::Node*> done;
        for (const auto& node : run.nodes) {
            if (node.state != upgrade::k_node_done) continue;
            const auto found = present.find(node.name);
            if (found == present.end() && has_errors(snapshot.diagnostics))
                throw Error::from_diagnostics(snapshot.diagnostics);
            if (found != present.end()) done.push_back(found->second);  // a node that has left the cluster runs nothing
        }
        may_pass.clear();
        std::vector<std::optional<Event>> changes(done.size());
        for_each_at_once(done.size(), [&](std::size_t index) {
            const auto& name = done[index]->meta.name;
            changes[index] = find_change(*done[index]);
            if (changes[index]) return;
            {
                const std::lock_guard lock(mutex);
                if (proven.contains(name)) return;
            }
            const auto loss = way_->loss(snapshot.objects, name);
            if (tools_.interrupted()) throw Leave{StepEnd::left};
            if (loss) changes[index] = event_of(*loss, name);
            const std::lock_guard lock(mutex);
            if (!loss) proven.insert(name);
            else if (loss->may_pass) may_pass.insert(name);
        });
        std::vector<Event> events;
        for (auto& change : changes)
            if (change) events.push_back(std::move(*change));
        return events;
    };
    return find_when_ready(tools_.clock, tools_.recorder, tools_.interrupted, find,
                           [&](const Event& event) { return may_pass.contains(event.node); });
}

}  // namespace kmm::drive
