// SPDX-License-Identifier: Apache-2.0
#include "upgrade/kernel/subject.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::upgrade::kernel {
namespace {

constexpr std::string_view k_member_install = "install", k_member_boot = "bootBefore", k_member_drivers = "drivers",
                           k_member_recipes = "recipeDrivers", k_member_installed = "installed",
                           k_member_asked = "rebootAsked",
                           k_member_containers = "recipeContainers", k_member_role = "role",
                           k_control_plane = "control-plane";

}  // namespace

std::string_view to_string(Loader loader) noexcept { return loader == Loader::operator_ ? "operator" : "worker"; }

Subject subject_of(const Header& run) {
    Subject subject;
    const auto* found = run.subject.find(k_member_install);
    if (found == nullptr) return subject;
    subject.command = found->get_string({"command"});
    if (const auto* pools = found->find("pools"))
        for (const auto& pool : pools->items()) subject.pools.push_back(pool.text());
    subject.releases = found->get_string({"releases"});
    const auto loader = found->get_string({"loader"});
    if (loader == to_string(Loader::operator_)) subject.loader = Loader::operator_;
    else if (loader != to_string(Loader::worker))
        throw Error(Exit::io, "state-damaged",
                    fmt::format("install.loader is \"{}\", expected worker or operator", base::escape(loader)));
    return subject;
}

void set_subject(Header& run, const Subject& subject) {
    auto tree = value::Node::mapping({{"command", subject.command}, {"loader", to_string(subject.loader)}});
    if (!subject.pools.empty()) tree.set("pools", value::Node::strings(subject.pools));
    if (!subject.releases.empty()) tree.set("releases", subject.releases);
    run.subject = value::Node::mapping({{std::string(k_member_install), std::move(tree)}});
}

bool is_control_plane(const NodeRecord& node) { return node.facts.get_string({k_member_role}) == k_control_plane; }

void set_control_plane(value::Node& facts) { facts.set(std::string(k_member_role), k_control_plane); }

std::string boot_before(const NodeRecord& node) { return node.facts.get_string({k_member_boot}); }

void set_boot_before(value::Node& facts, const std::string& boot_id) { facts.set(std::string(k_member_boot), boot_id); }

std::string reboot_asked(const NodeRecord& node) { return node.facts.get_string({k_member_asked}); }

void set_reboot_asked(value::Node& facts, const std::string& boot_id) {
    facts.set(std::string(k_member_asked), boot_id);
}

std::string installed_on(const NodeRecord& node) { return node.facts.get_string({k_member_installed}); }

void set_installed(value::Node& facts, const std::string& release) {
    facts.set(std::string(k_member_installed), release);
}

std::map<std::string, value::Node> drivers_of(const NodeRecord& node) {
    std::map<std::string, value::Node> drivers;
    if (const auto* found = node.facts.find(k_member_drivers))
        for (const auto& member : found->members()) drivers.emplace(member.key, member.value);
    return drivers;
}

void set_drivers(value::Node& facts, const std::map<std::string, value::Node>& drivers) {
    auto tree = value::Node::mapping();
    for (const auto& [name, document] : drivers) tree.set(name, document);
    facts.set(std::string(k_member_drivers), std::move(tree));
}

std::vector<std::string> recipe_drivers_of(const NodeRecord& node) {
    const auto text = node.facts.get_string({k_member_recipes});
    if (text.empty()) return {};
    const auto names = base::split(text, ',');
    return {names.begin(), names.end()};
}

std::map<std::string, std::string> recipe_containers_of(const NodeRecord& node) {
    std::map<std::string, std::string> containers;
    if (const auto* found = node.facts.find(k_member_containers))
        for (const auto& member : found->members()) containers.emplace(member.key, member.value.text());
    return containers;
}

void set_recipe_containers(value::Node& facts, const std::map<std::string, std::string>& containers) {
    auto tree = value::Node::mapping();
    for (const auto& [name, ids] : containers)
        if (!ids.empty()) tree.set(name, ids);
    facts.set(std::string(k_member_containers), std::move(tree));
}

void set_recipe_drivers(value::Node& facts, const std::vector<std::string>& names) {
    facts.set(std::string(k_member_recipes), base::join(names, ","));
}

}  // namespace kmm::upgrade::kernel
