// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/pools.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/live/machine_pools.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "kmm-upgrade/verb_parts.hpp"

namespace kmm::tool_upgrade {

cli::Option pause_pools_option() {
    return option("pause-pools", "", "pause the MachineConfigPools of the nodes during the run");
}

std::vector<std::string> pools_to_pause(Access& access, const std::function<bool(const value::Node&)>& is_chosen) {
    auto* server = access.cluster.opened().server;
    const bool is_asked = access.call.args().flag("pause-pools");
    std::vector<std::string> names;
    if (server != nullptr) {
        cluster::MachinePools access_to_pools(server->client());
        const auto pools = access_to_pools.read();
        std::set<std::string> used;
        if (!pools.empty())
            for (const auto& node : server->client().list_all(kube::resources::k_nodes, {}))
                if (const auto* pool = is_chosen(node) ? cluster::pool_of(pools, node) : nullptr)
                    used.insert(pool->name);
        const auto signer = used.empty() ? std::nullopt : access_to_pools.signer();
        for (const auto& pool : pools) {
            if (!used.contains(pool.name)) continue;
            if (const auto activity = activity_warning(pool); !activity.empty())
                access.call.note("warning: " + activity);
            if (!pool.paused && !is_asked) continue;
            if (pool.paused)
                access.call.note(cluster::pause_text(pool));
            else names.push_back(pool.name);
            const auto warning = signer ? signer_warning(pool, *signer, access.call.clock().now_unix()) : std::string();
            if (!warning.empty()) access.call.note("warning: " + warning);
        }
        if (is_asked && !used.empty()) {
            if (!names.empty()) server->require_rights(cluster::MachinePools::rules());
            return names;
        }
    }
    if (is_asked)
        throw Error(Exit::usage, "bad-value", "--pause-pools: no MachineConfigPool has one of the nodes")
            .hint("leave the option out where there is no OpenShift");
    return names;
}

std::vector<std::pair<std::string, std::string>> leave_paused_out(Access& access, upgrade::Run& run,
                                                                 const std::vector<std::string>& named) {
    std::vector<std::pair<std::string, std::string>> left;
    auto* server = access.cluster.opened().server;
    if (server == nullptr) return left;
    const auto pools = cluster::MachinePools(server->client()).read();
    if (std::none_of(pools.begin(), pools.end(), [](const auto& pool) { return pool.paused; })) return left;
    for (const auto& node : server->client().list_all(kube::resources::k_nodes, {})) {
        const auto name = node.get_string({"metadata", "name"});
        const auto* pool = cluster::pool_of(pools, node);
        const bool is_named = std::find(named.begin(), named.end(), name) != named.end();
        if (pool == nullptr || !pool->paused || is_named || run.find(name) == nullptr) continue;
        left.emplace_back(name, pool->name);
        run.left_out.push_back({name, fmt::format("MachineConfigPool {} is paused", pool->name)});
    }
    std::erase_if(run.nodes, [&](const auto& node) {
        return std::any_of(left.begin(), left.end(), [&](const auto& one) { return one.first == node.name; });
    });
    std::sort(run.left_out.begin(), run.left_out.end(),
              [](const auto& one, const auto& other) { return one.name < other.name; });
    return left;
}

}  // namespace kmm::tool_upgrade
