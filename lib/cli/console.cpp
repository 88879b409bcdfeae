// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/number.hpp"
#include "cli/text.hpp"
#include "sys/signals.hpp"

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

void Console::out(std::string_view text) {
    if (is_out_taken()) return err(text);
    const std::lock_guard guard(mutex_);
    write_out_past_block(text);
}

void Console::out_alone(std::string_view text) {
    const std::lock_guard guard(mutex_);
    is_out_taken_ = true;
    write_out_past_block(text);
}

bool Console::is_out_taken() {
    const std::lock_guard guard(mutex_);
    return is_out_taken_;
}

void Console::write_out_past_block(std::string_view text) {
    if (!out_is_terminal() || text.empty()) return write_out(text);
    write_err_if_any(taken_off());
    write_out(text);
    is_at_line_start_ = text.back() == '\n';
    write_err_if_any(put_on());
}

void Console::err(std::string_view text) {
    const std::lock_guard guard(mutex_);
    if (text.empty()) return;
    is_at_line_start_ = text.back() == '\n';
    if (block_.empty()) return write_err(text);
    auto whole = taken_off();
    whole.append(text);
    write_err(whole.append(put_on()));
}

void Console::draw(std::vector<std::string> lines) {
    if (!err_is_terminal()) return;
    const std::lock_guard guard(mutex_);
    const auto before = taken_off();
    block_ = std::move(lines);
    write_err_if_any(before + put_on());
}

void Console::line_was_ended() {
    const std::lock_guard guard(mutex_);
    is_at_line_start_ = true;
    write_err_if_any(put_on());
}

void Console::write_err_if_any(std::string_view text) {
    if (!text.empty()) write_err(text);
}

std::string Console::put_on() {
    if (block_.empty() || !is_at_line_start_) return "";
    const std::size_t columns = width() - 1;  // a full line would wrap on some terminals
    const std::size_t rows_max = height() - 1;
    const bool is_too_high = block_.size() > rows_max;
    const std::size_t shown = is_too_high ? rows_max - 1 : block_.size();
    std::string text;
    const auto add = [&](std::string_view line) {
        const std::string fitting = cut(line, columns);
        drawn_.push_back(display_width(fitting));
        text.append(fitting).append("\n");
    };
    for (std::size_t i = 0; i < shown; ++i) add(block_[i]);
    if (is_too_high) add(fmt::format("… {} more", block_.size() - shown));
    return text;
}

std::string Console::taken_off() {
    if (drawn_.empty()) return "";
    // A terminal that became narrower has wrapped what is on the screen: count rows at today's width.
    const std::size_t columns = width();
    std::size_t rows = 0;
    for (const std::size_t drawn : drawn_) rows += std::max<std::size_t>(1, (drawn + columns - 1) / columns);
    drawn_.clear();
    return fmt::format("\x1b[{}A\r\x1b[J", rows);
}

void StdConsole::send_out(std::string_view text) {
    if (out_errno_ != 0) return;
    out_errno_ = write_all(STDOUT_FILENO, text);
}

void StdConsole::write_out(std::string_view text) {
    std::string room;
    send_out(out_filter_.pass(text, room));
}

void StdConsole::write_err(std::string_view text) { (void)write_all(STDERR_FILENO, err_filter_.pass(text)); }

void StdConsole::ci_commands(std::string_view text, bool beside_result) {
    if (beside_result || is_out_taken()) (void)write_all(STDERR_FILENO, text);
    else send_out(text);
}

bool StdConsole::out_is_terminal() const { return ::isatty(STDOUT_FILENO) == 1 && !is_dumb(); }

bool StdConsole::err_is_terminal() const { return ::isatty(STDERR_FILENO) == 1 && !is_dumb(); }

bool StdConsole::out_is_gone() const {
    pollfd out{STDOUT_FILENO, 0, 0};
    return out_errno_ != 0 || (::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0);
}

bool StdConsole::in_is_terminal() const { return ::isatty(STDIN_FILENO) == 1; }

namespace {

/// True once standard input has something to read; false once a signal has come or `end` is past.
bool await_input(std::optional<std::chrono::steady_clock::time_point> end) {
    for (;;) {
        if (sys::interrupt_requested()) return false;
        int wait_ms = -1;
        if (end) {
            const auto left =
                std::chrono::ceil<std::chrono::milliseconds>(*end - std::chrono::steady_clock::now()).count();
            if (left <= 0) return false;
            wait_ms = static_cast<int>(std::min<std::int64_t>(left, 60'000));
        }
        std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {sys::interrupt_fd(), POLLIN, 0}}};
        const int ready = ::poll(watched.data(), watched.size(), wait_ms);
        if (ready < 0 && errno != EINTR) return false;
        if (ready > 0 && watched[0].revents != 0 && !sys::interrupt_requested()) return true;
    }
}

}  // namespace

std::optional<std::string> StdConsole::ask(std::string_view question,
                                           std::optional<std::chrono::milliseconds> patience) {
    err(question);
    std::optional<std::chrono::steady_clock::time_point> end;
    if (patience) end = std::chrono::steady_clock::now() + *patience;
    std::string line;
    for (char byte = 0;;) {
        if (!await_input(end) || ::read(STDIN_FILENO, &byte, 1) != 1) {
            err("\n");
            return std::nullopt;
        }
        if (byte == '\n') {
            line_was_ended();
            return line;
        }
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
