// SPDX-License-Identifier: Apache-2.0
// Patterns of the files that a directory of Argo CD takes or leaves out.
#pragma once

#include <string>

namespace kmm::cluster {

/// Whether `pattern` matches the whole of `path`: * and ? match a slash, too; [a-z], [!abc], {a,b} and \x. A pattern
/// whose braces do not fit, or which stands for more than 256, matches nothing.
[[nodiscard]] bool matches_file(const std::string& pattern, const std::string& path);

}  // namespace kmm::cluster
