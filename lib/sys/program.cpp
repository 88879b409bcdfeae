// SPDX-License-Identifier: Apache-2.0
#include "sys/program.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/trust.hpp"

namespace kmm::sys {

std::string find_in_path(const std::string& program) {
    if (program.find('/') != std::string::npos) {
        return program;
    }
    const char* variable = std::getenv("PATH");
    const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    for (const std::string_view directory : base::split(path, ':')) {
        std::string candidate = directory.empty() ? program : std::string(directory) + "/" + program;
        if (::access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
    }
    throw Error(Exit::not_found, "command-not-found", "command " + program + " not found in PATH (" + path + ")")
        .hint("install the package that has " + program + ", or add its directory to PATH");
}

void require_trusted_program(const std::string& program, const std::string& directory) {
    if (::geteuid() != 0) {
        return;
    }
    const std::string found = find_in_path(program);
    const bool is_below = !found.starts_with('/') && !directory.empty() && ::access(directory.c_str(), F_OK) == 0;
    require_trusted(is_below ? directory + "/" + found : found, "program");
}

void require_program(const std::string& program) {
    const std::string found = find_in_path(program);
    if (::access(found.c_str(), X_OK) != 0) {
        const int saved = errno;
        throw Error(Exit::not_found, "command-not-found",
                    "command " + program + " cannot be run: " + errno_text(saved) + " (" + errno_name(saved) + ")");
    }
    require_trusted_program(program);
}

}  // namespace kmm::sys
