// SPDX-License-Identifier: Apache-2.0
#include "recipe/decide/decision.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/resource/graph.hpp"

namespace kmm::recipe::decide {

using value::Node;

namespace {

/// The decision that a state shows: that of its driver container which is furthest from being there.
bool is_worse(Action left, Action right) {
    const auto rank = [](Action action) {
        return action == Action::wait ? 3 : action == Action::build ? 2 : action == Action::pull ? 1 : 0;
    };
    return rank(left) > rank(right);
}

void take(StateLine& line, Action action, const Decision& decision) {
    if (!line.reason.empty() && !is_worse(action, line.action)) { return; }
    line.action = action;
    line.reason = decision.reason;
    line.message = decision.message;
    line.image = decision.container.image;
    line.digest = decision.digest;
}

}  // namespace

std::string_view to_string(Action action) noexcept {
    switch (action) {
        case Action::pull: return "pull";
        case Action::build: return "build";
        case Action::skip: return "skip";
        case Action::wait: return "wait";
        case Action::apply: break;
    }
    return "apply";
}

Decision decide(DriverContainer container, Presence presence, const std::string& update_vendor) {
    Decision made;
    const bool is_marked =
        presence == Presence::not_asked && !update_vendor.empty() && container.vendor == update_vendor;
    const bool can_build = !container.builder.empty() && container.build_fault.empty();
    made.presence = presence;
    if (presence == Presence::present) {
        made.action = Action::pull;
        made.reason = "image-present";
    } else if (presence == Presence::unreachable) {
        made.action = Action::wait;
        made.reason = "registry-unreachable";
        made.message = fmt::format("whether {} is there could not be found out", container.image);
    } else if (presence == Presence::not_asked && !is_marked) {
        made.action = Action::pull;
        made.reason = "image-not-checked";
        made.message = can_build ? fmt::format("{} builds it if it cannot be pulled", container.builder)
                                 : "nothing builds it: it waits until the image is there";
    } else if (can_build) {
        made.action = Action::build;
        made.reason = "build-needed";
        made.message = fmt::format("{} builds {}", container.builder, container.image);
    } else {
        made.action = Action::wait;
        made.reason = "no-image-no-source";
        made.message = container.builder.empty()
                           ? fmt::format("{} is not there, and nothing builds it", container.image)
                           : fmt::format("{} is not there, and {} cannot build it: {}", container.image,
                                         container.builder, container.build_fault);
    }
    made.container = std::move(container);
    return made;
}

void wait_for_dependencies(std::vector<Decision>& decisions, std::span<const plan::SpecialResource> all) {
    std::set<std::string> waiting;
    for (const auto& name : plan::apply_order(all, {})) {
        const auto* resource = plan::find_resource(all, name);
        std::string blocker;
        for (const auto& dependency :
             resource == nullptr ? std::vector<plan::RecipeDependency>() : resource->dependencies) {
            if (blocker.empty() && waiting.count(dependency.name) != 0) { blocker = dependency.name; }
        }
        bool waits = !blocker.empty();
        for (auto& decision : decisions) {
            if (decision.container.cr != name) { continue; }
            if (!blocker.empty() && decision.action != Action::wait) {
                decision.action = Action::wait;
                decision.reason = "dependency-waits";
                decision.message = fmt::format("it needs {}, which waits", blocker);
            }
            waits = waits || decision.action == Action::wait;
        }
        if (waits) { waiting.insert(name); }
    }
}

void drop_needless_builds(plan::RenderedRecipes& rendered, const std::vector<Decision>& decisions) {
    std::erase_if(rendered.objects, [&](const plan::RecipeObject& one) {
        if (!is_paired_build(one.object)) { return false; }
        return std::none_of(decisions.begin(), decisions.end(), [&](const Decision& decision) {
            return decision.action == Action::build && is_build_of(one, decision.container);
        });
    });
}

std::vector<StateLine> state_lines(const plan::RenderedRecipes& rendered, const std::vector<Decision>& decisions) {
    std::vector<StateLine> lines;
    for (const auto& one : rendered.objects) {
        auto found = std::find_if(lines.begin(), lines.end(), [&](const StateLine& line) {
            return line.cr == one.cr && line.state == one.state && line.kernel == one.kernel;
        });
        if (found == lines.end()) {
            const auto behind = std::find_if(lines.rbegin(), lines.rend(), [&](const StateLine& line) {
                                    return line.cr == one.cr && line.state == one.state && line.kernel < one.kernel;
                                }).base();
            const auto first = std::find_if(lines.begin(), lines.end(), [&](const StateLine& line) {
                return line.cr == one.cr && line.state == one.state;
            });
            found = lines.insert(behind != lines.begin() ? behind : first,
                                 StateLine{one.cr, one.state, one.kernel, {}, {}, Action::apply, "", "", "", ""});
        }
        const std::string name = name_of(one.object);
        found->objects.push_back(name);
        if (is_waited_for(one.object)) { found->gates.push_back(name + " is ready"); }
        if (const std::string logs = own_annotation(one.object, "wait-for-logs"); !logs.empty()) {
            found->gates.push_back(fmt::format("logs of {} match {}", name, base::escape(logs)));
        }
        for (const auto& decision : decisions) {
            if (decision.container.cr != one.cr) { continue; }
            if (decision.container.name == name && decision.container.state == one.state) {
                take(*found, decision.action, decision);
            }
            if (is_build_of(one, decision.container)) {
                take(*found, decision.action == Action::pull ? Action::skip : decision.action, decision);
            }
        }
    }
    return lines;
}

Node line_node(const StateLine& line) {
    Node node = Node::mapping({{"resource", line.cr}, {"state", line.state}});
    const auto put = [&](const char* key, const std::string& text) {
        if (!text.empty()) { node.set(key, text); }
    };
    put("kernel", line.kernel);
    node.set("objects", Node::strings(line.objects));
    if (!line.gates.empty()) { node.set("gates", Node::strings(line.gates)); }
    node.set("decision", std::string(to_string(line.action)));
    put("reason", line.reason);
    put("message", line.message);
    put("image", line.image);
    put("digest", line.digest);
    return node;
}

}  // namespace kmm::recipe::decide
