// SPDX-License-Identifier: Apache-2.0
#include "cli/document.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/missing_file.hpp"
#include "sys/real_path.hpp"
#include "sys/trust.hpp"

namespace kmm::cli {
namespace {

/// The descriptor of this process that a path names, e.g. 1 for /dev/stdout.
std::optional<int> own_descriptor(std::string_view path) {
    if (path == "-" || path == "/dev/stdout") return 1;
    if (path == "/dev/stderr") return 2;
    for (const std::string_view directory : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!path.starts_with(directory)) continue;
        path.remove_prefix(directory.size());
        int number = -1;
        const auto read = std::from_chars(path.data(), path.data() + path.size(), number);
        if (read.ec == std::errc() && read.ptr == path.data() + path.size() && number >= 0) return number;
    }
    return std::nullopt;
}

using Kind = std::filesystem::file_type;

/// A pipe, a device or a socket: what is written to it is taken, and nothing may come into its place.
bool is_stream(Kind kind) {
    return kind != Kind::regular && kind != Kind::directory && kind != Kind::symlink && kind != Kind::not_found &&
           kind != Kind::none;
}

/// What stands at `file` itself. A link is judged by what it leads to only below /dev and /proc, where no checkout is,
/// and only if that is a stream.
Kind kind_of(const std::string& file) {
    std::error_code error;
    const Kind kind = std::filesystem::symlink_status(file, error).type();
    if (kind != Kind::symlink || !(file.starts_with("/dev/") || file.starts_with("/proc/"))) return kind;
    const Kind behind = std::filesystem::status(file, error).type();
    return is_stream(behind) ? behind : kind;
}

/// Whoever brings the files of a working directory may bring links, too: `file` must be none, and by a name that the
/// program chose itself nothing but a regular file.
void require_replaceable(const std::string& file, Kind kind, NamedBy by) {
    if (kind != Kind::symlink && (by == NamedBy::user || !is_stream(kind))) return;
    std::error_code error;
    const std::string found =
        kind != Kind::symlink
            ? "something else"
            : fmt::format("a link to {}", base::escape(std::filesystem::read_symlink(file, error).native()));
    throw Error(Exit::io, "io",
                fmt::format("writing {}: expected a regular file or nothing of that name, found {}", base::escape(file),
                            found))
        .hint(by == NamedBy::user ? "remove it, or give the name of the file that is meant" : "remove it");
}

/// Writes to a stream.
void write_to(sys::FileOps& ops, const std::string& path, const std::string& text) {
    const sys::Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) throw LastErrno().error("cannot open it");
    ops.write(fd.get(), text);
}

}  // namespace

std::optional<value::Form> document_form(const Context& context) {
    if (context.output == "json") return value::Form::json_pretty;
    if (context.output == "jsonl") return value::Form::json;
    if (context.output == "yaml") return value::Form::yaml;
    return std::nullopt;
}

bool print_document(Context& context, const value::Node& node, const value::LongSequence& sequence) {
    const auto form = document_form(context);
    if (form) value::write(node, *form, sequence, [&](std::string_view text) { context.console.out(text); });
    return form.has_value();
}

bool print_list(Context& context, const value::Node& node, std::string_view member) {
    if (context.output != "jsonl") return print_document(context, node);
    const auto* items = node.find(member);
    if (items == nullptr) throw bug("a list without its members");
    for (const auto& item : items->items()) context.console.out(value::to_json(item) + "\n");
    return true;
}

void print_file_document(Context& context, const value::Node& node, std::string_view option) {
    if (context.output == "name") {
        throw Error(Exit::usage, "bad-value", fmt::format("{} prints a file, found -o name", option))
            .hint("use -o yaml, json or jsonl");
    }
    if (!print_document(context, node)) { context.console.out(value::to_yaml(node)); }
}

void require_way_stays(const std::string& path) {
    namespace fs = std::filesystem;
    const fs::path given = fs::path(path).lexically_normal();
    if (given.is_absolute() || given.empty() || *given.begin() == "..") return;
    std::error_code error;
    const fs::path here = fs::canonical(".", error);
    const fs::path there = error ? fs::path() : fs::weakly_canonical(here / given, error);
    if (error) return;  // what opens it says why it cannot
    if (sys::is_below(here, there)) return;
    throw Error(Exit::io, "io",
                fmt::format("writing {}: expected a place below the working directory, found that links lead to {}",
                            base::escape(path), base::escape(there.native())))
        .hint("give the absolute name of the place that is meant");
}

void require_report(const std::string& file, NamedBy by) {
    if (own_descriptor(file)) return;
    const Kind kind = kind_of(file);
    require_replaceable(file, kind, by);
    if (is_stream(kind)) return;
    sys::require_directory_of(file);
    const std::string parent = sys::parent_of(file);
    require_way_stays(parent);
    if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
    throw LastErrno().error(fmt::format("cannot write {}", base::escape(file)));
}

void write_report(Context& context, const std::string& file, const std::string& text, NamedBy by) {
    constexpr unsigned k_report_mode = 0644;
    const auto own = own_descriptor(file);
    if (own == 1) return context.console.out_alone(text);  // a reader would take the rest for a part of it
    if (own == 2) return context.console.err(text);
    sys::LinuxFileOps ops;
    const auto writing = [&] { return "writing " + file; };
    if (own) return with_context(writing, [&] { ops.write(*own, text); });
    require_report(file, by);
    if (is_stream(kind_of(file))) return with_context(writing, [&] { write_to(ops, file, text); });
    const std::string parent = sys::parent_of(file);
    // Renaming a new file to the name follows no link, whatever has come there since.
    if (!sys::trust_fault(parent)) return sys::write_file_atomically(ops, file, text, k_report_mode);
    // Somebody else may redirect the way there while this is written: the directory is opened once.
    const sys::Fd directory = sys::open_directory(parent);
    with_context(writing, [&] {
        sys::write_file_atomically(ops, fmt::format("/proc/self/fd/{}/{}", directory.get(), sys::name_of(file)), text,
                                   k_report_mode);
    });
}

}  // namespace kmm::cli
