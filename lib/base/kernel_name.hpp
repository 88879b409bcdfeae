// SPDX-License-Identifier: Apache-2.0
// The form of a kernel release's name.
#pragma once

#include <string_view>

namespace kmm::base {

/// True for what uname -r can print and a directory below lib/modules can be called: 1 to 64 bytes (the kernel's own
/// limit, __NEW_UTS_LEN), [A-Za-z0-9][A-Za-z0-9._+~-]*. A node's kubelet says what it likes: nothing else is put into
/// an image's name, a path, a Pod or a build argument, which Dockerfiles give to a shell unquoted.
[[nodiscard]] bool is_kernel_name(std::string_view text) noexcept;

}  // namespace kmm::base
