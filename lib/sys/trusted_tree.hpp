// SPDX-License-Identifier: Apache-2.0
// What sys/trust.hpp asks of one file, for a directory with all that is in it.
#pragma once

#include <string>
#include <string_view>

namespace kmm::sys {

/// As require_trusted, of the file or directory `path` and of everything below it, also where links lead: whoever reads
/// the tree afterwards reads what was judged, as nobody but root can change it. What does not exist or cannot be listed
/// is left to the reader. For other users than root nothing is read. Errors: no_permission "untrusted-file".
void require_trusted_tree(const std::string& path, std::string_view what);

}  // namespace kmm::sys
