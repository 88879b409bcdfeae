// SPDX-License-Identifier: Apache-2.0
// Applications of a cluster stay as they are while its Kubernetes is upgraded: a ValidatingAdmissionPolicy refuses
// changes of Helm releases and of objects of GitOps tools, and a ConfigMap says by whom and until when.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "value/node.hpp"

namespace kmm::drive {

/// Name of the policy, its binding, and the ConfigMap in kube-system.
inline constexpr const char* k_freeze_name = "kmm-upgrade-freeze";

/// `enforced`: the policy is in force, which was proven. `advisory`: the API server has no ValidatingAdmissionPolicy
/// v1. `off`: not asked for. `lifted`: by a person, while the upgrade goes on.
enum class FreezeMode { enforced, advisory, off, lifted };
/// "enforced", "advisory", "off" or "lifted".
[[nodiscard]] std::string_view to_string(FreezeMode mode) noexcept;

/// What the ConfigMap says.
struct FreezeNotice {
    FreezeMode mode = FreezeMode::off;
    std::string from, to;       ///< versions of the upgrade
    std::string holder;         ///< who upgrades, USER@HOST
    std::string record;         ///< directory of its record, on the host of the holder; "" where it does not say
    std::string since;          ///< when it was set first, RFC 3339
    std::string not_after;      ///< when it ends by itself, RFC 3339, by the clock of the API server
    std::vector<std::string> users, namespaces;  ///< that may change applications
    std::map<std::string, std::int64_t, std::less<>>
        releases;  ///< with `advisory`: NAMESPACE/NAME of Helm's releases and their revision
};

/// Objects of the freeze, as they are applied.
[[nodiscard]] value::Node freeze_config_map(const FreezeNotice& notice);
/// It has the texts of the notice in its expressions and no parameter: an API server that has once had a policy with a
/// ConfigMap as its parameter, and lost it, does not see later ones until it is restarted.
[[nodiscard]] value::Node freeze_policy(const FreezeNotice& notice);
[[nodiscard]] value::Node freeze_binding();
/// Inverse of freeze_config_map, of any ConfigMap.
[[nodiscard]] FreezeNotice read_freeze(const value::Node& config_map);

/// Of one API server. Not thread safe. Errors of all members: those of kube::Client.
class Freeze {
public:
    Freeze(kube::Client& client, sys::Clock& clock, std::function<bool()> interrupted);

    /// nullopt if there is none.
    [[nodiscard]] std::optional<FreezeNotice> look();
    /// Sets the notice, for `duration` from now by the clock of the API server, and with `wanted` the policy; then
    /// creates a Helm release in a dry run until it is refused, 30 s at most. What a person has lifted during an
    /// upgrade to the same version stays so. Doing it again prolongs it. Errors: also unhealthy "freeze-without-
    /// effect"; "interrupted".
    FreezeMode set(FreezeNotice notice, bool wanted, std::chrono::milliseconds duration);
    /// Takes policy, binding and notice away. False if there was no notice.
    bool lift();
    /// Takes policy and binding away; the notice says that it is lifted.
    void lift_for_now(const FreezeNotice& notice);
    /// With an advisory notice: "NAMESPACE/NAME: revision 3 -> 4" for each release of Helm that was changed since it
    /// was set or this was asked last.
    [[nodiscard]] std::vector<std::string> changed_releases();

private:
    void prove();
    void remove_policy();
    [[nodiscard]] std::map<std::string, std::int64_t, std::less<>> list_revisions();

    kube::Client& client_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    std::optional<std::map<std::string, std::int64_t, std::less<>>> known_;  ///< nullopt: not advisory
};

}  // namespace kmm::drive
