// SPDX-License-Identifier: Apache-2.0
// The API versions that Helm's client knows. Source: `reference api-versions` in tests/recipe/reference.
#include "recipe/chart/render.hpp"

namespace kmm::recipe::chart {

const std::vector<std::string>& default_api_versions() {
    static const std::vector<std::string> versions{"v1", "apps/v1"};
    return versions;
}

}  // namespace kmm::recipe::chart
