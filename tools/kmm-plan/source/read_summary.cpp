// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/read_summary.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "api/made_objects.hpp"

namespace kmm::tool_plan {

std::string read_summary(std::span<const Source> sources) {
    std::size_t nodes = 0, modules = 0, wrapped = 0, of_hub = 0;
    for (const auto& source : sources) {
        nodes += source.objects.nodes.size();
        modules += source.objects.modules.size();
        const auto& held = source.objects.wrapped;
        wrapped += static_cast<std::size_t>(
            std::count_if(held.begin(), held.end(), [](const auto& object) { return !api::is_made(object); }));
        of_hub += source.objects.managed_cluster_modules.size();
    }
    std::string text = fmt::format("Nodes {}, Modules {}", nodes, modules);
    if (of_hub != 0) {
        text += fmt::format(", ManagedClusterModules {} (kmm-plan render hub renders them)", of_hub);
    }
    if (wrapped != 0) {
        text += wrapped == 1 ? std::string("; 1 object of KMM inside other kinds is for another cluster")
                             : fmt::format("; {} objects of KMM inside other kinds are for another cluster", wrapped);
    }
    return text;
}

}  // namespace kmm::tool_plan
