// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <string.h>  // strerrorname_np, strerrordesc_np: locale independent tables of glibc

#include <algorithm>
#include <cerrno>
#include <tuple>

#include <fmt/format.h>

#include "base/counted.hpp"

namespace kmm {

std::string Position::to_string() const {
    if (line == 0) return file;
    if (column == 0) return fmt::format("{}:{}", file, line);
    return fmt::format("{}:{}:{}", file, line, column);
}

std::string_view to_string(Severity severity) noexcept {
    switch (severity) {
        case Severity::error: return "error";
        case Severity::warning: return "warning";
        case Severity::note: return "note";
    }
    return "error";
}

bool has_errors(const Diagnostics& diagnostics) noexcept {
    return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& d) {
        return d.severity == Severity::error;
    });
}

void sort_and_merge(Diagnostics& diagnostics) {
    const auto key = [](const Diagnostic& d) { return std::tie(d.position, d.code, d.message, d.severity, d.hint); };
    std::stable_sort(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& a, const Diagnostic& b) {
        return key(a) < key(b);
    });
    diagnostics.erase(std::unique(diagnostics.begin(), diagnostics.end()), diagnostics.end());
}

Error::Error(Exit exit, std::string code, std::string message)
    : exit_(exit), code_(std::move(code)), message_(std::move(message)) {}

Error Error::from_diagnostics(Diagnostics diagnostics, std::size_t left_out) {
    sort_and_merge(diagnostics);
    std::size_t errors = 0;
    std::size_t missing = 0;
    const Diagnostic* first = nullptr;
    for (const auto& d : diagnostics) {
        if (d.severity != Severity::error) continue;
        if (first == nullptr) first = &d;
        ++errors;
        if (d.exit == Exit::not_found) ++missing;
    }
    if (first == nullptr) return bug("from_diagnostics called without an error");
    const Exit exit = missing == errors ? Exit::not_found : (first->exit == Exit::not_found ? Exit::data : first->exit);
    Error error(exit, first->code,
                errors + left_out == 1 ? first->message : fmt::format("{} faults found", errors + left_out));
    if (errors + left_out == 1) {
        if (first->position) error.at(*first->position);
        error.hint(first->hint);
    }
    if (left_out != 0) error.detail("left out", base::counted(left_out, "more fault"));
    error.diagnostics_ = std::move(diagnostics);
    return error;
}

Error& Error::add_context(std::string text) & {
    context_.insert(context_.begin(), std::move(text));
    return *this;
}
Error&& Error::add_context(std::string text) && { return std::move(add_context(std::move(text))); }

Error& Error::hint(std::string text) & {
    hint_ = std::move(text);
    return *this;
}
Error&& Error::hint(std::string text) && { return std::move(hint(std::move(text))); }

Error& Error::at(Position position) & {
    position_ = std::move(position);
    return *this;
}
Error&& Error::at(Position position) && { return std::move(at(std::move(position))); }

Error& Error::detail(std::string key, std::string value) & {
    details_.emplace_back(std::move(key), std::move(value));
    return *this;
}
Error&& Error::detail(std::string key, std::string value) && {
    return std::move(detail(std::move(key), std::move(value)));
}

Error& Error::cause_errno(int saved_errno) & {
    errno_ = saved_errno;
    return *this;
}
Error&& Error::cause_errno(int saved_errno) && { return std::move(cause_errno(saved_errno)); }

Error& Error::cause_http(int status) & {
    http_ = status;
    return *this;
}
Error&& Error::cause_http(int status) && { return std::move(cause_http(status)); }

Error& Error::attach(Diagnostics diagnostics) & {
    sort_and_merge(diagnostics);
    diagnostics_ = std::move(diagnostics);
    return *this;
}
Error&& Error::attach(Diagnostics diagnostics) && { return std::move(attach(std::move(diagnostics))); }

Error&& Error::retryable() && {
    retryable_ = true;
    return std::move(*this);
}

namespace {

struct KernelErrno {
    int number;
    const char* name;
    const char* text;
};

/// What the C library does not know, as it is not meant for programs: init functions of modules return it all the same.
constexpr KernelErrno k_kernel_errnos[] = {
    {512, "ERESTARTSYS", "Interrupted, to be started again"},
    {517, "EPROBE_DEFER", "Driver requests probe retry"},
    {524, "ENOTSUPP", "Operation is not supported"},
};

const KernelErrno* kernel_errno(int number) {
    const auto* it = std::find_if(std::begin(k_kernel_errnos), std::end(k_kernel_errnos),
                                  [&](const KernelErrno& row) { return row.number == number; });
    return it == std::end(k_kernel_errnos) ? nullptr : it;
}

}  // namespace

std::string errno_name(int number) {
    if (const auto* row = kernel_errno(number)) return row->name;
    const char* name = ::strerrorname_np(number);
    return name != nullptr ? std::string(name) : fmt::format("errno {}", number);
}

std::string errno_text(int number) {
    if (const auto* row = kernel_errno(number)) return row->text;
    const char* text = ::strerrordesc_np(number);
    return text != nullptr ? std::string(text) : fmt::format("Unknown error {}", number);
}

Error from_errno(int saved_errno, std::string what, std::string code) {
    Exit exit = Exit::io;
    if (saved_errno == EACCES || saved_errno == EPERM) exit = Exit::no_permission;
    if (saved_errno == ENOENT || saved_errno == ENOTDIR) exit = Exit::not_found;
    Error error(exit, std::move(code),
                fmt::format("{}: {} ({})", what, errno_text(saved_errno), errno_name(saved_errno)));
    error.cause_errno(saved_errno);
    if (saved_errno == EMFILE) error.hint("raise the limit of open files of this process: ulimit -n");
    if (saved_errno == EFBIG) error.hint("the limit of the size of files is too low: ulimit -f");
    if (saved_errno == ENFILE) error.hint("raise the limit of open files of this host: sysctl fs.file-max");
    return error;
}

Error bug(std::string message) {
    return Error(Exit::bug, "bug", std::move(message)).hint("this is a bug in kmm-tools, please report it");
}

}  // namespace kmm
