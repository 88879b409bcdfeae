// SPDX-License-Identifier: Apache-2.0
#include "sys/host.hpp"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
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

/// The user's name for `uid`; "" if there is none.
std::string name_of_user(uid_t uid) {
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    const bool is_known = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
    return is_known ? std::string(found->pw_name) : std::string();
}

bool is_user(const char* name) {
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    return ::getpwnam_r(name, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
}

}  // namespace

std::string user_name(std::int64_t uid) {
    const auto name = name_of_user(static_cast<uid_t>(uid));
    return name.empty() ? "uid " + std::to_string(uid) : name;
}

std::string caller_name() {
    const uid_t uid = ::geteuid();
    const char* asked = uid == 0 ? std::getenv("SUDO_USER") : nullptr;
    std::string name = asked != nullptr && *asked != 0 && is_user(asked) ? std::string(asked) : user_name(uid);
    for (char& c : name) {
        if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            c = '_';
        }
    }
    return name;
}

std::string pid_namespace() {
    std::array<char, 64> target{};
    const ssize_t length = ::readlink("/proc/self/ns/pid", target.data(), target.size());
    return length > 0 && static_cast<std::size_t>(length) < target.size()
               ? std::string(target.data(), static_cast<std::size_t>(length))
               : std::string();
}

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
