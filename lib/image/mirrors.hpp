// SPDX-License-Identifier: Apache-2.0
// Mirrors: which registries to ask for an image, in which order. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "image/reference.hpp"
#include "value/node.hpp"

namespace kmm::image {

/// Which references a mirror serves.
enum class MirrorUse { all, digest_only, tag_only };

struct Mirror {
    std::string location;  ///< "HOST[:PORT][/PATH]": takes the place of the rule's prefix
    std::optional<bool> insecure;  ///< nullopt where the document cannot say it, as those of OpenShift
    MirrorUse use = MirrorUse::all;
};

/// One [[registry]] of registries.conf, or one entry of an ImageDigestMirrorSet and its kin.
struct MirrorRule {
    std::string prefix;    ///< "HOST[:PORT][/PATH]", "*.DOMAIN[:PORT][/PATH]", or one image with its image_mark
    std::string location;  ///< takes the place of the prefix when the source itself is asked; "" for the prefix
    std::optional<bool> insecure;  ///< as Mirror::insecure
    bool blocked = false;  ///< the source itself is never asked
    std::vector<Mirror> mirrors;
};

/// ":TAG" or "@DIGEST" at the end of a prefix that is one image alone; "" of any other.
[[nodiscard]] std::string_view image_mark(std::string_view prefix) noexcept;

/// Reads a mirror configuration. TOML (containers-registries.conf(5)): [[registry]] with prefix, location, insecure,
/// blocked, mirror-by-digest-only, and [[registry.mirror]] with location, insecure, pull-from-mirror; the keys that
/// only concern short names (unqualified-search-registries, short-name-mode, aliases) and programs that are never run
/// (credential-helpers, additional-layer-store-auth-helper) are accepted and mean nothing here. Its first format, too:
/// [registries.insecure] and [registries.block] with lists of hosts; [registries.search] means nothing here. YAML or
/// JSON: ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy, or a List of them. Rules of one prefix are
/// joined. Errors: all faults with their places: data "unknown-field", "bad-value", "missing-field", "unknown-kind",
/// and those of the readers.
[[nodiscard]] std::vector<MirrorRule> read_mirrors(std::string_view text, std::string_view file);

/// The rules of the mirror sets (ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy) among objects of a
/// cluster; objects of other kinds are passed over. Faults as read_mirrors, appended.
[[nodiscard]] std::vector<MirrorRule> read_mirror_sets(std::span<const value::Document> objects, Diagnostics& faults);

/// Adds `rule` to `rules`, joined with the one of the same prefix; a mirror that both have is asked once. Where the two
/// contradict each other, nothing is changed, and what differs is named: "location", "insecure", "blocked", or
/// "insecure of the mirror LOCATION"; otherwise "".
[[nodiscard]] std::string join_rule(std::vector<MirrorRule>& rules, MirrorRule rule);

/// One place to ask for an image.
struct Endpoint {
    Reference reference;  ///< what the image is called there
    bool insecure = false;
    bool mirror = false;  ///< false for the source itself, which comes last
};

/// Mirrors in their order, then the source, without those that a rule of their own blocks. The rule whose prefix stands
/// for most of the name applies. Empty if the source is blocked and no mirror serves this reference.
[[nodiscard]] std::vector<Endpoint> endpoints_of(const Reference& reference, const std::vector<MirrorRule>& rules);

/// The source, as its own rule names it, if it is blocked and so none of the endpoints; nullopt if it is asked.
[[nodiscard]] std::optional<Reference> blocked_source(const Reference& reference, const std::vector<MirrorRule>& rules);

}  // namespace kmm::image
