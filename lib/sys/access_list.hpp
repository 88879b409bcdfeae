// SPDX-License-Identifier: Apache-2.0
// POSIX access control lists: with one, the group's bits of a file's mode are the most that anybody named in it may do.
#pragma once

#include <optional>
#include <string>

namespace kmm::sys {

/// Who besides root and the group root may write the file or directory of the descriptor `fd` (O_PATH is enough) by its
/// access control list: "user 65534", "group 7", or "others" if the list cannot be read, as one of NFSv4. To be asked
/// where the mode lets the group write. nullopt if nobody.
[[nodiscard]] std::optional<std::string> writer_by_list(int fd);

}  // namespace kmm::sys
