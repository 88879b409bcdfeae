// SPDX-License-Identifier: Apache-2.0
#include "recipe/decide/why.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/decide/containers.hpp"
#include "recipe/resource/graph.hpp"
#include "recipe/resource/values.hpp"

namespace kmm::recipe::decide {

namespace {

/// How the image of a driver container gets there.
std::string how(const DriverContainer& container) {
    if (container.builder.empty()) {
        return fmt::format("pull {}; nothing builds it: it waits until the image is there", container.image);
    }
    return fmt::format("pull {}; {} builds it if that fails", container.image, container.builder);
}

}  // namespace

std::string why_text(std::span<const plan::SpecialResource> all, const std::string& name, const plan::Facts& facts,
                     const plan::RenderedRecipes& rendered) {
    const plan::SpecialResource& resource = *find_resource(all, name);
    const auto waves = plan::apply_waves(all, {name});
    std::string text = fmt::format("SpecialResource {}, wave {} of {}\n", name, waves.size(), waves.size());
    std::vector<std::string> needs;
    for (const auto& dependency : resource.dependencies) { needs.push_back(dependency.name); }
    text += fmt::format("  needs      {}\n", needs.empty() ? "nothing" : base::join(needs, ", "));
    text += fmt::format("  namespace  {}\n", resource.name_space);
    text += resource.is_built_in() ? std::string("  chart      the built-in recipe driver-container\n")
                                   : fmt::format("  chart      {} {} of {}\n", resource.chart.name,
                                                 resource.chart.version, resource.chart.url);
    for (const auto& kernel : plan::select_kernels(facts, resource, false).all) {
        text += fmt::format("  kernel     {}, system {}, toolkit {}\n", kernel.kernel,
                            kernel.system.os.empty() ? "not known" : kernel.system.os,
                            kernel.toolkit && !kernel.toolkit->image.empty() ? kernel.toolkit->image : "not known");
    }
    const auto containers = driver_containers(rendered);
    std::string state;
    for (const auto& one : rendered.objects) {
        if (one.cr != name) { continue; }
        if (one.state != state) { text += fmt::format("state {}\n", one.state); }
        state = one.state;
        text += fmt::format("  {}{}{}\n", name_of(one.object), one.kernel.empty() ? "" : " for ", one.kernel);
        if (is_waited_for(one.object)) { text += "    wait until it is ready\n"; }
        if (const std::string logs = own_annotation(one.object, "wait-for-logs"); !logs.empty()) {
            text += fmt::format("    wait until the logs match {}\n", base::escape(logs));
        }
        for (const auto& container : containers) {
            if (container.cr == one.cr && container.state == one.state && container.name == name_of(one.object)) {
                text += "    " + how(container) + "\n";
            }
        }
    }
    return text;
}

value::Node why_node(std::span<const plan::SpecialResource> all, const std::string& name, const plan::Facts& facts,
                     const plan::RenderedRecipes& rendered) {
    using value::Node;
    const plan::SpecialResource& resource = *find_resource(all, name);
    Node node = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "RecipeWhy"}});
    node.set("name", name);
    node.set("wave", static_cast<std::uint64_t>(plan::apply_waves(all, {name}).size()));
    std::vector<std::string> needs;
    for (const auto& dependency : resource.dependencies) { needs.push_back(dependency.name); }
    node.set("needs", Node::strings(needs));
    node.set("namespace", resource.name_space);
    node.set("chart", resource.is_built_in() ? std::string("driver-container")
                                             : fmt::format("{} {}", resource.chart.name, resource.chart.version));
    if (!resource.is_built_in()) { node.set("repository", resource.chart.url); }
    Node& kernels = node.set("kernels", Node::sequence());
    for (const auto& kernel : plan::select_kernels(facts, resource, false).all) {
        Node one = Node::mapping({{"kernel", kernel.kernel}});
        if (!kernel.system.os.empty()) { one.set("system", kernel.system.os); }
        if (kernel.toolkit && !kernel.toolkit->image.empty()) { one.set("toolkit", kernel.toolkit->image); }
        kernels.push_back(std::move(one));
    }
    const auto containers = driver_containers(rendered);
    Node& objects = node.set("objects", Node::sequence());
    for (const auto& one : rendered.objects) {
        if (one.cr != name) { continue; }
        Node entry = Node::mapping({{"state", one.state}, {"object", name_of(one.object)}});
        if (!one.kernel.empty()) { entry.set("kernel", one.kernel); }
        if (is_waited_for(one.object)) { entry.set("waitsUntilReady", true); }
        if (const std::string logs = own_annotation(one.object, "wait-for-logs"); !logs.empty()) {
            entry.set("waitsForLogs", logs);
        }
        for (const auto& container : containers) {
            if (container.cr != one.cr || container.state != one.state || container.name != name_of(one.object)) {
                continue;
            }
            entry.set("image", container.image);
            if (!container.builder.empty()) { entry.set("builder", container.builder); }
        }
        objects.push_back(std::move(entry));
    }
    return node;
}

}  // namespace kmm::recipe::decide
