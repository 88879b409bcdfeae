// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_module/operator_way.hpp"

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "base/text.hpp"
#include "upgrade/module_nodes/operator_check.hpp"
#include "upgrade/module_nodes/wanted.hpp"

namespace kmm::drive {

using std::chrono::milliseconds;
using upgrade::EventKind;

namespace {

/// How long something is waited for before it is said.
constexpr milliseconds k_before_word{1000};
/// How long after news the objects are read.
constexpr milliseconds k_settle{50};
/// How long a wait for news lasts at most, so that a person who asks to stop is heard.
constexpr milliseconds k_news_slice{500};

Error moved_on(const OperatorView& view, const std::string& version) {
    return Error(Exit::checks_failed, "module-moved-on",
                 fmt::format("KMM loads what the Module says, which is {}, not {}",
                             view.module_version.empty() ? "no version" : view.module_version, version))
        .hint(fmt::format("put {} and its image into Module {}/{} again, then kmm-upgrade resume", version, view.ns,
                          view.name));
}

}  // namespace

OperatorView OperatorWay::view(const std::string& name) const {
    return operator_view(tools_.fleet.store().read().objects, name, tools_.subject.ns, tools_.subject.name);
}

LookResult OperatorWay::look(const std::string& name, const Deadline& /*deadline*/) {
    LookResult result;
    try {
        const auto seen = view(name);
        const auto& node = seen.node.node;
        result.look = Look{NodeFacts{node.kernel_version, node.boot_id, node.architecture}, seen.live()};
    } catch (const Error& error) {
        if (error.code() != "node-not-found") throw;
        result.why = NoLook::refused;
        result.error = error;
    }
    return result;
}

std::optional<LiveModule> OperatorWay::glance(const std::string& name) {
    const auto result = look(name, Deadline(tools_.clock, milliseconds(0)));
    return result.look ? std::optional(result.look->module) : std::nullopt;
}

std::string OperatorWay::plugin_pods(const OperatorView& view) const {
    std::vector<std::string> names;
    try {
        for (const auto& pod : tools_.workloads.pods(view.node.node.meta.name)) {
            const auto label = pod.labels.find(std::string(api::k_label_module_name));
            if (pod.namespace_ == view.ns && !pod.is_worker && label != pod.labels.end() && label->second == view.name)
                names.push_back(pod.name);
        }
    } catch (const Error&) {
        return "";  // it is for people only
    }
    return names.empty() ? "" : fmt::format(" ({})", base::join(names, ", "));
}

void OperatorWay::mend(const OperatorView& view, const std::string& version) {
    const auto dead = dead_labels(view, version);
    if (!dead) return;
    if (!tools_.run().options.repair) throw *dead;
    const auto key = api::label_version_schedule(view.key, view.ns, view.name);
    const auto& name = view.node.node.meta.name;
    tell(tools_.recorder, name, fmt::format("repairs {} {}: takes {}={} away", view.row(version).name,
                           plan::to_string(view.row(version)), api::to_string(view.key), view.labels.schedule));
    try {
        tools_.fleet.store().patch_node_labels(name, {{key, std::nullopt}}, {{key, view.labels.schedule}});
    } catch (const Error& error) {
        if (error.code() != "conflict") throw;  // it was changed meanwhile: the next look tells
    }
}

void OperatorWay::wait(const std::string& name, const std::string& version, OperatorGoal goal, OnReboot on_reboot,
                       const Deadline& deadline) {
    auto& store = tools_.fleet.store();
    const auto boot = tools_.node(name).boot_id;
    std::string told, last;
    auto since = tools_.clock.monotonic();
    for (;;) {
        const auto news = store.await_news(0, milliseconds(0));
        const auto seen = view(name);
        if (on_reboot == OnReboot::plan_anew && seen.node.node.boot_id != boot) {
            const auto& node = seen.node.node;
            tools_.plan_again(name, NodeFacts{node.kernel_version, node.boot_id, node.architecture});
        }
        if (seen.labels.module != version)
            throw Error(Exit::locked, "label-changed",
                        fmt::format("label version-module was changed to {} by someone else during the upgrade to {}",
                                    seen.labels.module.empty() ? "nothing" : seen.labels.module,
                                    version.empty() ? "nothing" : version))
                .hint("find out who; kmm-upgrade retry " + name + " sets it again");
        mend(seen, version);
        auto missing = awaited(seen, version, goal);
        if (!missing) return;
        if (goal == OperatorGoal::loaded && seen.labels.worker == version && !seen.node.spec &&
            seen.module_version != version)
            throw moved_on(seen, version);
        if (missing->text != last) since = tools_.clock.monotonic();
        last = missing->text;
        if (missing->text != told && (deadline.passed() || tools_.clock.monotonic() - since >= k_before_word)) {
            told = missing->text;
            const auto pods = missing->on_plugin_pods ? plugin_pods(seen) : "";
            tell(tools_.recorder, name, fmt::format("waits for {}{}", missing->text, pods));
        }
        if (deadline.passed()) {
            const auto timeout = base::format_duration(milliseconds(tools_.run().options.node_timeout_ms));
            throw Error(Exit::unhealthy, "operator-timeout",
                        fmt::format("after {} still waiting for {}{}", timeout, missing->text,
                                    missing->on_plugin_pods ? plugin_pods(seen) : ""))
                .hint(missing->hint);
        }
        if (tools_.interrupted()) throw Leave{StepEnd::left};
        static_cast<void>(store.await_news(news, std::min(k_news_slice, deadline.left())));
        static_cast<void>(tools_.clock.sleep_for(k_settle));  // much may come at once
    }
}

Facts OperatorWay::facts_of(const std::string& name, const std::string& message) const {
    const auto live = view(name).live();
    auto facts = value::Node::mapping();
    facts.set("currentVersion", version_of(tools_.run(), tools_.node(name), live));
    facts.set("currentKnown", true);
    facts.set("message", message);
    return facts;
}

Facts OperatorWay::check(const std::string& name, const Look& seen, const Deadline& /*deadline*/) {
    const auto& run = tools_.run();
    const auto module = tools_.fleet.module();
    require_still_wanted(module, name);
    require_version(module, run.to_version);
    const auto objects = tools_.fleet.store().read().objects;
    const auto now = operator_view(objects, name, tools_.subject.ns, tools_.subject.name);
    require_operable(objects, module, now, run.options, run.to_version);
    tools_.require_label(name);
    const auto entry = resolve_entry(module, seen.facts.kernel);
    const auto next = first_operator_step(now, run.to_version);
    auto facts = facts_of(
        name, next == "validate" ? fmt::format("KMM has loaded {}", run.to_version)
                                 : fmt::format("KMM is to load {} {}", run.to_version, entry.config->container_image));
    facts.set("next", next);
    facts.set("kernel", seen.facts.kernel);
    facts.set("bootID", seen.facts.boot_id);
    facts.set("architecture", seen.facts.architecture);
    facts.set("targetEntry", api::encode(entry));
    facts.set("targetImage", entry.config->container_image);
    return facts;
}

Facts OperatorWay::unload(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.run();
    tools_.require_label(name);
    if (seen.module.presence == Presence::live && seen.module.said_version != run.to_version)
        tools_.fleet.require_unloadable(name, seen.facts.boot_id);
    tools_.fleet.set_module(name, run.to_version);
    wait(name, run.to_version, OperatorGoal::others_gone, OnReboot::plan_anew, deadline);
    const auto version = seen.module.said_version.value_or("");
    return facts_of(
        name, version.empty() || version == run.to_version ? "nothing else is loaded" : "KMM has unloaded " + version);
}

Facts OperatorWay::load(const std::string& name, const Look& /*seen*/, const Deadline& deadline) {
    const auto& run = tools_.run();
    tools_.require_label(name);
    tools_.fleet.set_module(name, run.to_version);
    wait(name, run.to_version, OperatorGoal::loaded, OnReboot::plan_anew, deadline);
    return facts_of(name, "KMM has loaded " + run.to_version);
}

void OperatorWay::require_target(const std::string& name, const Look& /*seen*/) const {
    const auto version = tools_.run().to_version;
    const auto missing = awaited(view(name), version, OperatorGoal::loaded);
    if (missing)
        throw Error(Exit::unhealthy, "module-gone",
                    fmt::format("{} does not run any more: what is missing is {}", version, missing->text))
            .hint(missing->hint);
}

std::optional<Loss> OperatorWay::loss(const api::Objects& objects, const std::string& name) {
    const auto version = tools_.run().to_version;
    const auto missing = awaited(operator_view(objects, name, tools_.subject.ns, tools_.subject.name), version,
                                 OperatorGoal::loaded);
    if (!missing) return std::nullopt;
    return Loss{"operator-timeout", fmt::format("still waiting for {}, after it was done", missing->text),
                fmt::format("{}; then kmm-upgrade retry {}", missing->hint, name), true};
}

Facts OperatorWay::validate(const std::string& name, const Look& seen) {
    require_target(name, seen);
    return facts_of(name, "KMM has loaded " + tools_.run().to_version);
}

Facts OperatorWay::rollback(const std::string& name, const Look& /*seen*/, const Deadline& deadline) {
    const auto node = tools_.node(name);
    const auto before = decode_module_labels(node.from_labels).module;
    const auto back = before.value_or("");
    const bool had_module = !node.from_entry.is_null();
    const auto now = view(name);
    // As long as KMM has taken nothing out yet, the old version just stays.
    const bool is_there = now.labels.worker == back && now.node.spec && now.node.spec->version == back;
    if (had_module && !back.empty() && now.module_version != back && !is_there) throw moved_on(now, back);
    tools_.fleet.set_module(name, before);
    wait(name, back, had_module ? OperatorGoal::loaded : OperatorGoal::others_gone, OnReboot::go_on, deadline);
    return facts_of(name, fmt::format("rolled back to {}", had_module && !back.empty() ? back : "nothing"));
}

}  // namespace kmm::drive
