// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/drainer.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/workload.hpp"
#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "upgrade/drive/step_runner.hpp"

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

std::string pods_text(std::size_t count) { return base::counted(count, "Pod"); }

std::string shortened(std::string text) {
    constexpr std::size_t k_most = 200;
    if (text.size() <= k_most) return text;
    auto end = k_most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // no part of a character
    return text.substr(0, end) + "...";
}

/// Who refuses an eviction.
struct Refuser {
    enum class Kind { budget, webhook, server } kind = Kind::server;
    std::string key;   ///< of one refuser, whatever it says of each Pod
    std::string text;  ///< "budget NS/NAME (needs 3, has 3)", "webhook NAME (WHY)"
    std::string name;  ///< of a webhook
};

/// `reason` is what the API server says; its own words where they are none of the known ones.
Refuser refuser_of(const std::string& ns, const std::string& whole_reason) {
    constexpr std::size_t k_names_most = 1024;  // std::regex takes stack for each character
    const auto reason = whole_reason.substr(0, k_names_most);
    static const std::regex k_budget(
        "^The disruption budget (\\S+) needs (\\d+) healthy pods and has (\\d+) currently$");
    static const std::regex k_webhook("^admission webhook \"([^\"]+)\" denied the request:? *");
    std::smatch found;
    if (std::regex_match(reason, found, k_budget)) {
        const auto text =
            fmt::format("budget {}/{} (needs {}, has {})", ns, found[1].str(), found[2].str(), found[3].str());
        return {Refuser::Kind::budget, text, text, ""};
    }
    const auto said = shortened(reason);
    if (std::regex_search(reason, found, k_webhook)) {
        const auto name = found[1].str();
        const auto why = shortened(found.suffix().str());
        return {Refuser::Kind::webhook, "webhook " + name, fmt::format("webhook {} ({})", name, why), name};
    }
    if (reason.find("disruption budget") != std::string::npos) {
        const auto text = fmt::format("a budget of namespace {} ({})", ns, said);
        return {Refuser::Kind::budget, text, text, ""};
    }
    return {Refuser::Kind::server, "", fmt::format("the API server ({})", said), ""};
}

/// "NS/NAME", and of a Pod that is ending since when and what keeps it: "(Terminating since 12s, finalizer
/// example.com/keep)".
std::string pod_text(const api::WorkloadPod& pod, std::int64_t now) {
    if (!pod.is_ending) return pod.full_name();
    std::string text = "Terminating";
    if (pod.ending_since) text += fmt::format(" since {}s", std::max<std::int64_t>(0, now - *pod.ending_since));
    if (pod.ending_since && pod.ending_grace && now - *pod.ending_since < *pod.ending_grace)
        text += fmt::format(" of {}s", *pod.ending_grace);
    if (!pod.finalizers.empty())
        text +=
            fmt::format(", finalizer{} {}", pod.finalizers.size() == 1 ? "" : "s", base::join(pod.finalizers, ", "));
    return fmt::format("{} ({})", pod.full_name(), text);
}

/// The first three; those that a finalizer keeps come first, as nobody else waits for anything.
std::string names_of(std::vector<api::WorkloadPod> pods, std::int64_t now) {
    std::stable_partition(pods.begin(), pods.end(),
                          [](const auto& pod) { return pod.is_ending && !pod.finalizers.empty(); });
    std::vector<std::string> names;
    for (const auto& pod : pods) names.push_back(pod_text(pod, now));
    return base::join_some(names, k_named);
}

/// Whether its kubelet should have ended it already; a finalizer keeps it after that.
bool is_overdue(const api::WorkloadPod& pod, std::int64_t now) {
    return pod.is_ending && pod.ending_since && now - *pod.ending_since > pod.ending_grace.value_or(0);
}

/// The command that shows why Pods of `node` are still there.
std::string remaining_hint(const std::string& node, const std::vector<api::WorkloadPod>& pods, std::int64_t now) {
    for (const auto& pod : pods)
        if (pod.is_ending && !pod.finalizers.empty())
            return fmt::format("kubectl get pod -n {} {} -o yaml shows who keeps it: finalizer {}", pod.namespace_,
                               pod.name, pod.finalizers.front());
    for (const auto& pod : pods)
        if (is_overdue(pod, now))
            return fmt::format("the kubelet of {} does not end {}: look at its log; if the node will not start again: "
                               "kubectl delete pod -n {} {} --force",
                               node, pod.full_name(), pod.namespace_, pod.name);
    return fmt::format("kubectl get pods -A --field-selector spec.nodeName={}", node);
}

/// Whether its controller is a DaemonSet of another group, as an ExtendedDaemonSetReplicaSet: those make their Pods
/// again on a cordoned node. That no Pod of another controller comes any more is awaited.
bool is_of_other_daemons(const api::WorkloadPod& pod) {
    return pod.controller_kind.find("DaemonSet") != std::string::npos;
}

/// Pods of DaemonSets of other groups: nothing gets the node rid of them. One may have been on its way when the node
/// was cordoned: that one goes, too.
class Returning {
public:
    /// Takes those out of `pods` whose controller has brought Pods back in more than one look.
    void leave_out(std::vector<api::WorkloadPod>& pods) {
        std::set<std::string> controllers, back;
        names_.clear();
        for (const auto& pod : pods) {
            if (!is_of_other_daemons(pod)) continue;
            const auto controller = fmt::format("{}/{}/{}", pod.namespace_, pod.controller_kind, pod.controller_name);
            controllers.insert(controller);
            if (uids_.insert(pod.uid).second && controllers_.contains(controller)) {
                if (back.insert(controller).second) ++returns_[controller];
                if (returns_[controller] > 1) stay_.insert(pod.uid);
            }
            if (stay_.contains(pod.uid)) names_.push_back(pod.full_name());
        }
        controllers_.insert(controllers.begin(), controllers.end());
        std::erase_if(pods, [&](const auto& pod) { return stay_.contains(pod.uid); });
    }
    /// Those that the last look left out.
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
    std::set<std::string> uids_, controllers_, stay_;
    std::map<std::string, int> returns_;  ///< looks, by controller
    std::vector<std::string> names_;
};

/// The evictions of one node. Pods are told apart by uid: one of the same name that came later is another Pod.
class Evictions {
public:
    Evictions(cluster::Workloads& workloads, sys::Clock& clock, std::optional<int> grace_seconds)
        : workloads_(workloads), clock_(clock), grace_seconds_(grace_seconds) {}

    /// Asks for those evictions that were not granted yet and whose time has come. Errors: checks_failed
    /// "several-budgets".
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
                            fmt::format("Pod {} is under several PodDisruptionBudgets, so that it cannot be evicted",
                                        pod.full_name()))
                    .hint(fmt::format("leave one of them: kubectl get pdb -n {}", pod.namespace_));
            if (answer.outcome != Outcome::blocked) {
                if (answer.outcome == Outcome::evicted && !pod.is_finished()) ++evicted_;
                granted_.insert(pod.uid);
                blocked_.erase(pod.uid);
                continue;
            }
            auto& block = found != blocked_.end() ? found->second : blocked_[pod.uid];
            if (block.pod.empty()) block.since = now;
            block.pod = pod.name;
            block.namespace_ = pod.namespace_;
            block.reason = answer.reason;
            block.again = now + answer.retry_after.value_or(k_ask_again);
        }
    }

    /// Who keeps which Pods, each once: "budget NS/NAME (needs 3, has 3) keeps 3 Pods: web-a, web-b, 1 more"; "" for
    /// none.
    [[nodiscard]] std::string blocked_text() const {
        std::vector<std::pair<std::string, std::vector<std::string>>> refusers;  // in the order of their first Pods
        std::map<std::string, std::size_t> index;
        for (const auto& [name, block] : sorted_blocks()) {
            const auto refuser = refuser_of(block->namespace_, block->reason);
            const auto [found, is_new] = index.try_emplace(refuser.key, refusers.size());
            if (is_new) refusers.emplace_back(refuser.text, std::vector<std::string>());
            refusers[found->second].second.push_back(block->pod);
        }
        std::vector<std::string> texts;
        for (const auto& [refuser, pods] : refusers) {
            if (texts.size() == k_named) {
                texts.push_back(fmt::format("{} more", refusers.size() - k_named));
                break;
            }
            texts.push_back(fmt::format("{} keeps {}: {}", refuser, pods_text(pods.size()), base::join_some(pods, 2)));
        }
        return base::join(texts, "; ");
    }
    /// How long the one that waits longest does.
    [[nodiscard]] milliseconds blocked_for() const {
        milliseconds longest{0};
        for (const auto& [uid, block] : blocked_) longest = std::max(longest, clock_.monotonic() - block.since);
        return longest;
    }
    /// The command or the person that helps with the one that blocked_text names first, on `node`. Requires one.
    [[nodiscard]] std::string blocked_hint(const std::string& node) const {
        const auto blocks = sorted_blocks();
        const auto& block = *blocks.begin()->second;
        const auto refuser = refuser_of(block.namespace_, block.reason);
        switch (refuser.kind) {
            case Refuser::Kind::budget: return "kubectl get pdb -n " + block.namespace_;
            case Refuser::Kind::webhook:
                return fmt::format("the owner of webhook {} knows when these Pods may go; then kmm-upgrade retry {}",
                                   refuser.name, node);
            case Refuser::Kind::server: break;
        }
        return fmt::format("once the API server has time for it: kmm-upgrade retry {}", node);
    }
    [[nodiscard]] std::size_t evicted() const { return evicted_; }

private:
    struct Block {
        std::string namespace_, pod, reason;
        milliseconds since{}, again{};
    };
    [[nodiscard]] std::map<std::string, const Block*> sorted_blocks() const {
        std::map<std::string, const Block*> blocks;  // by the Pods' names: their uids are in no order
        for (const auto& [uid, block] : blocked_)
            blocks.emplace(block.namespace_ + "/" + block.pod + " " + uid, &block);
        return blocks;
    }
    cluster::Workloads& workloads_;
    sys::Clock& clock_;
    std::optional<int> grace_seconds_;
    std::set<std::string> granted_;
    std::map<std::string, Block> blocked_;
    std::size_t evicted_ = 0;
};

}  // namespace

plan::DrainRules drain_rules_of(const upgrade::Options& options) {
    plan::DrainRules rules;
    if (options.drain_unmanaged) rules.unmanaged = plan::OnLoss::evict;
    if (options.drain_local_data) rules.local_data = plan::OnLoss::evict;
    return rules;
}

std::string Drainer::drain(const std::string& name, const plan::DrainRules& rules, const Deadline& deadline) {
    const auto& options = recorder_.header().options;
    std::optional<int> grace;
    if (options.evict_at_once) {
        grace = 0;
    } else if (options.grace_seconds > 0) {
        grace = static_cast<int>(options.grace_seconds);
    }
    Evictions evictions(workloads_, clock_, grace);
    Returning returning;
    auto granted_since = clock_.monotonic();  // since when nobody keeps any
    auto next_word_of_refusal = k_first_word, next_word_of_ending = k_first_word;
    for (milliseconds pause{1000};; pause = k_look_again) {
        auto left = plan::plan_drain(workloads_.pods(name), rules);
        // Where certain Pods have to be gone, they are awaited, however often they come.
        if (!rules.users) returning.leave_out(left.evict);
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
                                    blocked.empty() ? names_of(left.evict, clock_.now_unix()) : blocked))
                .hint(blocked.empty() ? remaining_hint(name, left.evict, clock_.now_unix())
                                      : evictions.blocked_hint(name));
        }
        if (!blocked.empty()) {
            granted_since = clock_.monotonic();
            next_word_of_ending = k_first_word;
        }
        const auto waited = blocked.empty() ? clock_.monotonic() - granted_since : evictions.blocked_for();
        auto& next_word = blocked.empty() ? next_word_of_ending : next_word_of_refusal;
        if (waited >= next_word) {
            const auto cause = blocked.empty() ? fmt::format("waits for {} to end: {}", pods_text(left.evict.size()),
                                                             names_of(left.evict, clock_.now_unix()))
                                               : blocked;
            tell(recorder_, name,
                 fmt::format("{}; {} left of {}", cause, base::format_duration(deadline.left()),
                             base::format_duration(milliseconds(options.node_timeout_ms))));
            next_word = waited + k_next_word;
        }
        if (interrupted_() || !clock_.sleep_for(std::min(pause, deadline.left())) || interrupted_())
            throw Leave{StepEnd::left};
    }
    const auto& back = returning.names();
    if (evictions.evicted() == 0 && back.empty()) return "no Pods to evict";
    return fmt::format("{} evicted{}{}", pods_text(evictions.evicted()),
                       back.empty() ? "" : ", come back in spite of the cordon and stay: ",
                       base::join_some(back, k_named));
}

}  // namespace kmm::drive
