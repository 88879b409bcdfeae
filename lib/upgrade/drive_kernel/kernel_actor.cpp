// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kernel/kernel_actor.hpp"

#include <algorithm>
#include <any>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/kmm/find_named.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/actor_parts/user_check.hpp"
#include "upgrade/drive_kernel/control_planes.hpp"
#include "upgrade/module_nodes/look.hpp"

namespace kmm::drive {

using std::chrono::milliseconds;
using upgrade::Event;
using upgrade::EventKind;
using namespace upgrade::kernel;

namespace {

constexpr milliseconds k_kubelet_pause{1000};
constexpr milliseconds k_glance{15'000};
constexpr milliseconds k_check_patience{120'000};  ///< a kubelet says what its node runs within seconds

/// Steps in which the node is rebooted.
bool reboots(const std::string& step) { return step == k_step_reboot || step == upgrade::k_step_rollback; }

}  // namespace

value::Node KernelActor::facts_of(const SystemSight& seen) {
    return value::Node::mapping({{"kernel", seen.kernel},
                                 {"bootID", seen.boot_id},
                                 {"architecture", seen.architecture},
                                 {"currentVersion", seen.kernel},
                                 {"currentKnown", true}});
}

std::string KernelActor::text_of(const std::map<std::string, LoadedDriver>& drivers) {
    if (drivers.empty()) return "no Module selects the node";
    std::vector<std::string> texts;
    for (const auto& [name, driver] : drivers) texts.push_back(fmt::format("{} {}", name, driver.identity.brief()));
    return "loaded " + base::join(texts, ", ");
}

KernelActor::KernelActor(cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner,
                         Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted, bool has_kubelets,
                         PoolPauses pools, std::unique_ptr<NodeDrivers> others)
    : store_(store),
      workloads_(workloads),
      recorder_(recorder),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      subject_(subject_of(recorder.header())),
      has_kubelets_(has_kubelets),
      agent_(runner, clock, interrupted_, teller(recorder),
             [this](const std::string& node) { require_present(node); }),
      drivers_(store, runner, clock, interrupted_, teller(recorder), subject_.loader),
      emptier_(workloads, recorder, clock, interrupted_),
      pools_(std::move(pools)),
      others_(std::move(others)) {}

std::optional<std::string> KernelActor::seen_boot(const std::string& node) {
    const std::lock_guard guard(mutex_);
    const auto found = boots_.find(node);
    return found == boots_.end() ? std::nullopt : std::optional(found->second);
}

Sight KernelActor::look(const upgrade::NodeStep& step, const Deadline& deadline) {
    Sight sight;
    if (is_emptying(step.step)) return sight;
    const auto before = recorder_.node(step.node);
    try {
        if (step.step == upgrade::k_step_rollback && is_gone(step.node)) return sight;
        auto seen = agent_.facts(step.node, deadline);
        if (auto other = other_host(recorder_, store_, step.node, seen.boot_id)) throw Error(*other);
        {
            const std::lock_guard guard(mutex_);
            boots_[step.node] = seen.boot_id;
        }
        if (step.step == k_step_validate && seen.boot_id != before.boot_id) {
            auto changed =
                node_event(recorder_, EventKind::observed, step.node, "", std::string(upgrade::k_node_pending));
            changed.reason = "node-rebooted";
            changed.message =
                fmt::format("the node rebooted into kernel {}: its steps begin again", base::escape(seen.kernel));
            changed.facts = facts_of(seen);
            sight.changed = std::move(changed);
        } else if (before.open) {
            auto left = node_event(recorder_, EventKind::observed, step.node, "");
            left.message = fmt::format("looked after the step was cut off: kernel {}, {}", base::escape(seen.kernel),
                                       seen.boot_id == before.boot_id ? "the same boot" : "another boot");
            sight.left = std::move(left);
        }
        sight.seen = std::move(seen);
    } catch (const Leave&) {
        sight.is_interrupted = true;
    } catch (const Error& error) {
        if (error.code() == "interrupted" && interrupted_()) sight.is_interrupted = true;
        else if (cluster::ends_run(error)) throw;
        else if (step.step == k_step_reboot && before.open && is_no_answer(error))
            sight.error = not_back(step.node, error, false);
        else sight.error = error;
    }
    return sight;
}

value::Node KernelActor::intent(const upgrade::NodeStep& step) {
    if (step.step == upgrade::k_step_cordon) return Cordons::intent();
    auto facts = value::Node::mapping();
    if (step.step == k_step_install) set_installed(facts, recorder_.header().to_version);
    if (!reboots(step.step)) return facts;
    facts.set("currentKnown", false);
    // The boot from which a step that was cut off has asked for the reboot stays: it tells whether the node has
    // rebooted since.
    const auto node = recorder_.node(step.node);
    const bool goes_on = node.open && node.step == step.step && !boot_before(node).empty();
    if (!goes_on) {
        const auto boot = seen_boot(step.node).value_or(node.boot_id);
        set_boot_before(facts, boot);
        if (step.step == k_step_reboot) set_reboot_asked(facts, boot);
    }
    if (step.step == upgrade::k_step_rollback && is_emptied_for_rollback(node))
        facts.set("cordon", upgrade::k_cordon_ours);
    return facts;
}

Done KernelActor::act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    const auto& name = step.node;
    if (name.empty()) return pools_.act(step.step);
    if (step.step == upgrade::k_step_cordon) return emptier_.cordons().cordon(name);
    if (step.step == upgrade::k_step_drain) return emptier_.drain(name, deadline);
    if (step.step == upgrade::k_step_uncordon) return uncordon(name);
    if (!sight.seen.has_value()) return leave_gone(name);
    const auto& seen = std::any_cast<const SystemSight&>(sight.seen);
    if (step.step == k_step_check) return check(name, seen, deadline);
    if (step.step == k_step_install) {
        Done done;
        done.message = agent_.install(name, recorder_.header().to_version, subject_.command, deadline);
        return done;
    }
    if (step.step == k_step_reboot) return reboot(name, seen, deadline);
    if (step.step == k_step_load) return load(name, seen, deadline);
    if (step.step == k_step_validate) return validate(name, seen, deadline);
    pools_.hold();
    return roll_back(name, seen, deadline);
}

Done KernelActor::check(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    require_node(
        name, seen,
        Deadline(clock_, std::min(milliseconds(recorder_.header().options.node_timeout_ms), k_check_patience)));
    if (seen.kernel != recorder_.header().to_version)
        await_quorum(name, std::min(deadline.left(), k_check_patience));
    Done done;
    done.facts = facts_of(seen);
    done.message = fmt::format("kernel {}", seen.kernel);
    // Its Node named none at the start; nothing was installed yet.
    if (const auto record = recorder_.node(name); record.from_version.empty() && installed_on(record).empty())
        done.facts.set("fromVersion", seen.kernel);
    if (others_ == nullptr) return done;
    // What served once is wanted again, also where this is a retry and it does not serve now.
    const auto known = recipe_drivers_of(recorder_.node(name));
    std::set<std::string> wanted(known.begin(), known.end());
    const auto serving = others_->serving(name);
    for (const auto& [driver, containers] : serving) wanted.insert(driver);
    if (wanted.empty()) return done;
    set_recipe_drivers(done.facts, {wanted.begin(), wanted.end()});
    set_recipe_containers(done.facts, serving);
    done.message += fmt::format(", driver {}", base::join(std::vector(wanted.begin(), wanted.end()), ", "));
    return done;
}

void KernelActor::await_others(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    if (others_ == nullptr) return;
    const Say say = [&](const std::string& text) { tell(recorder_, name, text); };
    const auto record = recorder_.node(name);
    const bool has_rebooted = !boot_before(record).empty() && boot_before(record) != seen.boot_id;
    const auto containers = has_rebooted ? recipe_containers_of(record) : std::map<std::string, std::string>();
    for (const auto& driver : recipe_drivers_of(record)) {
        const auto found = containers.find(driver);
        const auto before = found == containers.end() ? std::string() : found->second;
        try {
            const auto lacks = [&] { return others_->problem(name, seen.kernel, driver, before); };
            await_clear(clock_, deadline, interrupted_, "", spoken(clock_, deadline, say, lacks));
        } catch (const Error& error) {
            if (error.code() != "not-verified") throw;
            throw Error(Exit::unhealthy, "driver-missing", fmt::format("node {}: {}", name, error.message()))
                .hint(fmt::format("kubectl get pods -A --field-selector spec.nodeName={}; then kmm-upgrade retry {}",
                                  name, name));
        }
    }
}

void KernelActor::require_node(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    if (!has_kubelets_) {
        store_.put_node_info(name, seen.kernel, seen.boot_id, seen.architecture);
        return;
    }
    for (;;) {
        const auto news = store_.await_news(0, milliseconds(0));
        const auto snapshot = store_.read_about({name, "", ""});
        const auto* node = plan::find_named(snapshot.objects.nodes, name);
        if (node == nullptr) {
            if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
            throw Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", name));
        }
        const bool is_same = node->boot_id == seen.boot_id && node->kernel_version == seen.kernel;
        const bool is_ready = !node->ready || *node->ready == "True";
        if (is_same && is_ready) return;
        if (deadline.passed()) {
            if (is_same)
                throw Error(Exit::timeout, "node-not-ready", fmt::format("node {} is not Ready", name))
                    .hint(fmt::format("kubectl describe node {}", name));
            throw Error(
                Exit::timeout, "node-differs",
                fmt::format(
                    "node {}: its Node says kernel {} and boot {}, the host that answers has kernel {} and boot {}",
                    name, base::escape(node->kernel_version), base::escape(node->boot_id), base::escape(seen.kernel),
                    base::escape(seen.boot_id)))
                .hint(
                    "is the kubelet running there? If it is, another host was reached: correct the name in the ssh "
                    "configuration or /etc/hosts");
        }
        if (interrupted_()) throw Leave{StepEnd::left};
        static_cast<void>(store_.await_news(news, std::min(k_kubelet_pause, deadline.left())));
    }
}

Done KernelActor::reboot(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    const auto& release = recorder_.header().to_version;
    const auto before = boot_before(recorder_.node(name));
    if (seen.boot_id == before && seen.kernel != release) {
        empty_again(name, deadline);
        await_quorum(name, deadline.left());
    }
    const auto now = agent_.reboot_into(name, release, before, seen, deadline);
    require_node(name, now, deadline);
    Done done;
    done.facts = facts_of(now);
    done.message = now.boot_id == before ? fmt::format("runs {} already", release) : fmt::format("booted {}", release);
    return done;
}

void KernelActor::await_quorum(const std::string& name, milliseconds patience) {
    if (!upgrade::kernel::is_control_plane(recorder_.node(name))) return;
    // Without a drain the account need not be able to list Pods.
    const auto pods = recorder_.header().options.drain
                          ? PodsOf([&](const std::string& node) { return workloads_.pods(node); })
                          : PodsOf();
    const Deadline deadline(clock_, patience);
    const Say say = [&](const std::string& text) { tell(recorder_, name, text); };
    std::string problem;
    const auto lacks = [&] {
        const auto snapshot = store_.read();
        if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
        return problem = quorum_problem(snapshot.objects.nodes, name, pods);
    };
    try {
        await_clear(clock_, deadline, interrupted_, "", spoken(clock_, deadline, say, lacks));
    } catch (const Error& error) {
        if (error.code() != "not-verified") throw;
        throw Error(Exit::unhealthy, "control-plane-unavailable",
                    fmt::format("control plane {} is not rebooted: {}", name, problem))
            .hint(fmt::format("bring the others back (kubectl get nodes; kubectl get pods -n kube-system), then "
                              "kmm-upgrade retry {}",
                              name));
    }
}

void KernelActor::empty_again(const std::string& name, const Deadline& deadline) {
    emptier_.empty_again(
        name,
        [&] {
            const auto snapshot = store_.read_about({name, "", ""});
            const auto* node = plan::find_named(snapshot.objects.nodes, name);
            return node != nullptr && !node->unschedulable;
        },
        deadline);
}

Done KernelActor::load(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    require_kernel(name, seen, recorder_.header().to_version);
    require_node(name, seen, deadline);
    const auto loaded = drivers_.bring(name, seen, deadline);
    await_others(name, seen, deadline);
    Done done;
    done.facts = facts_of(seen);
    set_drivers(done.facts, encode(loaded));
    done.message = text_of(loaded);
    return done;
}

void KernelActor::prove(const std::string& name, const Deadline& deadline) {
    const auto node = recorder_.node(name);
    const auto seen = agent_.facts(name, deadline);
    require_kernel(name, seen, recorder_.header().to_version);
    if (seen.boot_id != node.boot_id)
        throw Error(Exit::unhealthy, "node-rebooted", fmt::format("node {} has rebooted since it was updated", name))
            .hint(fmt::format("see its kernel log of the boot before: journalctl -k -b -1; then kmm-upgrade retry {}",
                              name));
    drivers_.prove(name, decode_drivers(drivers_of(node)), node.boot_id, deadline);
    await_others(name, seen, deadline);
}

Done KernelActor::validate(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    prove(name, deadline);
    const auto& header = recorder_.header();
    const auto node = recorder_.node(name);
    ask_user_check(header.options,
                   value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                         {"kind", "NodeCheck"},
                                         {"node", name},
                                         {"kernel", seen.kernel},
                                         {"bootID", seen.boot_id},
                                         {"architecture", seen.architecture},
                                         {"fromVersion", node.from_version},
                                         {"toVersion", header.to_version}}),
                   deadline, interrupted_);
    Done done;
    done.facts = facts_of(seen);
    done.message = fmt::format("kernel {}, {}", header.to_version, text_of(decode_drivers(drivers_of(node))));
    // Where a cordon is still to be lifted, a validated node is not done; it is watched when its Pods are back.
    if (emptier_.cordons().is_ours(name)) done.state = "validating";
    else watch(name, {});
    return done;
}

void KernelActor::watch(const std::string& name, value::Node facts) {
    const auto& options = recorder_.header().options;
    if (options.soak_ms == 0) return;
    soak(recorder_, clock_, name, std::move(facts), interrupted_);
    prove(name, Deadline(clock_, milliseconds(options.node_timeout_ms)));
}

Done KernelActor::uncordon(const std::string& name) {
    return emptier_.cordons().uncordon(
        name, [&](value::Node facts) { watch(name, std::move(facts)); },
        [&] {
            return fmt::format("kernel {}, {}", recorder_.header().to_version,
                               text_of(decode_drivers(drivers_of(recorder_.node(name)))));
        });
}

void KernelActor::explain(const upgrade::NodeStep& step, const Error& error, Event& failed) {
    for (const auto& [key, text] : error.details()) {
        if (key == "transport") failed.message = error.message() + transport_cause(error);
        if (key == "output" || key == "kernel") failed.message = fmt::format("{}: {}", error.message(), text);
        if (key == "errno" && error.message().find(text) == std::string::npos)
            failed.message = fmt::format("{}: {}", text, failed.message);
    }
    if (step.step == upgrade::k_step_cordon || step.step == upgrade::k_step_drain) {
        emptier_.cordons().give_back(step.node, [] { return true; }, failed);
        return;
    }
    // What kept it from being asked.
    if (step.step == k_step_reboot && error.code() != "node-not-rebooted" && error.code() != "node-not-back")
        set_reboot_asked(failed.facts, "");
    // What runs there now: only a look can tell.
    if (is_emptying(step.step) || error.code() == "node-unreachable" || error.code() == "node-not-back") return;
    const auto facts = glance(step.node);
    for (const auto& member : facts.members()) failed.facts.set(member.key, member.value);
}

std::optional<Error> KernelActor::lost_for_good(const upgrade::NodeStep& step, const Error& error) {
    const auto snapshot = store_.read();
    if (has_errors(snapshot.diagnostics) || plan::find_named(snapshot.objects.nodes, step.node) != nullptr)
        return std::nullopt;
    return error.code() == "node-not-found"
               ? error
               : Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", step.node));
}

value::Node KernelActor::glance(const std::string& node) {
    try {
        if (const auto seen = agent_.glance(node, k_glance)) {
            if (!seen->job.empty())
                tell(recorder_, node,
                     fmt::format("the job {} is still under way there, and goes on", base::escape(seen->job)));
            return facts_of(*seen);
        }
    } catch (const Error& error) {
        if (cluster::ends_run(error) && error.code() != "interrupted") throw;
    }
    return value::Node::mapping();  // it stays unknown
}

namespace {

/// Whether the run's command has ended well on the node, as far as the record says, and none was begun after it.
bool has_installed(const upgrade::NodeRecord& node) {
    if (node.state.starts_with("installing") || node.state.starts_with("rolling-back")) return false;
    return node.state == "installed" || node.state.starts_with("rebooting") || !reboot_asked(node).empty();
}

}  // namespace

std::string KernelActor::release(const std::string& node) {
    auto text = emptier_.cordons().lift(node);
    const auto record = recorder_.node(node);
    const auto next = installed_on(record);
    if (!next.empty() && next != record.current_version && record.state != upgrade::k_node_done)
        text += fmt::format("{}{} {} next", text.empty() ? "" : "; ", has_installed(record) ? "boots" : "may boot",
                            next);
    if (is_going_down(record, record.boot_id))
        text += fmt::format("{}it was asked to reboot, and may do so at any time", text.empty() ? "" : "; ");
    return text;
}

std::map<std::string, std::string> KernelActor::unavailable() {
    std::map<std::string, std::string> names;
    const auto snapshot = store_.read();
    for (const auto& node : snapshot.objects.nodes) {
        if (node.unschedulable) names[node.meta.name] = "cordoned";
        else if (node.ready && *node.ready != "True") names[node.meta.name] = "not ready";
    }
    return names;
}

}  // namespace kmm::drive
