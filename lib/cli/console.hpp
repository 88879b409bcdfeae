// SPDX-License-Identifier: Apache-2.0
// The seam for everything a command prints or asks the terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/ci_text.hpp"

namespace kmm::cli {

class Console {
public:
    virtual ~Console() = default;
    /// The result. Write failures (closed pipe, full disk) never throw; they are remembered and turn exit 0 into 74
    /// unless the pipe was closed by the reader.
    virtual void out(std::string_view text) = 0;
    /// Messages and progress.
    virtual void err(std::string_view text) = 0;
    /// True for a terminal that understands escape sequences (TERM is not "dumb").
    [[nodiscard]] virtual bool out_is_terminal() const = 0;
    [[nodiscard]] virtual bool err_is_terminal() const = 0;
    /// Columns of the terminal on stderr or stdout (COLUMNS overrides), 80 when unknown. At least 20.
    [[nodiscard]] virtual std::size_t width() const = 0;
    /// False after a failed write to stdout that was not a closed pipe.
    [[nodiscard]] virtual bool out_ok() const = 0;
    /// The errno of the first failed write to stdout, 0 if there was none.
    [[nodiscard]] virtual int out_errno() const { return 0; }
    /// True if what is written to stdout from now on reaches nobody: a write has failed, or the reader of the pipe went away.
    [[nodiscard]] virtual bool out_is_gone() const { return false; }
    /// True if somebody can be asked: standard input is a terminal.
    [[nodiscard]] virtual bool in_is_terminal() const { return false; }
    /// Writes the question to standard error and reads one line; nullopt at the end of the input or when a signal came.
    [[nodiscard]] virtual std::optional<std::string> ask(std::string_view question) {
        err(question);
        return std::nullopt;
    }
    /// Rows of the terminal (LINES overrides), 24 when unknown. At least 4.
    [[nodiscard]] virtual std::size_t height() const { return 24; }
    /// Commands for a CI system, which out() and err() never let through (base/ci_text.hpp). With `beside_result` to standard error.
    virtual void ci_commands(std::string_view text, bool beside_result) { beside_result ? err(text) : out(text); }
};

/// Standard output and error of the process. No text of somebody else is a command to the CI system that reads them.
class StdConsole final : public Console {
public:
    void out(std::string_view text) override;
    void err(std::string_view text) override;
    void ci_commands(std::string_view text, bool beside_result) override;
    [[nodiscard]] bool out_is_terminal() const override;
    [[nodiscard]] bool err_is_terminal() const override;
    [[nodiscard]] std::size_t width() const override;
    [[nodiscard]] std::size_t height() const override;
    [[nodiscard]] bool out_ok() const override;
    [[nodiscard]] int out_errno() const override { return out_errno_; }
    [[nodiscard]] bool out_is_gone() const override;
    [[nodiscard]] bool in_is_terminal() const override;
    [[nodiscard]] std::optional<std::string> ask(std::string_view question) override;

private:
    void write_out(std::string_view text);

    base::CiFilter out_filter_, err_filter_;
    int out_errno_ = 0;  ///< after the first failure nothing more is written to stdout
};

/// For tests: collects text.
class BufferConsole final : public Console {
public:
    void out(std::string_view text) override { out_text.append(text); }
    void err(std::string_view text) override { err_text.append(text); }
    [[nodiscard]] bool out_is_terminal() const override { return terminal; }
    [[nodiscard]] bool err_is_terminal() const override { return terminal; }
    [[nodiscard]] std::size_t width() const override { return columns; }
    [[nodiscard]] bool out_ok() const override { return true; }
    std::string out_text, err_text;
    bool terminal = false;
    std::size_t columns = 80;
};

}  // namespace kmm::cli
