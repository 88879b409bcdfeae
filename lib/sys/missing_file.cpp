// SPDX-License-Identifier: Apache-2.0
#include "sys/missing_file.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "sys/directory.hpp"

namespace kmm::sys {

namespace {

namespace fs = std::filesystem;

/// Names of a directory that are compared with the missing one; one with more is not searched to its end.
constexpr std::size_t k_names_max = 4096;

std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(directory, error); !error && at != fs::directory_iterator(); at.increment(error)) {
        if (names.size() == k_names_max) { break; }
        names.push_back(at->path().filename().native());
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

std::string missing_file_hint(const std::string& path) {
    const std::string check = "correct the name";
    if (path.empty()) { return check + ": it is empty"; }
    std::error_code error;
    fs::path place = path;
    if (!place.has_filename() && place.has_parent_path()) { place = place.parent_path(); }  // "name/"
    if (fs::is_symlink(place, error)) {
        const auto target = fs::read_symlink(place, error);
        return "correct the symbolic link: it leads to " + base::escape(target.native());
    }
    if (fs::exists(place, error)) { return check + ": " + base::escape(place.native()) + " is not a directory"; }
    fs::path parent = parent_of(place.native());
    if (!fs::is_directory(parent, error)) {
        while (parent.has_relative_path() && !fs::exists(parent_of(parent.native()), error)) {
            parent = parent_of(parent.native());
        }
        const bool is_file = fs::exists(parent, error);
        return fmt::format("{}: {}{} {}", check, is_file ? "" : "directory ", base::escape(parent.native()),
                           is_file ? "is not a directory" : "does not exist");
    }
    const std::string name = place.filename().native();
    if (const auto near = base::nearest(name, names_in(parent))) {
        return "did you mean " + base::escape(place.has_parent_path() ? (parent / *near).native() : *near) + "?";
    }
    if (!place.has_parent_path()) { return check + "; ls shows the names in the current directory"; }
    return check + "; ls " + base::escape(parent.native()) + " shows the names there";
}

Error open_error(int number, const std::string& path) {
    const std::string what = "cannot open " + path;
    if (number != ENOENT && number != ENOTDIR) { return from_errno(number, what); }
    return from_errno(number, what, "file-not-found").hint(missing_file_hint(path));
}

void require_directory_of(const std::string& path) {
    const std::string parent = parent_of(path);
    std::error_code error;
    const auto kind = fs::status(parent, error).type();
    if (kind != fs::file_type::not_found) { return; }  // other faults are those of the write
    throw Error(Exit::not_found, "file-not-found",
                fmt::format("cannot write {}: directory {} does not exist", base::escape(path), base::escape(parent)))
        .hint("mkdir -p " + base::escape(parent));
}

}  // namespace kmm::sys
