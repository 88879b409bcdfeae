// SPDX-License-Identifier: Apache-2.0
// The one exception type of the toolkit, and the diagnostic that faults of documents are reported with.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exit_code.hpp"

namespace kmm {

/// A place in a user's document. `line` and `column` count from 1; 0 means unknown. Columns count bytes.
struct Position {
    std::string file;  ///< as the user named it; "-" is standard input
    std::size_t line = 0;
    std::size_t column = 0;

    /// "file:line:col", "file" when the line is unknown.
    [[nodiscard]] std::string to_string() const;
    friend bool operator==(const Position&, const Position&) = default;
    friend auto operator<=>(const Position&, const Position&) = default;
};

enum class Severity { error, warning, note };

/// "error", "warning" or "note".
[[nodiscard]] std::string_view to_string(Severity severity) noexcept;

/// One finding about a document or a cluster. Faults are collected, never thrown one at a time, so that a user sees
/// all of them in one run.
struct Diagnostic {
    Severity severity = Severity::error;
    std::string code;     ///< stable kebab-case reason code, e.g. "unknown-field"
    std::string message;  ///< lower case, no full stop, says expected and found
    std::optional<Position> position;
    std::string hint;     ///< empty when there is none
    Exit exit = Exit::data;  ///< what the command exits with if this is the worst error
    bool is_of_no_object = false;  ///< the document is no object: no mapping, or without kind or apiVersion
    std::string object_by_name{};  ///< "Secret drivers/pull": the object it is about matters only if it is named; or ""
    friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

using Diagnostics = std::vector<Diagnostic>;

/// True if any entry has severity `error`.
[[nodiscard]] bool has_errors(const Diagnostics& diagnostics) noexcept;

/// Sorts by file, line, column, code, message. Stable; equal entries are merged.
void sort_and_merge(Diagnostics& diagnostics);

/// The only exception type thrown by this toolkit. Built at the fault, enriched by callers through `add_context`,
/// printed and mapped to an exit code in exactly one place (cli).
class Error : public std::exception {
public:
    /// `code` is a stable kebab-case reason code; `message` is lower case without a full stop and carries no secrets.
    Error(Exit exit, std::string code, std::string message);

    /// An error that stands for all errors of `diagnostics` (not empty). Exit is `data` (65) unless every error is
    /// `not_found`, then 66. `left_out` more were found and are not in the list, as nobody would read them all.
    [[nodiscard]] static Error from_diagnostics(Diagnostics diagnostics, std::size_t left_out = 0);

    /// Puts "what was being done" in front of the chain: the outermost context comes first. Returns *this.
    Error& add_context(std::string text) &;
    Error&& add_context(std::string text) &&;
    Error& hint(std::string text) &;
    Error&& hint(std::string text) &&;
    Error& at(Position position) &;
    Error&& at(Position position) &&;
    /// An extra fact shown on its own line, e.g. ("holders", "nvidia_uvm -> nvidia"). Order is kept.
    Error& detail(std::string key, std::string value) &;
    Error&& detail(std::string key, std::string value) &&;
    Error& cause_errno(int saved_errno) &;
    Error&& cause_errno(int saved_errno) &&;
    Error& cause_http(int status) &;
    Error&& cause_http(int status) &&;
    /// Attaches findings to an error that has a code and exit of its own, e.g. all failed checks. Sorted and merged.
    Error& attach(Diagnostics diagnostics) &;
    Error&& attach(Diagnostics diagnostics) &&;
    /// Marks the failure as one a later identical attempt may not have.
    Error&& retryable() &&;

    [[nodiscard]] Exit exit() const noexcept { return exit_; }
    [[nodiscard]] const std::string& code() const noexcept { return code_; }
    [[nodiscard]] const std::string& message() const noexcept { return message_; }
    [[nodiscard]] const std::vector<std::string>& context() const noexcept { return context_; }
    [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
    [[nodiscard]] const std::optional<Position>& position() const noexcept { return position_; }
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& details() const noexcept { return details_; }
    [[nodiscard]] std::optional<int> errno_cause() const noexcept { return errno_; }
    [[nodiscard]] std::optional<int> http_cause() const noexcept { return http_; }
    [[nodiscard]] bool is_retryable() const noexcept { return retryable_; }
    [[nodiscard]] const Diagnostics& diagnostics() const noexcept { return diagnostics_; }
    /// The message alone; use the accessors to print.
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

private:
    Exit exit_;
    std::string code_;
    std::string message_;
    std::vector<std::string> context_;
    std::string hint_;
    std::optional<Position> position_;
    std::vector<std::pair<std::string, std::string>> details_;
    std::optional<int> errno_;
    std::optional<int> http_;
    bool retryable_ = false;
    Diagnostics diagnostics_;
};

/// "ENOENT" for 2 and so on; "errno 4711" for a number without a name. Pure table, no locale.
[[nodiscard]] std::string errno_name(int number);
/// The C library's English text, e.g. "No such file or directory". Pure table lookup, locale independent.
[[nodiscard]] std::string errno_text(int number);

/// An error for a failed system call: message "WHAT: Text (ENAME)". `saved_errno` must have been saved on the line
/// after the call. Exit: EACCES and EPERM 77, ENOENT and ENOTDIR 66, everything else 74. Code: "io" unless given.
[[nodiscard]] Error from_errno(int saved_errno, std::string what, std::string code = "io");

/// Runs `body`; if it throws Error, adds `text()` as context and rethrows. `text` is only called on failure.
template <typename TextFn, typename Body>
decltype(auto) with_context(TextFn&& text, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (Error& error) {
        error.add_context(std::forward<TextFn>(text)());
        throw;
    }
}

/// Broken internal invariant: exit 70, code "bug".
[[nodiscard]] Error bug(std::string message);

}  // namespace kmm
