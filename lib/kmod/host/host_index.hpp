// SPDX-License-Identifier: Apache-2.0
// Indexes that depmod makes (modules.dep.bin and others), before libkmod reads them. Source: libkmod-index.c of kmod
// 30. Used inside this room only.
#pragma once

#include <string>

namespace kmm::kmod {

/// Whether libkmod must not search the index at `path` for `name`: on its way are nodes that are cut off, as on a full
/// disk or when power went, or that lead in a circle, as where bits have flipped. It would read on for ever, or until
/// its stack ends. depmod writes each node after those below it, and each once. Only what that search reads is looked
/// at, so that it costs a few reads. False for no file and for what is no index, which libkmod refuses by itself.
[[nodiscard]] bool is_damaged_for(const std::string& path, const std::string& name);

/// The same of any of the indexes in `directory` that a search for a module or alias goes through.
[[nodiscard]] bool has_damaged_index(const std::string& directory, const std::string& name);

}  // namespace kmm::kmod
