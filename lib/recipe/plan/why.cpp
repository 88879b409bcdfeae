// SPDX-License-Identifier: Apache-2.0
#include "recipe/plan/why.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/plan/graph.hpp"
#include "recipe/plan/values.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

const Value* member_at(const Value& object, std::initializer_list<std::string_view> path) {
    const Value* at = &object;
    for (const auto key : path) {
        const auto found = at->members().find(key);
        if (found == at->members().end()) { return nullptr; }
        at = &found->second;
    }
    return at;
}

std::string text_at(const Value& object, std::initializer_list<std::string_view> path) {
    const Value* found = member_at(object, path);
    return found == nullptr ? std::string() : found->text();
}

std::string own_annotation(const Value& object, std::string_view name) {
    return text_at(object, {"metadata", "annotations", fmt::format("specialresource.openshift.io/{}", name)});
}

std::string name_of(const Value& object) { return fmt::format("{} {}", text_at(object, {"kind"}), text_at(object, {"metadata", "name"})); }

/// How the image of a driver container gets there.
std::string decision(const RecipeObject& container, const RenderedRecipes& rendered) {
    const Value* containers = member_at(container.object, {"spec", "template", "spec", "containers"});
    if (containers == nullptr || containers->items().empty()) { return ""; }
    const std::string image = text_at(containers->items()[0], {"image"});
    const std::string vendor = own_annotation(container.object, "driver-container-vendor");
    const auto build = std::find_if(rendered.objects.begin(), rendered.objects.end(), [&](const RecipeObject& one) {
        const std::string kind = text_at(one.object, {"kind"});
        return (kind == "BuildConfig" || kind == "Job") && one.cr == container.cr && one.kernel == container.kernel && !vendor.empty() &&
               own_annotation(one.object, "driver-container-vendor") == vendor;
    });
    if (build == rendered.objects.end()) { return fmt::format("pull {}; nothing builds it: it waits until the image is there", image); }
    return fmt::format("pull {}; {} builds it if that fails", image, name_of(build->object));
}

}  // namespace

std::string why_text(std::span<const SpecialResource> all, const std::string& name, const Facts& facts, const RenderedRecipes& rendered) {
    const SpecialResource& resource = *find_resource(all, name);
    const auto waves = apply_waves(all, {name});
    std::string text = fmt::format("SpecialResource {}, wave {} of {}\n", name, waves.size(), waves.size());
    std::vector<std::string> needs;
    for (const auto& dependency : resource.dependencies) { needs.push_back(dependency.name); }
    text += fmt::format("  needs      {}\n", needs.empty() ? "nothing" : base::join(needs, ", "));
    text += fmt::format("  namespace  {}\n", resource.name_space);
    text += resource.is_built_in() ? std::string("  chart      the built-in recipe driver-container\n")
                                   : fmt::format("  chart      {} {} of {}\n", resource.chart.name, resource.chart.version, resource.chart.url);
    for (const auto& kernel : select_kernels(facts, resource, false).all) {
        text += fmt::format("  kernel     {}, system {}, toolkit {}\n", kernel.kernel, kernel.system.os.empty() ? "not known" : kernel.system.os,
                            kernel.toolkit ? kernel.toolkit->image : "not known");
    }
    std::string state;
    for (const auto& one : rendered.objects) {
        if (one.cr != name) { continue; }
        if (one.state != state) { text += fmt::format("state {}\n", one.state); }
        state = one.state;
        text += fmt::format("  {}{}{}\n", name_of(one.object), one.kernel.empty() ? "" : " for ", one.kernel);
        if (own_annotation(one.object, "wait") == "true") { text += "    wait until it is ready\n"; }
        if (const std::string logs = own_annotation(one.object, "wait-for-logs"); !logs.empty()) { text += fmt::format("    wait until the logs match {}\n", base::escape(logs)); }
        if (own_annotation(one.object, "state") == "driver-container") {
            if (const std::string how = decision(one, rendered); !how.empty()) { text += "    " + how + "\n"; }
        }
    }
    return text;
}

}  // namespace kmm::recipe::plan
