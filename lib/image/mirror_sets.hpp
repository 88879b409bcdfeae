// SPDX-License-Identifier: Apache-2.0
// The mirror sets of a cluster as one configuration. Pure.
#pragma once

#include <string>
#include <vector>

#include "image/mirrors.hpp"

namespace kmm::image {

/// One entry of an ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy.
struct MirrorSetEntry {
    std::string source;  ///< in normal form
    std::vector<std::string> mirrors;
    MirrorUse use = MirrorUse::digest_only;
    bool never_source = false;  ///< mirrorSourcePolicy NeverContactSource
};

/// What OpenShift's machine config operator writes into registries.conf for these entries. One whose mirrors are none,
/// or only its source, has no effect, whatever its policy. Mirrors of one source come in an order that agrees with each
/// entry, as far as there is one: of [B, C] and [A, B] it is A, B, C. Source: openshift/runtime-utils,
/// pkg/registries.
[[nodiscard]] std::vector<MirrorRule> rules_of(const std::vector<MirrorSetEntry>& entries);

}  // namespace kmm::image
