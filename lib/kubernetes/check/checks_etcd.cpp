// SPDX-License-Identifier: Apache-2.0
// Checks of the etcd that control planes run, as each node has heard it from its own member.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/check/etcd_leader.hpp"
#include "kubernetes/check/node_checks.hpp"
#include "kubernetes/cluster_checks/address.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// Of the quota, in hundredths, that a database may have.
constexpr std::uint64_t k_size_percent = 80;

/// What the nodes say that have an etcd.
struct EtcdView {
    std::map<std::string, const Node*> members;  ///< by node
    std::vector<std::string> silent;             ///< nodes that said nothing, or whose etcd did not, with the reason
    std::vector<std::string> unknown;            ///< nodes with an etcd whose manifest names no address to ask
};

EtcdView etcd_view(const CheckInput& input) {
    EtcdView view;
    for (const auto& [name, answer] : *input.nodes) {
        if (answer.facts.is_null()) {
            if (is_control_plane_node(input, name)) {
                view.silent.push_back(fmt::format("{} (no answer)", base::escape(name)));
            }
            continue;
        }
        if (const auto* etcd = answer.facts.find("etcd"); etcd != nullptr && etcd->is_mapping()) {
            if (!etcd->get_string({"memberID"}).empty()) { view.members.emplace(name, etcd); }
            else if (texts_of(*etcd, {"listenClientURLs"}).empty()) { view.unknown.push_back(base::escape(name)); }
            else { view.silent.push_back(fmt::format("{} (its answer names no member)", base::escape(name))); }
        } else if (const auto reason = unread_reason(answer.facts, "etcd"); !reason.empty()) {
            view.silent.push_back(fmt::format("{} ({})", base::escape(name), reason));
        }
    }
    return view;
}

/// FAIL with what `problem` says of each member; OK only if every one was heard: why one was not is said by
/// etcd-members.
template <typename Problem>
Finding each_member(const CheckInput& input, std::string fine, Problem&& problem) {
    const auto view = etcd_view(input);
    if (view.members.empty() && view.silent.empty() && view.unknown.empty()) {
        return {Outcome::skip, "no node has an etcd of kubeadm"};
    }
    std::vector<std::string> problems;
    for (const auto& [name, etcd] : view.members) {
        if (auto found = problem(*etcd); !found.empty()) {
            problems.push_back(fmt::format("{}: {}", base::escape(name), found));
        }
    }
    if (problems.empty() && !view.unknown.empty()) {
        return {Outcome::skip,
                fmt::format("the manifest of etcd names no address for clients on {}", name_some(view.unknown))};
    }
    if (problems.empty() && !view.silent.empty()) {
        return {Outcome::skip, fmt::format("not heard: {}", name_some(view.silent))};
    }
    return fail_if_any(problems, std::move(fine));
}

std::uint64_t etcd_number_of(const Node& in, std::string_view key) {
    const auto* found = in.find(key);
    return found == nullptr ? 0 : found->as_uint().value_or(0);
}

Finding etcd_members(const CheckInput& input) {
    const auto view = etcd_view(input);
    std::set<std::string> own;
    for (const auto& [name, etcd] : view.members) { own.insert(etcd->get_string({"memberID"})); }
    // Else one that is not known here may be that of a node which was not heard.
    const bool are_all_heard = view.silent.empty() && view.unknown.empty();
    bool is_any_gone = false, is_any_hidden = false;
    auto found = each_member(
        input, fmt::format("started voting members, one for each control plane: {}", view.members.size()),
        [&](const Node& etcd) {
            std::vector<std::string> problems;
            const auto* members = etcd.find("members");
            if (members == nullptr || members->items().empty()) {
                return std::string("it names no members");
            }
            for (const auto& member : members->items()) {
                const auto id = member.get_string({"id"});
                const auto name = base::escape(member.get_string({"name"}));
                const auto* learner = member.find("learner");
                // kubeadm calls a member as its node.
                const bool is_hidden = is_control_plane_node(input, name) && !view.members.contains(name);
                if (name.empty()) {
                    is_any_gone = true;
                    problems.push_back(fmt::format("member {} has never started", base::escape(id)));
                } else if (learner != nullptr && learner->as_bool() == true) {
                    is_any_gone = true;
                    problems.push_back(fmt::format("member {} is a learner", name));
                } else if (are_all_heard && !own.contains(id) && is_hidden) {
                    is_any_hidden = true;
                    problems.push_back(fmt::format("member {} ({}) has no manifest on its control plane", name,
                                                   base::escape(id)));
                } else if (are_all_heard && !own.contains(id)) {
                    is_any_gone = true;
                    problems.push_back(fmt::format("member {} ({}) is on no control plane", name, base::escape(id)));
                }
            }
            return base::join(problems, ", ");
        });
    // It is a member that will be back: not one to remove.
    if (is_any_hidden) {
        found.fix = fmt::format("put the manifest of etcd back: kmm-worker kubernetes repair on the node{}",
                                is_any_gone ? "; then look at the other members" : "");
    }
    if (!view.silent.empty()) {
        if (found.outcome != Outcome::fail) {
            found.fix = "where the node gave no answer see node-reach; else repair its etcd: crictl ps -a, crictl logs";
        }
        found.detail = fmt::format("{}{}not heard: {}", found.outcome == Outcome::fail ? found.detail : "",
                                   found.outcome == Outcome::fail ? ", " : "", name_some(view.silent));
        found.outcome = Outcome::fail;
    }
    return found;
}

Finding etcd_quorum(const CheckInput& input) {
    const auto view = etcd_view(input);
    std::set<std::string> leaders;
    for (const auto& [name, etcd] : view.members) { leaders.insert(etcd->get_string({"leaderID"})); }
    auto found = each_member(input, "", [&](const Node& etcd) {
        if (etcd.get_string({"leaderID"}).empty()) { return std::string("it has no leader"); }
        return leaders.size() > 1 ? fmt::format("its leader is {}, others have another one",
                                                base::escape(etcd.get_string({"leaderID"})))
                                  : std::string();
    });
    if (found.outcome != Outcome::ok) { return found; }
    const auto count = view.members.size();
    if (count == 2) {
        return {Outcome::warn, "of two members both are needed: the API is away while one of them restarts"};
    }
    return {Outcome::ok, count == 1 ? "one member, which leads" : fmt::format("{} members with one leader", count)};
}

Finding etcd_alarms(const CheckInput& input) {
    return each_member(input, "no alarm", [](const Node& etcd) {
        auto problems = texts_of(etcd, {"alarms"});
        for (auto& text : texts_of(etcd, {"errors"})) { problems.push_back(std::move(text)); }
        return base::join(problems, ", ");
    });
}

Finding etcd_advertise(const CheckInput& input) {
    return each_member(input, "each member listens on an address that others reach", [](const Node& etcd) {
        const auto urls = texts_of(etcd, {"listenClientURLs"});
        return std::all_of(urls.begin(), urls.end(), is_loopback_url)
                   ? fmt::format("listens on {} only", base::join(urls, ", "))
                   : std::string();
    });
}

Finding etcd_size(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_member(
        input, fmt::format("every database is below {} % of its quota", k_size_percent), [&](const Node& etcd) {
            const auto size = etcd_number_of(etcd, "sizeBytes"), quota = etcd_number_of(etcd, "quotaBytes");
            if (size == 0 || quota == 0) {
                unknown.push_back(fmt::format("size and quota of member {}",
                                              base::escape(etcd.get_string({"memberID"}))));
                return std::string();
            }
            return size > quota / 100 * k_size_percent
                       ? fmt::format("{} of {}, {} in use", base::format_bytes(size), base::format_bytes(quota),
                                     base::format_bytes(etcd_number_of(etcd, "usedBytes")))
                       : std::string();
        });
    return known_or_skipped(std::move(found), unknown);
}

constexpr CheckRow k_etcd_rows[] = {
    {"etcd-members", etcd_members},     {"etcd-quorum", etcd_quorum}, {"etcd-alarms", etcd_alarms},
    {"etcd-advertise", etcd_advertise}, {"etcd-size", etcd_size},
};

}  // namespace

std::string etcd_leader(const NodeAnswers& answers) {
    for (const auto& [name, answer] : answers) {
        const auto* etcd = answer.facts.is_null() ? nullptr : answer.facts.find("etcd");
        if (etcd == nullptr || !etcd->is_mapping()) { continue; }
        const auto member = etcd->get_string({"memberID"});
        if (!member.empty() && member == etcd->get_string({"leaderID"})) { return name; }
    }
    return {};
}

std::span<const CheckRow> etcd_checks() noexcept { return k_etcd_rows; }

}  // namespace kmm::kubernetes
