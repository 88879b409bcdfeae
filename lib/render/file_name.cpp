// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "render/parts.hpp"

namespace kmm::render {

namespace {

constexpr std::size_t k_file_length_max = 200;

/// Kinds in the order in which kubectl should meet them.
constexpr std::array<std::pair<std::string_view, int>, 11> k_ranks{{{"Namespace", 0},
                                                                    {"ServiceAccount", 1},
                                                                    {"ClusterRole", 2},
                                                                    {"ClusterRoleBinding", 3},
                                                                    {"Role", 4},
                                                                    {"RoleBinding", 5},
                                                                    {"NodeModulesConfig", 6},
                                                                    {"Node", 7},
                                                                    {"DeviceClass", 8},
                                                                    {"DaemonSet", 8},
                                                                    {"Pod", 9}}};

int rank_of(std::string_view kind) {
    const auto* found =
        std::find_if(k_ranks.begin(), k_ranks.end(), [&](const auto& row) { return row.first == kind; });
    return found == k_ranks.end() ? 9 : found->second;
}

/// '_' is in no name of Kubernetes, so that two objects never share a file.
std::string file_name(std::string_view kind, std::string_view ns, std::string_view name, std::string_view action) {
    std::string text = fmt::format("{}0-{}", rank_of(kind), base::to_lower(kind));
    if (!ns.empty()) { text += fmt::format("_{}", ns); }
    text += fmt::format("_{}", name);
    // the unload Pod of a reload comes first
    if (!action.empty()) { text += fmt::format("_{}-{}", action == "Unload" ? 1 : 2, base::to_lower(action)); }
    return shortened(text, k_file_length_max);
}

}  // namespace

std::vector<std::string> file_names(const std::vector<value::Node>& objects) {
    std::vector<std::string> result;
    std::set<std::string> seen;
    for (const auto& object : objects) {
        const std::string name =
            file_name(object.get_string({"kind"}), object.get_string({"metadata", "namespace"}),
                      object.get_string({"metadata", "name"}),
                      object.get_string({"metadata", "labels", std::string(api::k_label_worker_action)}));
        std::string unique = name;
        for (int number = 2; !seen.insert(unique).second; ++number) { unique = fmt::format("{}.{}", name, number); }
        result.push_back(std::move(unique));
    }
    return result;
}

std::vector<std::string> files_in_use(const api::Objects& objects, const plan::Options& options) {
    plan::Options settled = options;
    settled.next = false;
    std::set<std::string> result;
    const Options none;
    const Scene scene{objects, none};
    plan::judge_nodes(objects, settled, [&](const plan::NodeView&, const std::vector<plan::Verdict>& verdicts) {
        for (const auto& verdict : verdicts) {
            const std::string& version = verdict.labels_after.labels.schedule;
            const api::Module* module = scene.find_module(verdict.entry.namespace_, verdict.entry.module);
            if (version.empty() || module == nullptr || !module->module_loader) { continue; }
            if (version == module->module_loader->container.version) { continue; }
            for (const std::string_view role : {"device-plugin", "dra"}) {
                if (!(role == "dra" ? module->dra : module->device_plugin)) { continue; }
                result.insert(
                    file_name("DaemonSet", module->meta.namespace_, daemon_set_name(*module, role, version), ""));
            }
        }
    });
    return {result.begin(), result.end()};
}

}  // namespace kmm::render
