// SPDX-License-Identifier: Apache-2.0
// Releases of recipes as Secrets: kmm-upgrade.recipe.NAME.vREVISION in one namespace of the cluster.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/access.hpp"
#include "kube/client.hpp"
#include "upgrade/recipe/release.hpp"

namespace kmm::drive {

/// Namespace of the Secrets unless a person names another.
inline constexpr std::string_view k_release_namespace = "kube-system";
/// Label of the Secrets: the recipe.
inline constexpr std::string_view k_label_release = "kmmtools.dev/release-of";

/// `client` must outlive it.
class ReleaseStore {
public:
    ReleaseStore(kube::Client& client, std::string space) : client_(client), space_(std::move(space)) {}
    /// Of one recipe, of all recipes but it, or of all; by recipe and revision. Errors: those of the API server; those
    /// of decode_release.
    [[nodiscard]] std::vector<upgrade::recipe::Release> of(const std::string& recipe);
    [[nodiscard]] std::vector<upgrade::recipe::Release> of_others(const std::string& recipe);
    [[nodiscard]] std::vector<upgrade::recipe::Release> all();
    /// Whether the Secret will hold the release at its end too, when `kept` is what stays of earlier ones. Errors: data
    /// "release-too-large".
    static void require_room(upgrade::recipe::Release release, const std::vector<upgrade::recipe::ReleaseObject>& kept);
    /// Creates or replaces the Secret of that revision. Errors: data "release-too-large" beyond 1 MB packed, as etcd
    /// limits a Secret; io "state-damaged" for a Secret of that name without the label; those of the API server.
    void put(const upgrade::recipe::Release& release);
    /// Nothing if it is not there.
    void remove(const upgrade::recipe::Release& release);
    /// The rights that it needs.
    [[nodiscard]] static std::vector<kube::Rule> rules(const std::string& space);

private:
    [[nodiscard]] std::vector<upgrade::recipe::Release> read(const std::string& selector);

    kube::Client& client_;
    std::string space_;
};

/// The deployed one with the highest revision; nullptr if there is none.
[[nodiscard]] const upgrade::recipe::Release* deployed_of(const std::vector<upgrade::recipe::Release>& releases);
/// That of `revision`; nullptr if there is none.
[[nodiscard]] const upgrade::recipe::Release* revision_of(const std::vector<upgrade::recipe::Release>& releases,
                                                          std::int64_t revision);

}  // namespace kmm::drive
