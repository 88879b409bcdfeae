// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/kernel_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

namespace {

/// What the kernel says of modules that it loads, those of distributions included.
constexpr std::string_view k_notices[] = {"taints kernel",
                                          "tainting kernel",
                                          "module verification failed",
                                          "module not compiled with retpoline",
                                          "no symbol version for ",
                                          "unknown parameter '",
                                          "Deprecated Driver is detected",
                                          "Unmaintained driver is detected",
                                          "not supported by SUSE, setting U taint"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Whether `line` has the name as a word, or as the beginning of the name of a function or a device of the module.
bool mentions(const std::string& line, const std::string& module) {
    const std::string text = normalise_name(line);
    for (auto at = text.find(module); at != std::string::npos; at = text.find(module, at + 1)) {
        const char before = at == 0 ? ' ' : line[at - 1];
        const char after = at + module.size() < line.size() ? line[at + module.size()] : ' ';
        const bool inside = is_letter(before) || before == '_' || (before >= '0' && before <= '9');
        if (!inside && !is_letter(after)) return true;
    }
    return false;
}

}  // namespace

KernelLog::KernelLog(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_) (void)::lseek(fd_.get(), 0, SEEK_END);
}

const std::vector<std::string>& KernelLog::lines() {
    if (!fd_) return lines_;
    std::array<char, 16384> buffer;
    for (int records = 0; records < 100'000; ++records) {
        const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
        if (got < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: records were overwritten
        if (got <= 0) break;
        // "6,1234,5678,-;text\n KEY=value\n": lines that start with a blank describe the record. The number is facility
        // * 8 + level.
        for (const auto line : base::split(std::string_view(buffer.data(), static_cast<std::size_t>(got)), '\n')) {
            if (line.starts_with(" DEVICE=") && grave_) device_lines_.push_back(lines_.back());
            if (line.empty() || line.front() == ' ') continue;
            const auto level = base::parse_number<unsigned>(line.substr(0, line.find(',')));
            grave_ = level && (*level & 7U) <= 4;
            const auto semicolon = line.find(';');
            lines_.emplace_back(base::trim(semicolon == std::string_view::npos ? line : line.substr(semicolon + 1)));
        }
    }
    return lines_;
}

const std::vector<std::string>& KernelLog::device_lines() {
    (void)lines();
    return device_lines_;
}

std::vector<std::string> lines_of_load(KernelLog& log, std::string_view module) {
    std::vector<std::string> result = lines_about(log.lines(), module);
    const std::size_t named = result.size();
    for (const auto& line : log.device_lines()) {
        if (std::find(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(named), line) ==
            result.begin() + static_cast<std::ptrdiff_t>(named))
            result.push_back(line);
    }
    return result;
}

std::vector<std::string> lines_about(const std::vector<std::string>& lines, std::string_view module) {
    const std::string wanted = normalise_name(module);
    std::vector<std::string> result;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(result),
                 [&](const std::string& line) { return mentions(line, wanted); });
    return result;
}

std::string telling_line(const std::vector<std::string>& lines) {
    const auto notice = [](const std::string& line) {
        return std::any_of(std::begin(k_notices), std::end(k_notices),
                           [&](std::string_view form) { return line.find(form) != std::string::npos; });
    };
    const auto it = std::find_if_not(lines.begin(), lines.end(), notice);
    if (it != lines.end()) return *it;
    return lines.empty() ? std::string() : lines.front();
}

}  // namespace kmm::kmod
