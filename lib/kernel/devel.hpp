// SPDX-License-Identifier: Apache-2.0
// Reads a kernel's interface from what distributions ship of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kernel/interface.hpp"

namespace kmm::kernel {

/// Reads `path`: a Module.symvers file (also .gz, .xz, .zst), a directory of kernel headers or /lib/modules/RELEASE, or
/// a package .deb or .rpm that holds a Module.symvers. Nothing is unpacked to disk. Errors: not_found (66)
/// "kernel-devel-not-found"; data (65) "bad-symvers", "bad-package", "no-symvers" when there is no Module.symvers
/// inside; io.
[[nodiscard]] Interface read_devel(const std::string& path);

/// Calls `wanted(name)` for each file of the package or compressed file `path` and `take(name, content)` for those it
/// says yes to. A compressed single file has the name "". Members over 64 MiB and more than 500,000 of them are
/// refused. Errors: data (65) "bad-package"; io.
void read_package(const std::string& path, const std::function<bool(std::string_view)>& wanted,
                  const std::function<void(std::string_view, std::string)>& take);

}  // namespace kmm::kernel
