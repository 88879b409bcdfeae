// SPDX-License-Identifier: Apache-2.0
// Opening files below a directory that somebody else may have written.
#pragma once

#include <string>

#include "sys/fd.hpp"

namespace kmm::registry {

/// Opens `path` relative to `root`, staying beneath it and passing through no link; `flags` as for open(2), O_CLOEXEC
/// is added. Empty with errno otherwise; works without openat2 (before Linux 5.6), component by component.
[[nodiscard]] sys::Fd open_beneath(int root, const std::string& path, int flags);

}  // namespace kmm::registry
