// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/check/require.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

struct ComponentName {
    std::string_view written, component;
};

constexpr ComponentName k_names[] = {
    {"apiserver", "kube-apiserver"},
    {"controller-manager", "kube-controller-manager"},
    {"scheduler", "kube-scheduler"},
    {"kube-apiserver", "kube-apiserver"},
    {"kube-controller-manager", "kube-controller-manager"},
    {"kube-scheduler", "kube-scheduler"},
    {"control-plane", "control-plane"},
    {"kubelet", "kubelet"},
    {"kube-proxy", "kube-proxy"},
    {"etcd", "etcd"},
};

constexpr std::string_view k_form = "COMPONENT OPERATOR VERSION as 'apiserver >= v1.16.4'";

class RequirementParser {
public:
    explicit RequirementParser(std::string_view text) : text_(text) {}

    std::vector<Requirement> parse() {
        std::vector<Requirement> all;
        do { all.push_back(one()); } while (joined());
        return all;
    }

private:
    [[noreturn]] void fail(std::size_t at, const std::string& expected, std::string_view found,
                           std::string hint) const {
        throw Error(Exit::usage, "bad-requirement",
                    fmt::format("requirement '{}', column {}: expected {}, found {}", base::escape(text_), at + 1,
                                expected, found.empty() ? "the end" : fmt::format("'{}'", base::escape(found))))
            .hint(std::move(hint));
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) { ++at_; }
    }

    /// What comes next up to a blank, an operator or a comma.
    std::string_view word() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && std::string_view(" \t\n<>=!,").find(text_[at_]) == std::string_view::npos) {
            ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

    Requirement one() {
        skip_blanks();
        Requirement made;
        const std::size_t name_at = at_;
        const auto name = word();
        const auto* row = std::find_if(std::begin(k_names), std::end(k_names),
                                       [&](const auto& each) { return each.written == name; });
        if (row == std::end(k_names)) {
            std::vector<std::string> names;
            for (const auto& each : k_names) {
                if (!each.written.starts_with("kube-") || each.written == "kube-proxy") {
                    names.emplace_back(each.written);
                }
            }
            const auto near = base::nearest(name, names);
            fail(
                name_at, "a component", name.empty() ? text_.substr(name_at, 1) : name,
                near ? fmt::format("did you mean {}?", *near) : fmt::format("components: {}", base::join(names, ", ")));
        }
        made.component = row->component;
        skip_blanks();
        const std::size_t op_at = at_;
        while (at_ < text_.size() && std::string_view("<>=!").find(text_[at_]) != std::string_view::npos) { ++at_; }
        made.op = text_.substr(op_at, at_ - op_at);
        if (made.op == "=") { made.op = "=="; }
        static constexpr std::array<std::string_view, 6> k_ops{">=", ">", "<=", "<", "==", "!="};
        if (std::find(k_ops.begin(), k_ops.end(), made.op) == k_ops.end()) {
            fail(op_at, "one of >= > <= < == !=", made.op.empty() ? word() : std::string_view(made.op),
                 fmt::format("write {}", k_form));
        }
        skip_blanks();
        const std::size_t version_at = at_;
        const auto written = word();
        const auto version = Version::parse(written);
        if (!version) { fail(version_at, std::string(k_version_form), written, "give major, minor and patch"); }
        made.version = *version;
        return made;
    }

    bool joined() {
        skip_blanks();
        if (at_ == text_.size()) { return false; }
        if (text_[at_] == ',') {
            ++at_;
            return true;
        }
        const std::size_t begin = at_;
        const auto joint = word();
        if (joint != "and") {
            fail(begin, "'and' or the end", joint.empty() ? text_.substr(begin, 1) : joint, "join conditions with and");
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool satisfies(Version found, const Requirement& requirement) {
    // The tag of its image ends with the number of a build: 3.6.5-0 is etcd 3.6.5.
    const bool is_build = found.suffix.find_first_not_of("-0123456789") == std::string::npos;
    if (requirement.component == "etcd" && requirement.version.suffix.empty() && is_build) { found.suffix.clear(); }
    const auto order = found <=> requirement.version;
    if (requirement.op == ">=") { return order >= 0; }
    if (requirement.op == ">") { return order > 0; }
    if (requirement.op == "<=") { return order <= 0; }
    if (requirement.op == "<") { return order < 0; }
    return requirement.op == "==" ? order == 0 : order != 0;
}

const std::vector<Running>& instances(const Observation& seen, std::string_view component) {
    if (component == "kubelet") { return seen.kubelets; }
    if (component == "etcd") { return seen.etcd; }
    return component == "kube-proxy" ? seen.proxies : seen.control_plane;
}

/// Nodes where an instance belongs and no Pod of one was found. That a Pod of the control plane is absent is observed.
std::vector<std::string> nodes_without(const Inventory& inventory, const Observation& seen,
                                       std::string_view component) {
    std::vector<std::string> nodes;
    if (component == "etcd") { nodes = seen.control_plane_nodes; }
    for (const auto& node : inventory.nodes) {
        if (component == "kube-proxy" && foreign_system(node).empty()) { nodes.push_back(node.meta.name); }
    }
    std::erase_if(nodes, [&](const auto& node) {
        const auto& all = instances(seen, component);
        return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.node == node; });
    });
    return nodes;
}

}  // namespace

std::string Requirement::text() const {
    const std::string_view short_name = component.starts_with("kube-") && component != "kube-proxy"
                                            ? std::string_view(component).substr(5)
                                            : std::string_view(component);
    return fmt::format("{} {} {}", short_name, op, version.text());
}

std::vector<Requirement> parse_requirements(std::string_view text) { return RequirementParser(text).parse(); }

Verdict evaluate(const std::vector<Requirement>& requirements, const Inventory& inventory, const Observation& seen) {
    Verdict verdict;
    for (const auto& requirement : requirements) {
        bool found = false;
        for (const auto& running : instances(seen, requirement.component)) {
            if (requirement.component != "control-plane" && running.component != requirement.component) { continue; }
            found = true;
            ++verdict.observed;
            if (running.version && satisfies(*running.version, requirement)) { continue; }
            verdict.offenders.push_back({requirement.text(), running.component, running.node,
                                         running.version ? running.version->text() : running.problem});
        }
        if (!found) {
            verdict.offenders.push_back({requirement.text(), requirement.component, "", "none was found"});
            continue;
        }
        for (auto& node : nodes_without(inventory, seen, requirement.component)) {
            verdict.offenders.push_back(
                {requirement.text(), requirement.component, std::move(node), "no Pod was found"});
        }
    }
    return verdict;
}

}  // namespace kmm::kubernetes
