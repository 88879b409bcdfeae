// SPDX-License-Identifier: Apache-2.0
// Getting a node empty before its module is changed, and giving it back.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/workload.hpp"
#include "base/text.hpp"
#include "drive/drain.hpp"
#include "drive/node_steps.hpp"

namespace kmm::drive {
namespace {

using std::chrono::milliseconds;
using Outcome = cluster::PodEviction::Outcome;

/// When a refused eviction is asked for again, as kubectl does it, unless the server says when.
constexpr milliseconds k_ask_again{5000};
constexpr milliseconds k_look_again{2000};
/// How long something stands in the way before it is named, and until it is named again.
constexpr milliseconds k_first_word{5000}, k_next_word{30'000};
constexpr std::size_t k_named = 3;  ///< Pods, of those in the way

std::string owner_text(const std::string& owner) { return owner.empty() ? "somebody else" : owner; }

/// The evictions of one node. Pods are told apart by uid: one of the same name that came later is another Pod.
class Evictions {
public:
    Evictions(cluster::Workloads& workloads, sys::Clock& clock, std::optional<int> grace_seconds)
        : workloads_(workloads), clock_(clock), grace_seconds_(grace_seconds) {}

    /// Asks for those evictions that were not granted yet and whose time has come. Errors: checks_failed "several-budgets".
    void ask(const std::vector<api::WorkloadPod>& pods) {
        const auto now = clock_.monotonic();
        std::erase_if(blocked_, [&](const auto& entry) {
            return std::none_of(pods.begin(), pods.end(), [&](const auto& pod) { return pod.uid == entry.first; });
        });
        for (const auto& pod : pods) {
            if (pod.is_ending || granted_.contains(pod.uid)) continue;
            const auto found = blocked_.find(pod.uid);
            if (found != blocked_.end() && now < found->second.again) continue;
            const auto answer = workloads_.evict(pod, grace_seconds_);
            if (answer.outcome == Outcome::never)
                throw Error(Exit::checks_failed, "several-budgets",
                            fmt::format("Pod {} is under several PodDisruptionBudgets, so that it cannot be evicted", pod.full_name()))
                    .hint(fmt::format("leave one of them: kubectl get pdb -n {}", pod.namespace_));
            if (answer.outcome != Outcome::blocked) {
                if (answer.outcome == Outcome::evicted && !pod.is_finished()) ++evicted_;
                granted_.insert(pod.uid);
                blocked_.erase(pod.uid);
                continue;
            }
            auto& block = found != blocked_.end() ? found->second : blocked_[pod.uid];
            if (block.name.empty()) block.since = now;
            block.name = pod.full_name();
            block.namespace_ = pod.namespace_;
            block.reason = answer.reason;
            block.again = now + answer.retry_after.value_or(k_ask_again);
        }
    }

    /// Whom a budget keeps, and why: "Pod NS/NAME is kept: REASON", the first three; "" for nobody.
    [[nodiscard]] std::string blocked_text() const {
        std::vector<std::string> texts;
        for (const auto& [uid, block] : blocked_) {
            if (texts.size() == k_named) {
                texts.push_back(fmt::format("and {} more", blocked_.size() - k_named));
                break;
            }
            texts.push_back(fmt::format("Pod {} is kept by a PodDisruptionBudget: {}", block.name, block.reason));
        }
        return base::join(texts, "; ");
    }
    /// How long the one that waits longest does.
    [[nodiscard]] milliseconds blocked_for() const {
        milliseconds longest{0};
        for (const auto& [uid, block] : blocked_) longest = std::max(longest, clock_.monotonic() - block.since);
        return longest;
    }
    [[nodiscard]] std::string blocked_namespace() const { return blocked_.empty() ? "" : blocked_.begin()->second.namespace_; }
    [[nodiscard]] std::size_t evicted() const { return evicted_; }

private:
    struct Block {
        std::string name, namespace_, reason;
        milliseconds since{}, again{};
    };
    cluster::Workloads& workloads_;
    sys::Clock& clock_;
    std::optional<int> grace_seconds_;
    std::set<std::string> granted_;
    std::map<std::string, Block> blocked_;
    std::size_t evicted_ = 0;
};

/// The names of the first three.
std::string names_of(const std::vector<api::WorkloadPod>& pods) {
    std::vector<std::string> names;
    for (const auto& pod : pods) {
        if (names.size() == k_named) {
            names.push_back(fmt::format("and {} more", pods.size() - k_named));
            break;
        }
        names.push_back(pod.full_name());
    }
    return base::join(names, ", ");
}

std::string pods_text(std::size_t count) { return count == 1 ? "1 Pod" : fmt::format("{} Pods", count); }

}  // namespace

NodeSteps::Facts NodeSteps::cordon(const std::string& name) {
    const auto owner = tools_.recorder.header().cordon_owner();
    const auto there = tools_.workloads.cordon(name, owner);
    const bool ours = there.owner == owner;
    auto facts = value::Node::mapping();
    facts.set("cordon", ours ? upgrade::k_cordon_ours : upgrade::k_cordon_foreign);
    if (!ours) facts.set("message", fmt::format("cordoned already by {}, stays so", owner_text(there.owner)));
    return facts;
}

NodeSteps::Facts NodeSteps::drain(const std::string& name, const Deadline& deadline) {
    const auto& options = tools_.recorder.header().options;
    const auto rules = drain_rules_of(options, tools_.fleet.module_or_name(), tools_.workloads);
    std::optional<int> grace;
    if (options.evict_at_once) {
        grace = 0;
    } else if (options.grace_seconds > 0) {
        grace = static_cast<int>(options.grace_seconds);
    }
    Evictions evictions(tools_.workloads, tools_.clock, grace);
    auto granted_since = tools_.clock.monotonic();  // since when no budget keeps anybody
    auto next_word_of_budget = k_first_word, next_word_of_ending = k_first_word;
    for (milliseconds pause{1000};; pause = k_look_again) {
        const auto left = plan::plan_drain(tools_.workloads.pods(name), rules);
        if (!left.refusals.empty())
            throw Error(Exit::checks_failed, "pods-not-evictable", base::join(left.refusals, "; "))
                .hint("move these Pods, then kmm-upgrade retry " + name);
        if (left.evict.empty()) break;
        evictions.ask(left.evict);
        const auto blocked = evictions.blocked_text();
        if (deadline.passed()) {
            const auto timeout = base::format_duration(milliseconds(options.node_timeout_ms));
            throw Error(Exit::timeout, "drain-timeout",
                        fmt::format("{} still there after {}: {}", pods_text(left.evict.size()), timeout,
                                    blocked.empty() ? names_of(left.evict) : blocked))
                .hint(blocked.empty() ? fmt::format("kubectl get pods -A --field-selector spec.nodeName={}", name)
                                      : fmt::format("kubectl get pdb -n {}", evictions.blocked_namespace()));
        }
        if (!blocked.empty()) {
            granted_since = tools_.clock.monotonic();
            next_word_of_ending = k_first_word;
        }
        const auto waited = blocked.empty() ? tools_.clock.monotonic() - granted_since : evictions.blocked_for();
        auto& next_word = blocked.empty() ? next_word_of_ending : next_word_of_budget;
        if (waited >= next_word) {
            auto word = event(upgrade::EventKind::observed, name, "", tools_.recorder.node(name).state);
            word.message = blocked.empty() ? fmt::format("waits for {} to end: {}", pods_text(left.evict.size()), names_of(left.evict)) : blocked;
            tools_.recorder.record(word);
            next_word = waited + k_next_word;
        }
        if (tools_.interrupted() || !tools_.clock.sleep_for(std::min(pause, deadline.left())) || tools_.interrupted())
            throw Leave{StepEnd::left};
    }
    auto facts = value::Node::mapping();
    facts.set("message", evictions.evicted() == 0 ? std::string("no Pods to evict")
                                                  : pods_text(evictions.evicted()) + " evicted");
    return facts;
}

std::string NodeSteps::lift(const std::string& name) {
    if (tools_.recorder.node(name).cordon != upgrade::k_cordon_ours) return "";
    const auto owner = tools_.recorder.header().cordon_owner();
    try {
        const auto there = tools_.workloads.uncordon(name, owner);
        return there.unschedulable ? "stays cordoned by " + owner_text(there.owner) : "uncordoned";
    } catch (const Error& error) {
        if (error.code() != "node-not-found") throw;
        return "the node is gone";
    }
}

bool NodeSteps::is_cordoned_by_run(const std::string& name) {
    const auto node = tools_.fleet.view(name).node;
    const auto owner = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
    return node.unschedulable && owner != node.meta.annotations.end() && owner->second == tools_.recorder.header().cordon_owner();
}

NodeSteps::Facts NodeSteps::uncordon(const std::string& name) {
    const auto lifted = lift(name);
    soak(name);
    auto facts = value::Node::mapping();
    const auto& run = tools_.recorder.header();
    facts.set("cordon", "");
    const auto node = tools_.recorder.node(name);
    const auto build = node.live.brief();
    const auto what = node.goal == upgrade::k_goal_absent ? "unloaded " + run.kernel_module
                                                           : fmt::format("loaded {} {}", run.kernel_module, build.empty() ? run.to_version : build);
    facts.set("message", what + (lifted.empty() ? "" : ", " + lifted));
    return facts;
}

void NodeSteps::release(const std::string& name) {
    const auto lifted = with_context([&] { return fmt::format("node {} is still cordoned", name); }, [&] { return lift(name); });
    auto released = event(upgrade::EventKind::observed, name, "", tools_.recorder.node(name).state);
    const auto before = tools_.recorder.node(name).message;
    released.message = before.empty() ? lifted : before + "; " + lifted;
    released.facts.set("cordon", "");
    tools_.recorder.record(released);
}

}  // namespace kmm::drive
