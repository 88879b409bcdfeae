// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/url.hpp"

namespace kmm::net {

/// True if libcurl will go through a proxy for `url` as far as the environment says (curl's manual, "Environment").
[[nodiscard]] bool goes_through_proxy(const Url& url);

}  // namespace kmm::net
