// SPDX-License-Identifier: Apache-2.0
// The member of etcd that leads, of what nodes have answered.
#pragma once

#include <string>

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// The node whose etcd says that it leads, "" if none does.
[[nodiscard]] std::string etcd_leader(const NodeAnswers& answers);

}  // namespace kmm::kubernetes
