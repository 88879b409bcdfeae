// SPDX-License-Identifier: Apache-2.0
#include "preflight/made_image.hpp"

#include <string>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::preflight {

void name_the_source(const plan::Resolved& resolved, Diagnostics& findings) {
    std::string how;
    if (resolved.build) {
        how = fmt::format("builds it from ConfigMap {}", base::escape(resolved.build->dockerfile_config_map));
    } else if (resolved.sign && !resolved.sign->unsigned_image.empty()) {
        how = fmt::format("makes it by signing {}", base::escape(resolved.sign->unsigned_image));
    }
    if (how.empty()) { return; }
    for (auto& finding : findings) {
        if (finding.code != "image-not-found") { continue; }
        finding.hint = fmt::format(
            "KMM {} once a node runs {}; a PreflightValidation with pushBuiltImage: true has it made before", how,
            base::escape(resolved.kernel));
    }
}

}  // namespace kmm::preflight
