// SPDX-License-Identifier: Apache-2.0
// Policies and keys in files, as requirements of one image.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trust/policy.hpp"

namespace kmm::registry {

/// A policy and keys, each if there is one.
class ImagePolicy {
public:
    /// Reads the policy and the keys. As root, files that others may change are refused. Errors: those of
    /// trust::read_policy; data "bad-key"; no_permission "untrusted-file"; not_found, io.
    ImagePolicy(const std::string& policy_file, const std::vector<std::string>& key_files);

    /// The same from texts, each "" or empty if there is none. `where` is what messages call them. Errors: those of
    /// trust::read_policy; data "bad-key"; data "bad-value" for a policy that names files of keys: they are not here.
    [[nodiscard]] static ImagePolicy from_texts(const std::string& policy, const std::vector<std::string>& keys,
                                                const std::string& where);

    /// What an image called `reference` must meet: what the policy requires of it, and a signature for its repository
    /// by one of the keys. Empty without a policy and keys. Reads the keys of the policy that apply. Errors: as the
    /// constructor; data "bad-reference".
    [[nodiscard]] trust::Requirements of(const std::string& reference) const;
    /// What an image that a container runtime has built and keeps must meet, under the name that policies have for its
    /// store: "containers-storage" or "docker-daemon". Which scope is meant is not known, so all that the store has
    /// count, and the default unless it has "". Such images carry no signatures: keys of the policy are not read.
    [[nodiscard]] trust::Requirements of_store(const std::string& transport) const;

private:
    ImagePolicy() = default;
    /// A signature by one of the keys, if there are any.
    void add_keys(trust::Requirements& requirements) const;

    std::optional<trust::Policy> policy_;
    std::vector<trust::PublicKey> keys_;
};

}  // namespace kmm::registry
