// SPDX-License-Identifier: Apache-2.0
// Where a system keeps the certificates of its authorities.
#pragma once

#include <functional>
#include <string>

namespace kmm::net {

/// The file with the system's authorities: the first place, of those that Linux distributions use, of which
/// `is_readable` is true; "" if there is none, as on minimal systems. libcurl knows only the place of the distribution
/// that it was built for, and fails without it.
[[nodiscard]] std::string system_ca_bundle(const std::function<bool(const std::string&)>& is_readable);

}  // namespace kmm::net
