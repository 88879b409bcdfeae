// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/causes.hpp"

#include <span>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/text.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::size_t k_long_message = 60;  // bytes; a shorter one is repeated

std::string message_of(const upgrade::NodeRecord& node) {
    const auto line = upgrade::module::text_of(node, "kernelLine");
    return line.empty() ? node.message : "kernel said " + line;
}

}  // namespace

std::vector<Cause> causes_of(const upgrade::Run& run) {
    std::vector<Cause> causes;
    std::map<std::string, std::size_t> index;
    for (const auto& node : run.nodes) {
        if (!upgrade::is_failed_node_state(node.state)) continue;
        const auto message = message_of(node);
        Cause cause{
            node.reason, cli::without_node(message, node.name), cli::without_node(node.hint, node.name), {node.name}};
        const auto [found, is_new] =
            index.try_emplace(cause.code + '\0' + cause.message + '\0' + cause.hint, causes.size());
        if (!is_new) {
            causes[found->second].nodes.push_back(node.name);
            continue;
        }
        causes.push_back(std::move(cause));
    }
    for (auto& cause : causes) {
        if (cause.nodes.size() > 1) continue;
        const auto* node = run.find(cause.nodes.front());
        cause.message = message_of(*node);
        cause.hint = node->hint;
    }
    return causes;
}

std::string SaidCauses::text(const std::string& node, const std::string& code, const std::string& message) {
    if (node.empty() || message.size() <= k_long_message) return message;
    const auto [found, is_new] = first_.try_emplace(code + '\0' + cli::without_node(message, node), node);
    return is_new || found->second == node ? message : "as " + found->second;
}

}  // namespace kmm::tool_upgrade
