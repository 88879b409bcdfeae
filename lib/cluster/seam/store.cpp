// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/store.hpp"

#include "kube/failure.hpp"

namespace kmm::cluster {

bool is_server_trouble(const Error& error) { return kube::is_server_trouble(error) || kube::is_right_missing(error); }

bool ends_run(const Error& error) {
    return error.code() == "lease-lost" || error.code() == "interrupted" || is_server_trouble(error);
}

}  // namespace kmm::cluster
