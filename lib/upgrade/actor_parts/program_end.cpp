// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/program_end.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::drive {

std::string program_fault(const sys::ProcessResult& result, std::chrono::milliseconds limit) {
    if (result.timed_out) return "took longer than " + base::format_duration(limit);
    if (result.signal != 0) return fmt::format("was ended by signal {}", result.signal);
    return result.exit_code == 0 ? std::string() : fmt::format("exited with {}", result.exit_code);
}

}  // namespace kmm::drive
