// SPDX-License-Identifier: Apache-2.0
// Versions of APIs that a minor of Kubernetes no longer serves.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kmm::kubernetes {

/// Kinds of one group and version that went with one minor. Source: APILifecycleRemoved of k8s.io/api; of v1 to v1.38.
struct RemovedApi {
    unsigned minor = 0;              ///< the first one without it: 25 for v1.25
    std::string_view group_version;  ///< "policy/v1beta1"
    std::string_view kinds;          ///< with blanks between
    std::string_view replacement;    ///< "policy/v1", "" if there is none
};

/// By minor.
[[nodiscard]] std::span<const RemovedApi> removed_apis() noexcept;
/// nullptr if every release from the one that had it on serves it.
[[nodiscard]] const RemovedApi* find_removed_api(std::string_view group_version, std::string_view kind) noexcept;
/// Whether some version of an API of that kind went.
[[nodiscard]] bool is_removable(std::string_view kind) noexcept;
[[nodiscard]] bool names_kind(const RemovedApi& api, std::string_view kind) noexcept;
/// The plural in paths and rules: "ingressclasses" of IngressClass.
[[nodiscard]] std::string plural_of(std::string_view kind);

}  // namespace kmm::kubernetes
