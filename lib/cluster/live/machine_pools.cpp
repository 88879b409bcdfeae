// SPDX-License-Identifier: Apache-2.0
// Source: OpenShift, "Updating clusters: canary rollouts"; kube-apiserver-operator rotates the signer at 80 % of its
// year.
#include "cluster/live/machine_pools.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"

namespace kmm::cluster {
namespace {

using value::Node;

const kube::Resource k_pools{"machineconfiguration.openshift.io", "v1", "machineconfigpools", "MachineConfigPool",
                             kube::Scope::cluster};
constexpr const char* k_owner = "kmmtools.dev/paused-by";
constexpr const char* k_signer_space = "openshift-kube-apiserver-operator";
constexpr const char* k_signer_name = "kube-apiserver-to-kubelet-signer";
constexpr std::int64_t k_day = 86'400, k_rotated_on = 292, k_dropped_on = 365, k_warned_before = 30;

bool is_paused(const Node& pool) {
    const auto* paused = pool.find_path({"spec", "paused"});
    return paused != nullptr && paused->as_bool() == true;
}

bool holds(const Node& pool, std::string_view type) {
    const auto* all = pool.find_path({"status", "conditions"});
    if (all == nullptr) return false;
    return std::any_of(all->items().begin(), all->items().end(), [&](const Node& one) {
        return one.get_string({"type"}) == type && one.get_string({"status"}) == "True";
    });
}

/// The entries of managedFields that own spec.paused.
std::vector<const Node*> writers(const Node& pool) {
    std::vector<const Node*> found;
    const auto* all = pool.find_path({"metadata", "managedFields"});
    if (all == nullptr) return found;
    for (const auto& entry : all->items())
        if (entry.find_path({"fieldsV1", "f:spec", "f:paused"}) != nullptr) found.push_back(&entry);
    return found;
}

/// When the last writer of spec.paused wrote last.
std::optional<std::int64_t> written(const Node& pool) {
    std::optional<std::int64_t> latest;
    for (const auto* entry : writers(pool)) {
        const auto time = base::parse_rfc3339(entry->get_string({"time"}));
        if (time && (!latest || *time > *latest)) latest = time;
    }
    return latest;
}

/// Whether others have written, or declare, spec.paused after us: `manager` is the name of our writes. An annotation of
/// ours outlives a pause that someone ended and began again.
bool is_taken_over(const Node& pool, const std::string& manager) {
    const auto found = writers(pool);
    return std::any_of(found.begin(), found.end(),
                       [&](const Node* entry) { return entry->get_string({"manager"}) != manager; });
}

Node owner_patch(Node owner) {
    auto annotations = Node::mapping();
    annotations.set(k_owner, std::move(owner));
    return Node::mapping({{"metadata", Node::mapping({{"annotations", std::move(annotations)}})}});
}

Node patch_of(bool paused, Node owner) {
    auto patch = owner_patch(std::move(owner));
    patch.set("spec", Node::mapping({{"paused", paused}}));
    return patch;
}

std::string date_of(std::int64_t time) { return base::format_rfc3339(time).substr(0, 10); }

}  // namespace

std::vector<MachinePool> MachinePools::read() {
    std::vector<MachinePool> pools;
    if (!client_.serves(k_pools)) return pools;
    for (const auto& object : client_.list_all(k_pools, {})) {
        MachinePool pool;
        pool.name = object.get_string({"metadata", "name"});
        pool.paused = is_paused(object);
        pool.owner = annotation_of(object, k_owner);
        if (const auto* selector = object.find_path({"spec", "nodeSelector"}); selector != nullptr) {
            auto decoded = selector::decode_label_selector(*selector);
            if (!decoded.empty()) pool.selector = std::move(decoded);
        }
        pool.updating = holds(object, "Updating");
        pool.degraded = holds(object, "Degraded");
        if (const auto* machines = object.find_path({"status", "machineCount"}))
            pool.machines = machines->as_int().value_or(0);
        // A list leaves managedFields out.
        if (const auto whole = pool.paused ? client_.find(k_pools, {"", pool.name}) : std::nullopt) {
            pool.paused_since = written(*whole);
            if (is_taken_over(*whole, client_.options().field_manager)) pool.owner.clear();
        }
        pools.push_back(std::move(pool));
    }
    std::sort(pools.begin(), pools.end(), [](const auto& left, const auto& right) { return left.name < right.name; });
    return pools;
}

bool MachinePools::pause(const std::string& name, const std::string& owner) {
    if (!client_.find(k_pools, {"", name})) return false;
    bool is_ours = false;
    static_cast<void>(client_.change(k_pools, {"", name}, [&](const Node& current) -> std::optional<Node> {
        is_ours = !is_paused(current) || (annotation_of(current, k_owner) == owner &&
                                          !is_taken_over(current, client_.options().field_manager));
        return is_paused(current) ? std::nullopt : std::optional(patch_of(true, owner));
    }));
    return is_ours;
}

bool MachinePools::unpause(const std::string& name, const std::string& owner) {
    if (!client_.find(k_pools, {"", name})) return false;
    bool is_ours = false;
    static_cast<void>(client_.change(k_pools, {"", name}, [&](const Node& current) -> std::optional<Node> {
        if (annotation_of(current, k_owner) != owner) return std::nullopt;
        is_ours = is_paused(current) && !is_taken_over(current, client_.options().field_manager);
        return is_ours ? patch_of(false, Node()) : owner_patch(Node());
    }));
    return is_ours;
}

std::string MachinePools::pending_configuration(const std::string& name) {
    const auto pool = client_.find(k_pools, {"", name});
    if (!pool) return "";
    auto wanted = pool->get_string({"spec", "configuration", "name"});
    return wanted == pool->get_string({"status", "configuration", "name"}) ? "" : wanted;
}

std::optional<Signer> MachinePools::signer() {
    try {
        const auto secret = client_.find(kube::resources::k_secrets, {k_signer_space, k_signer_name});
        if (!secret) return std::nullopt;
        const auto from = base::parse_rfc3339(annotation_of(*secret, "auth.openshift.io/certificate-not-before"));
        return from ? std::optional(Signer{*from}) : std::nullopt;
    } catch (const Error& error) {
        if (error.code() != "forbidden") throw;
        return std::nullopt;
    }
}

std::vector<kube::Rule> MachinePools::rules() {
    std::vector<kube::Rule> rules;
    for (const auto* verb : {"get", "list", "patch"})
        rules.push_back({verb, k_pools.group, k_pools.plural, "", "", ""});
    return rules;
}

const MachinePool* pool_of(const std::vector<MachinePool>& pools, const Node& node) {
    api::Labels labels;
    if (const auto* texts = node.find_path({"metadata", "labels"}))
        for (const auto& label : texts->members()) labels[label.key] = label.value.text();
    const MachinePool* found = nullptr;
    const auto rank = [](const MachinePool& pool) { return pool.name == "master" ? 0 : pool.name == "worker" ? 2 : 1; };
    for (const auto& pool : pools)
        if (pool.selector && api::matches(*pool.selector, labels) && (found == nullptr || rank(pool) < rank(*found)))
            found = &pool;
    return found;
}

std::string pause_text(const MachinePool& pool) {
    std::string text = fmt::format("MachineConfigPool {} is paused", pool.name);
    if (pool.paused_since) text += " since " + base::format_rfc3339(*pool.paused_since);
    if (pool.owner.empty()) return text + ": it stays so";
    return text + fmt::format(" by {} (annotation {}): it stays so; if that run is gone: kubectl patch "
                              "machineconfigpool {} --type merge -p '{{\"spec\":{{\"paused\":false}}}}'",
                              base::escape(pool.owner), k_owner, pool.name);
}

std::string activity_warning(const MachinePool& pool) {
    if (pool.paused || (!pool.updating && !pool.degraded)) return "";
    if (pool.degraded)
        return fmt::format(
            "MachineConfigPool {} is degraded: its operator failed to change a node, and tries again; see kubectl "
            "describe machineconfigpool {}",
            pool.name, pool.name);
    return fmt::format(
        "MachineConfigPool {} is updating: its operator drains and reboots nodes at the same time; wait until it is "
        "updated",
        pool.name);
}

std::string signer_warning(const MachinePool& pool, const Signer& signer, std::int64_t now) {
    const auto rotation = signer.not_before + k_rotated_on * k_day;
    if (pool.paused && pool.paused_since && *pool.paused_since < signer.not_before)
        return fmt::format(
            "MachineConfigPool {} is paused since {}, before the kubelets' signer certificate was replaced on {}: "
            "its nodes lose the API server on {}",
            pool.name, date_of(*pool.paused_since), date_of(signer.not_before),
            date_of(signer.not_before + (k_dropped_on - k_rotated_on) * k_day));
    if (now < rotation - k_warned_before * k_day) return "";
    return fmt::format(
        "the kubelets' signer certificate is {} days old and replaced on {}: nodes of MachineConfigPool {} lose the "
        "API server on {} if it is paused until then",
        (now - signer.not_before) / k_day, date_of(rotation), pool.name,
        date_of(signer.not_before + k_dropped_on * k_day));
}

}  // namespace kmm::cluster
