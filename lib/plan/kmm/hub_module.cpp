// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/hub_module.hpp"

namespace kmm::plan {

api::Module module_of(const api::ManagedClusterModule& hub) {
    api::Module module = hub.module;
    module.meta.name = hub.meta.name;
    module.meta.namespace_ = hub.spoke_namespace;
    module.meta.origin = hub.meta.origin;
    return module;
}

}  // namespace kmm::plan
