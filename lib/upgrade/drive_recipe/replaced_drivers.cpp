// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/replaced_drivers.hpp"

#include <algorithm>
#include <string>

#include "upgrade/drive_recipe/downgrade.hpp"

namespace kmm::drive {

using upgrade::recipe::id_of;
using upgrade::recipe::ObjectId;
using upgrade::recipe::Release;
using upgrade::recipe::ReleaseObject;

std::vector<ReleaseObject> replaced_drivers(const std::vector<ReleaseObject>& wanted, const std::set<ObjectId>& known,
                                            const std::vector<ReleaseObject>& obsolete) {
    std::set<std::string> kernels;  // of new drivers, "" for any
    for (const auto& one : wanted)
        if (is_driver(one) && !known.contains(id_of(one.object))) kernels.insert(one.kernel);
    std::vector<ReleaseObject> replaced;
    for (const auto& one : obsolete) {
        const bool is_met =
            one.kernel.empty() ? !kernels.empty() : kernels.contains("") || kernels.contains(one.kernel);
        if (is_met && is_driver(one)) replaced.push_back(one);
    }
    return replaced;
}

std::vector<ReleaseObject> drivers_only_in(const Release& release, const Release& other) {
    const auto there = other.ids();
    std::vector<ReleaseObject> found;
    const auto take = [&](const ReleaseObject& one) {
        if (is_driver(one) && !there.contains(id_of(one.object))) found.push_back(one);
    };
    for (const auto& state : release.states) std::for_each(state.objects.begin(), state.objects.end(), take);
    return found;
}

}  // namespace kmm::drive
