// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/store.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/failure.hpp"

namespace kmm::cluster {

Error node_not_found(const std::string& node, const std::string& place) {
    return Error(Exit::not_found, "node-not-found",
                 fmt::format("expected a Node {} in {}, found none", base::escape(node), place));
}

bool is_server_trouble(const Error& error) { return kube::is_server_trouble(error) || kube::is_right_missing(error); }

bool ends_run(const Error& error) {
    return error.code() == "lease-lost" || error.code() == "interrupted" || is_server_trouble(error);
}

}  // namespace kmm::cluster
