// SPDX-License-Identifier: Apache-2.0
// Drivers that take the place of others with another name. Both have the same modules: the new one finds them loaded,
// and when the old one ends behind it, it unloads them.
#pragma once

#include <set>
#include <vector>

#include "upgrade/recipe/release.hpp"

namespace kmm::drive {

/// Those drivers among `obsolete` that have to be gone before `wanted` is applied: `wanted` has a driver that `known`
/// has not, for the same kernel, or one of both is for any.
[[nodiscard]] std::vector<upgrade::recipe::ReleaseObject> replaced_drivers(
    const std::vector<upgrade::recipe::ReleaseObject>& wanted, const std::set<upgrade::recipe::ObjectId>& known,
    const std::vector<upgrade::recipe::ReleaseObject>& obsolete);

/// Drivers of `release` that `other` does not have.
[[nodiscard]] std::vector<upgrade::recipe::ReleaseObject> drivers_only_in(const upgrade::recipe::Release& release,
                                                                          const upgrade::recipe::Release& other);

}  // namespace kmm::drive
