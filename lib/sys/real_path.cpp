// SPDX-License-Identifier: Apache-2.0
#include "sys/real_path.hpp"

#include <algorithm>
#include <system_error>

namespace kmm::sys {

std::optional<std::filesystem::path> real_path(const std::string& path) {
    std::error_code fault;
    auto real = std::filesystem::canonical(path, fault);
    return fault ? std::nullopt : std::optional(std::move(real));
}

bool is_below(const std::filesystem::path& above, const std::filesystem::path& path) {
    return std::mismatch(above.begin(), above.end(), path.begin(), path.end()).first == above.end();
}

bool is_of_machine(const std::filesystem::path& path) {
    return is_below("/dev", path) || is_below("/proc", path) || is_below("/sys", path);
}

}  // namespace kmm::sys
