// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/number.hpp"

namespace kmm::cli {
namespace {

/// Writes all bytes; 0 or the errno of the failure.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        const int saved = errno;
        if (count >= 0) {
            text.remove_prefix(static_cast<std::size_t>(count));
            continue;
        }
        if (saved == EINTR) continue;
        if (saved != EAGAIN) return saved;
        pollfd wanted{fd, POLLOUT, 0};
        (void)::poll(&wanted, 1, -1);
    }
    return 0;
}

/// A number from the environment, 0 if absent or not a number.
std::size_t number_of(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? 0 : base::parse_number<std::size_t>(text).value_or(0);
}

winsize terminal_size() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size;
    size = winsize{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size;
    return winsize{};
}

bool is_dumb() {
    const char* term = std::getenv("TERM");
    return term != nullptr && std::strcmp(term, "dumb") == 0;
}

}  // namespace

void StdConsole::write_out(std::string_view text) {
    if (out_errno_ != 0) return;
    out_errno_ = write_all(STDOUT_FILENO, text);
}

void StdConsole::out(std::string_view text) { write_out(out_filter_.pass(text)); }

void StdConsole::err(std::string_view text) { (void)write_all(STDERR_FILENO, err_filter_.pass(text)); }

void StdConsole::ci_commands(std::string_view text, bool beside_result) {
    if (beside_result) (void)write_all(STDERR_FILENO, text);
    else write_out(text);
}

bool StdConsole::out_is_terminal() const { return ::isatty(STDOUT_FILENO) == 1 && !is_dumb(); }

bool StdConsole::err_is_terminal() const { return ::isatty(STDERR_FILENO) == 1 && !is_dumb(); }

bool StdConsole::out_is_gone() const {
    pollfd out{STDOUT_FILENO, 0, 0};
    return out_errno_ != 0 || (::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0);
}

bool StdConsole::in_is_terminal() const { return ::isatty(STDIN_FILENO) == 1; }

std::optional<std::string> StdConsole::ask(std::string_view question) {
    err(question);
    std::string line;
    for (char byte = 0;;) {
        if (::read(STDIN_FILENO, &byte, 1) != 1) {
            err("\n");
            return std::nullopt;
        }
        if (byte == '\n') return line;
        line.push_back(byte);
    }
}

std::size_t StdConsole::width() const {
    std::size_t columns = number_of("COLUMNS");
    if (columns == 0) columns = terminal_size().ws_col;
    return columns == 0 ? 80 : std::max<std::size_t>(columns, 20);
}

std::size_t StdConsole::height() const {
    std::size_t rows = number_of("LINES");
    if (rows == 0) rows = terminal_size().ws_row;
    return rows == 0 ? 24 : std::max<std::size_t>(rows, 4);
}

bool StdConsole::out_ok() const { return out_errno_ == 0 || out_errno_ == EPIPE; }

}  // namespace kmm::cli
