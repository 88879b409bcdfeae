// SPDX-License-Identifier: Apache-2.0
// The seam for everything a command prints or asks the terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ci_text.hpp"

namespace kmm::cli {

/// Owns the live block, lines at the bottom of a terminal that are redrawn in place: whatever any thread prints appears
/// above it. `out`, `err` and `draw` are thread safe.
class Console {
public:
    virtual ~Console() = default;
    /// The result. Write failures (closed pipe, full disk) never throw; they are remembered and turn exit 0 into 74
    /// unless the pipe was closed by the reader.
    void out(std::string_view text);
    /// A result that is whole by itself: what out() and ci_commands() get from now on goes to standard error.
    void out_alone(std::string_view text);
    /// Messages and progress.
    void err(std::string_view text);
    /// Replaces the live block; no lines remove it. Lines are cut to the width, and a block higher than the terminal
    /// ends with "… N more". The terminal may have been resized since the last call. Does nothing where stderr is no
    /// terminal. While the text that was printed last has no line end, e.g. a question, the block is not on the screen.
    /// O(lines).
    void draw(std::vector<std::string> lines);
    /// True for a terminal that understands escape sequences (TERM is not "dumb").
    [[nodiscard]] virtual bool out_is_terminal() const = 0;
    [[nodiscard]] virtual bool err_is_terminal() const = 0;
    /// Columns of the terminal on stderr or stdout (COLUMNS overrides), 80 when unknown. At least 20.
    [[nodiscard]] virtual std::size_t width() const = 0;
    /// False after a failed write to stdout that was not a closed pipe.
    [[nodiscard]] virtual bool out_ok() const = 0;
    /// The errno of the first failed write to stdout, 0 if there was none.
    [[nodiscard]] virtual int out_errno() const { return 0; }
    /// True if what is written to stdout from now on reaches nobody: a write has failed, or the reader of the pipe went
    /// away.
    [[nodiscard]] virtual bool out_is_gone() const { return false; }
    /// True if somebody can be asked: standard input is a terminal.
    [[nodiscard]] virtual bool in_is_terminal() const { return false; }
    /// Writes the question to standard error and reads one line. nullopt at the end of the input, once a signal has
    /// come (sys::interrupt_requested), and after `patience` (nullopt: without end).
    [[nodiscard]] virtual std::optional<std::string> ask(std::string_view question,
                                                         std::optional<std::chrono::milliseconds> patience) {
        static_cast<void>(patience);
        err(question);
        return std::nullopt;
    }
    /// Rows of the terminal (LINES overrides), 24 when unknown. At least 4.
    [[nodiscard]] virtual std::size_t height() const { return 24; }
    /// Commands for a CI system, which out() and err() never let through (base/ci_text.hpp). With `beside_result` to
    /// standard error.
    virtual void ci_commands(std::string_view text, bool beside_result) { beside_result ? err(text) : out(text); }

protected:
    virtual void write_out(std::string_view text) = 0;
    virtual void write_err(std::string_view text) = 0;
    /// To be called when the user has ended a line of the terminal.
    void line_was_ended();
    /// True after out_alone().
    [[nodiscard]] bool is_out_taken();

private:
    /// What takes the block off the screen, and what puts it there; "" for nothing. These need the mutex.
    [[nodiscard]] std::string taken_off();
    [[nodiscard]] std::string put_on();
    void write_err_if_any(std::string_view text);
    void write_out_past_block(std::string_view text);

    std::mutex mutex_;
    std::vector<std::string> block_;
    std::vector<std::size_t> drawn_;  ///< columns of each line of the block that is on the screen
    bool is_at_line_start_ = true;  ///< of the screen
    bool is_out_taken_ = false;     ///< by out_alone
};

/// Standard output and error of the process. No text of somebody else is a command to the CI system that reads them.
class StdConsole final : public Console {
public:
    void ci_commands(std::string_view text, bool beside_result) override;
    [[nodiscard]] bool out_is_terminal() const override;
    [[nodiscard]] bool err_is_terminal() const override;
    [[nodiscard]] std::size_t width() const override;
    [[nodiscard]] std::size_t height() const override;
    [[nodiscard]] bool out_ok() const override;
    [[nodiscard]] int out_errno() const override { return out_errno_; }
    [[nodiscard]] bool out_is_gone() const override;
    [[nodiscard]] bool in_is_terminal() const override;
    [[nodiscard]] std::optional<std::string> ask(std::string_view question,
                                                 std::optional<std::chrono::milliseconds> patience) override;

private:
    void write_out(std::string_view text) override;
    void write_err(std::string_view text) override;
    void send_out(std::string_view text);

    base::CiFilter out_filter_, err_filter_;
    int out_errno_ = 0;  ///< after the first failure nothing more is written to stdout
};

/// For tests: collects text.
class BufferConsole final : public Console {
public:
    [[nodiscard]] bool out_is_terminal() const override { return terminal; }
    [[nodiscard]] bool err_is_terminal() const override { return terminal; }
    [[nodiscard]] std::size_t width() const override { return columns; }
    [[nodiscard]] std::size_t height() const override { return rows; }
    [[nodiscard]] bool out_ok() const override { return true; }
    std::string out_text, err_text;
    bool terminal = false;
    std::size_t columns = 80, rows = 24;

private:
    void write_out(std::string_view text) override { out_text.append(text); }
    void write_err(std::string_view text) override { err_text.append(text); }
};

}  // namespace kmm::cli
