// SPDX-License-Identifier: Apache-2.0
// Secrets that operators make of objects of their own: of a SealedSecret, of an ExternalSecret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

/// What stands for the text of a key of a Secret that is not known, in base64: of a login one without a registry.
[[nodiscard]] std::string_view unknown_text(std::string_view key);

/// Whether a text that begins with `front` names such a kind.
[[nodiscard]] bool may_hold_secret_sources(std::string_view front);

/// The Secrets that are made of the objects in `text`, with the keys of a SealedSecret and without any of an
/// ExternalSecret, whose keys stand in another store. Their namespace is "" where the object says none. A text that
/// cannot be read has none.
/// Source: bitnami.com/v1alpha1 SealedSecret, external-secrets.io ExternalSecret.
[[nodiscard]] std::vector<value::Document> secrets_made_of(std::string_view text, const std::string& file);

}  // namespace kmm::cluster
