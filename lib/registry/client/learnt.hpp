// SPDX-License-Identifier: Apache-2.0
// How it was learnt what a reference means. A tag is the word of whoever answered: the cache repeats it only to those
// who would have believed the same answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "image/reference.hpp"
#include "registry/client/request.hpp"
#include "value/node.hpp"

namespace kmm::registry {

struct Learnt {
    bool verified = false;      ///< every place that was asked had to show a certificate that is trusted
    std::string pinned_key;     ///< every place had to have this key; "" for any
    std::vector<std::string> places;  ///< who may have answered: the registry's and its mirrors' repositories, sorted
    std::vector<std::string>
        credentials;  ///< fingerprints of the logins that may have been shown, sorted; no secret is part of one

    /// True if anybody on the way could have given the answer: it serves only those who ask as carelessly.
    [[nodiscard]] bool is_hearsay() const noexcept { return !verified && pinned_key.empty(); }
    /// Why it is not as good as what a pull as `wanted` would learn: "pulled ..."; "" if it is.
    [[nodiscard]] std::string shortcoming(const Learnt& wanted) const;
    /// True if what was learnt so is at least as good as what a pull as `wanted` would learn.
    [[nodiscard]] bool serves(const Learnt& wanted) const { return shortcoming(wanted).empty(); }
};

/// How a pull with these settings learns it.
[[nodiscard]] Learnt learnt_by(const image::Reference& reference, const PullRequest& request);

[[nodiscard]] value::Node to_node(const Learnt& learnt);
/// nullopt for anything else than to_node makes.
[[nodiscard]] std::optional<Learnt> learnt_of(const value::Node* node);

}  // namespace kmm::registry
