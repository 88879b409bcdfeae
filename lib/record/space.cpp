// SPDX-License-Identifier: Apache-2.0
#include "record/space.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace kmm::record {

Error explain_space(Error error, const std::string& directory, std::string_view then) {
    const auto number = error.errno_cause();
    if (!number || (*number != ENOSPC && *number != EDQUOT) || !error.hint().empty()) {
        return error;
    }
    const bool is_quota = *number == EDQUOT;
    error.detail("directory", directory);
    error.hint(fmt::format("{} (old runs in {}/history may be moved away), then: {}",
                           is_quota ? "delete files of yours on its file system, or have your quota raised"
                                    : "free blocks or inodes on its file system, see df and df -i",
                           directory, then));
    return error;
}

}  // namespace kmm::record
