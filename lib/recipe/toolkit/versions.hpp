// SPDX-License-Identifier: Apache-2.0
// Names of kernels and releases: what they say, and their order.
#pragma once

#include <string>
#include <string_view>

namespace kmm::recipe::toolkit {

/// Whether a text can be a kernel release: "5.14.0-427.40.1.el9_4.x86_64+rt". Images without a realtime kernel have a
/// sentence in its place.
[[nodiscard]] bool is_kernel_release(std::string_view text);

/// "x86_64" of "5.14.0-427.40.1.el9_4.x86_64+rt"; "" if the release does not end with an architecture.
[[nodiscard]] std::string kernel_architecture(std::string_view kernel);

/// "rt", "64k" or "std", by the end of the release, or by "rt" among its parts as RHEL 8 has it.
[[nodiscard]] std::string_view kernel_flavour(std::string_view kernel);

/// Whether two kernels are of the same architecture and flavour.
[[nodiscard]] bool is_of_one_kind(std::string_view left, std::string_view right);

/// "5.14.0-427.el9_4.x86_64" of "5.14.0-427.el9_4" and x86_64; a kernel that names an architecture stays as it is.
[[nodiscard]] std::string with_architecture(const std::string& kernel, const std::string& architecture);

/// "5.14.0-427.el9_4" of "5.14.0-427.el9_4.x86_64+rt".
[[nodiscard]] std::string without_architecture(const std::string& kernel);

/// Runs of digits are compared as numbers, all else by bytes. "4.17.0-rc.1" comes before "4.17.0".
[[nodiscard]] bool version_before(std::string_view left, std::string_view right);

}  // namespace kmm::recipe::toolkit
