// SPDX-License-Identifier: Apache-2.0
// Certificates of a kubeadm node: whom they name and until when they are valid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubeadm/node/node.hpp"

namespace kmm::kubeadm {

struct Certificate {
    std::string file;           ///< the node's path
    std::string common_name;
    std::int64_t not_after = 0; ///< seconds since 1970
    std::string problem;        ///< why it could not be read, "" if it could
};

/// The first certificate of a PEM text; nullopt if there is none.
[[nodiscard]] std::optional<Certificate> read_certificate(std::string_view pem);

/// The client certificate that a kubeconfig shows, inline or in the file it names.
[[nodiscard]] Certificate client_certificate(const Place& place, const std::string& kubeconfig);

/// Those of pki_directory, of its kubeconfigs, and of the kubelet. Files that cannot be read are in the list with
/// the reason.
[[nodiscard]] std::vector<Certificate> all_certificates(const Place& place);

}  // namespace kmm::kubeadm
