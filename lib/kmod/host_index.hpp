// SPDX-License-Identifier: Apache-2.0
// Indexes that depmod makes (modules.dep.bin and others), before libkmod reads them. Source: libkmod-index.c of kmod
// 30. Used inside this room only.
#pragma once

#include <string>

namespace kmm::kmod {

/// Whether the index at `path` was cut off, as on a full disk or when power went: libkmod would read on behind its end
/// for ever. depmod writes each node after those below it, so that the root is the last. False for no file and for what
/// is no index, which libkmod refuses by itself.
[[nodiscard]] bool is_cut_off(const std::string& path);

/// The same of any of the indexes in `directory` that a search for a module goes through.
[[nodiscard]] bool has_cut_index(const std::string& directory);

}  // namespace kmm::kmod
