// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/cordons.hpp"

#include <fmt/format.h>

#include "upgrade/actor_parts/cordon_text.hpp"

namespace kmm::drive {
namespace {

std::string owner_text(const std::string& owner) { return owner.empty() ? "someone else" : owner; }

}  // namespace

std::string left_cordoned_text(const std::string& owner) {
    return fmt::format("left cordoned (cordoned by {})", owner_text(owner));
}

value::Node Cordons::intent() { return value::Node::mapping({{"cordon", upgrade::k_cordon_ours}}); }

Done Cordons::cordon(const std::string& node) {
    const auto owner = recorder_.header().cordon_owner();
    const auto there = workloads_.cordon(node, owner);
    const bool is_ours = there.owner == owner;
    Done done;
    done.facts = value::Node::mapping({{"cordon", is_ours ? upgrade::k_cordon_ours : upgrade::k_cordon_foreign}});
    if (!is_ours) done.message = fmt::format("already cordoned by {}, left cordoned", owner_text(there.owner));
    return done;
}

std::string Cordons::lift(const std::string& node) {
    if (!is_ours(node)) return "";
    const auto owner = recorder_.header().cordon_owner();
    try {
        const auto there = workloads_.uncordon(node, owner);
        return there.unschedulable ? left_cordoned_text(there.owner) : "uncordoned";
    } catch (const Error& error) {
        if (error.code() != "node-not-found") throw;
        return "the node is gone";
    }
}

void Cordons::give_back(const std::string& node, const std::function<bool()>& is_told, upgrade::Event& failed) {
    try {
        const bool tells = is_told();
        const auto lifted = lift(node);
        failed.facts.set("cordon", "");
        if (!lifted.empty() && tells) failed.message += "; " + lifted;
    } catch (const Error& kept) {
        failed.message += "; still cordoned: " + kept.message();
    }
}

Done Cordons::uncordon(const std::string& node, const std::function<void(value::Node facts)>& watch,
                       const std::function<std::string()>& what) {
    const auto lifted = lift(node);
    watch(recorder_.node(node).cordon.empty() ? value::Node() : value::Node::mapping({{"cordon", ""}}));
    Done done;
    done.facts = value::Node::mapping({{"cordon", ""}});
    done.message = what() + (lifted.empty() ? "" : ", " + lifted);
    return done;
}

}  // namespace kmm::drive
