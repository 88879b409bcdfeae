// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "render/parts.hpp"

namespace kmm::render {

namespace {

constexpr std::array k_whats{
    WhatName{What::namespaces, "namespace", "the Modules' namespaces with their labels"},
    WhatName{What::rbac, "rbac", "ServiceAccounts and roles with the rights in use"},
    WhatName{What::nmc, "nmc", "settled NodeModulesConfigs and node labels"},
    WhatName{What::pull_check, "pull-check", "Pods that try to pull each image"},
    WhatName{What::build, "build", "Pods that build images"},
    WhatName{What::sign, "sign", "Pods that sign modules in images"},
    WhatName{What::device_plugin, "device-plugin", "DaemonSets of device plugins"},
    WhatName{What::dra, "dra", "DaemonSets and DeviceClasses of DRA drivers"},
    WhatName{What::worker_pods, "worker-pods", "Pods that load and unload modules"},
};

/// What looks at Scene::verdicts.
bool needs_verdicts(What what) {
    return what == What::pull_check || what == What::build || what == What::sign || what == What::worker_pods;
}

Scene make_scene(const api::Objects& objects, const Options& options, std::span<const What> what) {
    Scene scene{objects, options};
    scene.schedule_key = plan::complete(options.plan, objects).schedule_key.value_or(scene.schedule_key);
    if (std::any_of(what.begin(), what.end(), needs_verdicts)) {
        scene.verdicts = plan::judge_all(objects, options.plan);
    }
    return scene;
}

void add_group(Scene& scene, What what, Images images, std::vector<value::Node>& out) {
    switch (what) {
        case What::namespaces: return add_namespaces(scene, out);
        case What::rbac: return add_rbac(scene, out);
        case What::nmc: {
            for (auto& node : node_modules_configs(scene.objects, scene.options.plan)) {
                out.push_back(std::move(node));
            }
            return;
        }
        case What::pull_check: return add_pull_pods(scene, out);
        case What::build: return add_build_pods(scene, images, out);
        case What::sign: return add_sign_pods(scene, images, out);
        case What::device_plugin: return add_device_plugins(scene, out);
        case What::dra: return add_dra(scene, out);
        case What::worker_pods: return add_worker_pods(scene, out);
    }
}

/// Names that two Modules or kernels came to share. The two Pods of a reload share theirs on purpose.
void report_same_names(Scene& scene, const std::vector<value::Node>& objects) {
    std::map<std::tuple<std::string, std::string, std::string>, std::string> seen;
    for (const auto& object : objects) {
        const std::string kind = object.get_string({"kind"});
        const std::string ns = object.get_string({"metadata", "namespace"});
        const std::string name = object.get_string({"metadata", "name"});
        const std::string action =
            object.get_string({"metadata", "labels", std::string(api::k_label_worker_action)});
        const auto [first, added] = seen.emplace(std::tuple{kind, ns, name}, action);
        if (added || first->second != action) { continue; }
        if (kind == "Namespace") { continue; }
        scene.warn(nullptr, "", "same-name",
                   fmt::format("two different objects are called {} {}{}{}", kind, ns, ns.empty() ? "" : "/", name),
                   "KMM would mix them up too; give one of the Modules another name");
    }
}

Rendered render_groups(const api::Objects& objects, const Options& options, std::span<const What> what, Images images) {
    Scene scene = make_scene(objects, options, what);
    Rendered rendered;
    for (const auto& known : k_whats) {
        if (std::find(what.begin(), what.end(), known.what) == what.end()) { continue; }
        add_group(scene, known.what, images, rendered.objects);
    }
    report_same_names(scene, rendered.objects);
    for (auto& object : rendered.objects) { sort_keys(object); }
    sort_and_merge(scene.findings);
    rendered.findings = std::move(scene.findings);
    return rendered;
}

}  // namespace

std::span<const WhatName> whats() noexcept { return k_whats; }

Rendered render(const api::Objects& objects, const Options& options, std::span<const What> what) {
    return render_groups(objects, options, what, Images::all);
}

Rendered render_needed(const api::Objects& objects, const Options& options) {
    constexpr std::array needed{What::namespaces, What::nmc, What::build,      What::sign,
                                What::device_plugin, What::dra, What::worker_pods};
    return render_groups(objects, options, needed, Images::missing);
}

}  // namespace kmm::render
