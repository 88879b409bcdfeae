// SPDX-License-Identifier: Apache-2.0
// Images that KMM makes itself, by its build and sign Pods.
#pragma once

#include "base/error.hpp"
#include "plan/kmm/resolve.hpp"

namespace kmm::preflight {

/// Replaces the hint of each finding "image-not-found" of the image of `resolved` by what KMM makes it of. `findings`
/// stay as they are if KMM does not make it.
void name_the_source(const plan::Resolved& resolved, Diagnostics& findings);

}  // namespace kmm::preflight
