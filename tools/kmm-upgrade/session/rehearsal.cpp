// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/rehearsal.hpp"

#include <fmt/format.h>

#include "cli/document.hpp"
#include "cli/names.hpp"
#include "kmm-upgrade/record/view.hpp"

namespace kmm::tool_upgrade {
namespace {

using value::Node;

Node texts(const std::vector<std::string>& list) {
    auto node = Node::sequence();
    for (const auto& text : list) node.push_back(Node(text));
    return node;
}

}  // namespace

Rehearsal::Rehearsal(cli::Context& context) : context_(context) {}

void Rehearsal::line(const std::string& text) {
    if (context_.output == "table" || context_.output == "wide") context_.console.out(text);
}

void Rehearsal::module(const std::string& name, const std::string& from, const std::string& to, bool is_told) {
    const std::lock_guard guard(mutex_);
    parts_.push_back({name, from, to, {}, {}});
    if (is_told) line(fmt::format("Module {}: {} -> {}\n", name, from, to));
}

void Rehearsal::left_out(const std::vector<upgrade::LeftOut>& nodes) {
    const std::lock_guard guard(mutex_);
    if (parts_.empty()) parts_.emplace_back();
    parts_.back().left_out = nodes;
}

void Rehearsal::step(const std::string& node, const std::string& state) {
    const std::lock_guard guard(mutex_);
    if (parts_.empty()) parts_.emplace_back();
    parts_.back().steps.push_back({node, state, {}});
    line(fmt::format("{}  -- {}\n", node, state));
}

void Rehearsal::action(const std::string& node, const std::string& text) {
    const std::lock_guard guard(mutex_);
    line(fmt::format("{}  {}\n", node, text));
    if (node == "cluster") {
        cluster_.push_back(text);
        return;
    }
    if (parts_.empty()) parts_.emplace_back();
    auto& steps = parts_.back().steps;
    if (steps.empty() || steps.back().node != node) steps.push_back({node, "", {}});
    steps.back().actions.push_back(text);
}

drive::ActionSink Rehearsal::sink() {
    return [this](const std::string& node, const std::string& text) { action(node, text); };
}

bool Rehearsal::is_empty() const {
    const std::lock_guard guard(mutex_);
    return cluster_.empty() && parts_.empty();
}

void Rehearsal::finish(bool complete) {
    const std::lock_guard guard(mutex_);
    auto modules = Node::sequence();
    for (const auto& part : parts_) {
        auto steps = Node::sequence();
        for (const auto& step : part.steps) {
            auto node = Node::mapping({{"node", step.node}});
            if (!step.state.empty()) node.set("state", step.state);
            node.set("actions", texts(step.actions));
            steps.push_back(std::move(node));
        }
        modules.push_back(
            Node::mapping({{"module", part.module}, {"from", part.from}, {"to", part.to}, {"steps", steps}}));
        if (!part.left_out.empty()) modules.items().back().set("leftOut", encode(part.left_out));
    }
    if (print_document(context_, Node::mapping({{"apiVersion", "kmmtools/v1"},
                                                {"kind", "UpgradeRehearsal"},
                                                {"complete", complete},
                                                {"cluster", texts(cluster_)},
                                                {"modules", modules}})))
        return;
    if (context_.output == "name") {
        std::string last;
        for (const auto& part : parts_)
            for (const auto& step : part.steps)
                if (const auto name = fmt::format("node/{}\n", cli::plain_name(step.node)); name != last)
                    context_.console.out(last = name);
        return;
    }
    line(complete ? "nothing was done; next: the same command without --dry-run\n"
                  : "nothing was done; the walk would stop here\n");
}

}  // namespace kmm::tool_upgrade
