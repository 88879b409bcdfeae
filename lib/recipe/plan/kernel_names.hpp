// SPDX-License-Identifier: Apache-2.0
// Kernels in names of images.
#pragma once

#include <string_view>

namespace kmm::recipe::plan {

/// Whether an image has the kernel in its name, whole, also as a tag has it: without '+'. "5.14.0-427.el9.x86_64" is
/// not in "drv:5.14.0-427.el9.x86_64_rt", "6.8.0-45-generic" not in "drv:6.8.0-45-generic-64k", and "6.1.0-1-amd64"
/// not in "drv:16.1.0-1-amd64".
[[nodiscard]] bool names_kernel(std::string_view image, std::string_view kernel);

}  // namespace kmm::recipe::plan
