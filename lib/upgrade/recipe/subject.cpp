// SPDX-License-Identifier: Apache-2.0
#include "upgrade/recipe/subject.hpp"

#include <charconv>
#include <utility>

namespace kmm::upgrade::recipe {
namespace {

constexpr std::string_view k_member = "recipe", k_member_driver_node = "driverNode";

std::int64_t number_of(const value::Node& tree, std::string_view name) {
    const auto* found = tree.find(name);
    return found == nullptr ? 0 : found->as_int().value_or(0);
}

/// A number that the record has as text; nullopt if it is missing.
std::optional<std::int64_t> number_in(const NodeRecord& state, std::string_view name) {
    const auto text = state.facts.get_string({name});
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return text.empty() || read.ec != std::errc() ? std::nullopt : std::optional(number);
}

}  // namespace

Subject subject_of(const Header& run) {
    const auto* found = run.subject.find(k_member);
    const auto tree = found == nullptr ? value::Node() : *found;
    Subject subject;
    subject.name = tree.get_string({"name"});
    subject.space = tree.get_string({"namespace"});
    subject.revision = number_of(tree, "revision");
    subject.previous = number_of(tree, "previous");
    if (const auto* kernels = tree.find("keepKernels"))
        for (const auto& kernel : kernels->items()) subject.keep_kernels.push_back(kernel.text());
    const auto* forced = tree.find("forceConflicts");
    subject.is_forced = forced != nullptr && forced->as_bool() == true;
    if (const auto* pools = tree.find("pools"))
        for (const auto& pool : pools->items()) subject.pools.push_back(pool.text());
    return subject;
}

void set_subject(Header& run, const Subject& subject) {
    auto tree =
        value::Node::mapping({{"name", subject.name}, {"namespace", subject.space}, {"revision", subject.revision}});
    if (subject.previous != 0) tree.set("previous", subject.previous);
    if (!subject.keep_kernels.empty()) tree.set("keepKernels", value::Node::strings(subject.keep_kernels));
    if (subject.is_forced) tree.set("forceConflicts", true);
    if (!subject.pools.empty()) tree.set("pools", value::Node::strings(subject.pools));
    run.subject = value::Node::mapping({{std::string(k_member), std::move(tree)}});
}

std::int64_t objects_of(const NodeRecord& state) {
    return number_in(state, "objects").value_or(0);
}

void set_objects(NodeRecord& state, std::int64_t objects) {
    if (!state.facts.is_mapping()) state.facts = value::Node::mapping();
    state.facts.set("objects", std::to_string(objects));
}

std::optional<std::int64_t> wave_of(const NodeRecord& state) { return number_in(state, "wave"); }

void set_wave(NodeRecord& state, std::int64_t wave) {
    if (!state.facts.is_mapping()) state.facts = value::Node::mapping();
    state.facts.set("wave", std::to_string(wave));
}

std::optional<DriverNode> driver_node_of(const NodeRecord& member) {
    const auto* tree = member.facts.find(k_member_driver_node);
    if (tree == nullptr) return std::nullopt;
    DriverNode node{tree->get_string({"node"}), tree->get_string({"state"}), {}};
    if (const auto* drivers = tree->find("drivers"))
        for (const auto& driver : drivers->items()) node.drivers.push_back(driver.text());
    return node;
}

void set_driver_node(NodeRecord& member, const DriverNode& node) {
    if (!member.facts.is_mapping()) member.facts = value::Node::mapping();
    member.facts.set(
        std::string(k_member_driver_node),
        value::Node::mapping(
            {{"node", node.node}, {"state", node.state}, {"drivers", value::Node::strings(node.drivers)}}));
}

}  // namespace kmm::upgrade::recipe
