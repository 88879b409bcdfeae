// SPDX-License-Identifier: Apache-2.0
// Locks of flock(2) that somebody else may hold for as long as he likes: whoever may read a file may lock it.
#pragma once

#include <string>

namespace kmm::sys {

/// Takes LOCK_SH or LOCK_EX of `fd`, once nobody else holds it otherwise; `path` is for messages. False with errno
/// where there are no such locks. Errors: timeout "timeout" when the limit of limit_input_waits has passed;
/// "interrupted" with interrupt_exit after a signal.
[[nodiscard]] bool wait_for_lock(int fd, int operation, const std::string& path);

}  // namespace kmm::sys
