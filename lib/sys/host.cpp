// SPDX-License-Identifier: Apache-2.0
#include "sys/host.hpp"

#include <sys/utsname.h>

#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "sys/file_ops.hpp"

namespace kmm::sys {
namespace {

std::string first_line_or_empty(const std::string& path) {
    try {
        return std::string(base::trim(read_file(path, 4096)));
    } catch (const Error&) {
        return {};
    }
}

}  // namespace

std::string host_name() {
    utsname names{};
    if (::uname(&names) != 0) {
        return "localhost";
    }
    const std::string name = static_cast<const char*>(names.nodename);
    return name.empty() || name == "(none)" ? "localhost" : name;
}

std::string machine_id() {
    return first_line_or_empty("/etc/machine-id");
}

std::string boot_id() {
    return first_line_or_empty("/proc/sys/kernel/random/boot_id");
}

std::optional<std::uint64_t> process_start_time(std::int64_t pid) {
    const std::string stat = first_line_or_empty("/proc/" + std::to_string(pid) + "/stat");
    // Field 2 is the command in parentheses and may itself hold blanks and parentheses.
    const std::size_t close = stat.rfind(')');
    if (close == std::string::npos || close + 2 >= stat.size()) {
        return std::nullopt;
    }
    const std::string_view rest = std::string_view(stat).substr(close + 2);
    const std::vector<std::string_view> fields = base::split(rest, ' ');
    constexpr std::size_t k_start_time = 22 - 3;  // `fields` begins with field 3
    if (fields.size() <= k_start_time || fields[0] == "Z" || fields[0] == "X") {
        return std::nullopt;
    }
    return base::parse_number<std::uint64_t>(fields[k_start_time]);
}

}  // namespace kmm::sys
