// SPDX-License-Identifier: Apache-2.0
#include "kernel/devel.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kernel {

namespace {

namespace fs = std::filesystem;

/// The parts of a kernel's development files, from a tree or a package.
struct Parts {
    std::string symvers, symvers_name, configuration, header;
    std::string package;  // package.h, which Debian's kernels have
    std::string release_by_path;
};

/// "…/kernels/RELEASE/Module.symvers", "…/linux-headers-RELEASE/…", "…/lib/modules/RELEASE/…": the RELEASE.
std::string release_in(std::string_view path) {
    for (const std::string_view before : {"kernels/", "linux-headers-", "lib/modules/"}) {
        const auto at = path.find(before);
        if (at == std::string_view::npos) continue;
        const auto rest = path.substr(at + before.size());
        if (const auto end = rest.find('/'); end != std::string_view::npos && end > 0)
            return std::string(rest.substr(0, end));
    }
    return {};
}

Interface assemble(const Parts& parts, const std::string& source) {
    if (parts.symvers.empty())
        throw Error(Exit::data, "no-symvers",
                    fmt::format("expected a Module.symvers in {}, found none", base::escape(source)))
            .hint("name the kernel's headers: linux-headers-RELEASE on Debian, kernel-devel on Red Hat");
    Interface result;
    result.source = source;
    result.release = release_of_header(parts.header);
    if (result.release.empty()) result.release = parts.release_by_path;
    read_symvers(parts.symvers, parts.symvers_name, result);
    if (!parts.configuration.empty()) read_configuration(parts.configuration, result);
    // "module: Disable matching missing version CRC", a patch of theirs.
    if (parts.package.find("LINUX_PACKAGE_ID \" Debian ") != std::string::npos)
        result.missing_versions = kmod::MissingVersions::refused;
    return result;
}

std::string text_at(const fs::path& path) { return kmod::read_text(path.native()).value_or(""); }

/// A compressed file as a whole.
std::string inflated(const std::string& path) {
    std::string text;
    read_package(
        path, [](std::string_view) { return true; },
        [&](std::string_view, std::string content) { text = std::move(content); });
    return text;
}

Interface read_directory(const std::string& path) {
    std::error_code failed;
    Parts parts;
    const fs::path top(path);
    for (const fs::path& tree : {top, top / "build"}) {
        if (parts.symvers.empty() && fs::exists(tree / "Module.symvers", failed)) {
            parts.symvers_name = (tree / "Module.symvers").native();
            parts.symvers = text_at(tree / "Module.symvers");
        }
        if (parts.header.empty()) parts.header = text_at(tree / "include/generated/utsrelease.h");
        if (parts.package.empty()) parts.package = text_at(tree / "include/generated/package.h");
        for (const char* name : {"include/config/auto.conf", ".config", "config"})
            if (parts.configuration.empty()) parts.configuration = text_at(tree / name);
    }
    for (const char* name : {"symvers.gz", "symvers.xz", "symvers.zst"}) {
        if (!parts.symvers.empty() || !fs::exists(top / name, failed)) continue;
        parts.symvers_name = (top / name).native();
        parts.symvers = inflated(parts.symvers_name);
    }
    parts.release_by_path = release_in(fs::absolute(top, failed).lexically_normal().native() + "/");
    return assemble(parts, path);
}

Interface read_members(const std::string& path) {
    Parts parts;
    const auto ends = [](std::string_view name, std::string_view ending) {
        return name.ends_with(ending) && (name.size() == ending.size() || name[name.size() - ending.size() - 1] == '/');
    };
    const auto wanted = [&](std::string_view name) {
        for (const char* ending : {"Module.symvers", "include/generated/utsrelease.h", "include/generated/package.h",
                                   "include/config/auto.conf", ".config", "symvers.gz", "symvers.xz"})
            if (ends(name, ending)) return true;
        return name.find("/lib/modules/") != std::string_view::npos && ends(name, "config");
    };
    read_package(path, wanted, [&](std::string_view name, std::string content) {
        if (ends(name, "Module.symvers")) {
            parts.symvers = std::move(content);
            parts.symvers_name = fmt::format("{}({})", path, base::escape(name));
        } else if (ends(name, "utsrelease.h")) {
            parts.header = std::move(content);
        } else if (ends(name, "package.h")) {
            parts.package = std::move(content);
        } else if (ends(name, "symvers.gz") || ends(name, "symvers.xz")) {
            return;  // only as a file of its own: kernel-core has it beside the kernel, kernel-devel has Module.symvers
        } else if (parts.configuration.empty() || ends(name, "auto.conf")) {
            parts.configuration = std::move(content);
        }
        if (const auto release = release_in(name); !release.empty()) parts.release_by_path = release;
    });
    return assemble(parts, path);
}

}  // namespace

Interface read_devel(const std::string& path) {
    std::error_code failed;
    const auto status = fs::status(path, failed);
    if (!fs::exists(status))
        throw Error(Exit::not_found, "kernel-devel-not-found", fmt::format("there is no {}", base::escape(path)))
            .hint("name a directory of kernel headers, a Module.symvers, a .deb or an .rpm");
    if (fs::is_directory(status)) return read_directory(path);
    if (path.ends_with(".deb") || path.ends_with(".rpm")) return read_members(path);
    Parts parts;
    parts.symvers_name = path;
    const bool packed = path.ends_with(".gz") || path.ends_with(".xz") || path.ends_with(".zst");
    parts.symvers = packed ? inflated(path) : text_at(path);
    parts.release_by_path = release_in(path);
    return assemble(parts, path);
}

}  // namespace kmm::kernel
