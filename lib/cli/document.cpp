// SPDX-License-Identifier: Apache-2.0
#include "cli/document.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "sys/fd.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/missing_file.hpp"
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

/// Writes to something that is there and is no regular file, such as a pipe: nothing may come into its place.
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

void write_report(Context& context, const std::string& file, const std::string& text) {
    constexpr unsigned k_report_mode = 0644;
    const auto own = own_descriptor(file);
    if (own == 1) return context.console.out_alone(text);  // a reader would take the rest for a part of it
    if (own == 2) return context.console.err(text);
    sys::LinuxFileOps ops;
    std::error_code error;
    const auto kind = std::filesystem::status(file, error).type();
    const bool is_file = kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found;
    if (own || (!is_file && kind != std::filesystem::file_type::directory)) {
        return with_context([&] { return "writing " + file; },
                            [&] { own ? ops.write(*own, text) : write_to(ops, file, text); });
    }
    std::filesystem::path target =
        file;  // a link stays one: what it leads to is written, also if that is not there yet
    while (std::filesystem::is_symlink(target, error)) {
        sys::require_own_link(target.native());
        target = target.parent_path() / std::filesystem::read_symlink(target, error);
    }
    sys::require_directory_of(target.native());
    if (!sys::trust_fault(sys::parent_of(target.native())))
        return sys::write_file_atomically(ops, target.native(), text, k_report_mode);
    // Somebody else may redirect the way there while this is written: the directory is opened once.
    const sys::Fd directory = sys::open_directory(sys::parent_of(target.native()));
    with_context([&] { return "writing " + target.native(); },
                 [&] {
                     sys::write_file_atomically(
                         ops, fmt::format("/proc/self/fd/{}/{}", directory.get(), sys::name_of(target.native())), text,
                         k_report_mode);
                 });
}

}  // namespace kmm::cli
