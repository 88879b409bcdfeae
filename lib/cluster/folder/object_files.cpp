// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/object_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/folder/file_cache.hpp"
#include "sys/directory.hpp"
#include "sys/input_deadline.hpp"
#include "sys/real_path.hpp"

namespace kmm::cluster {
namespace {

constexpr std::size_t k_depth_max = 250;
constexpr std::string_view k_packed = ".gz";

/// Collects the object files below a directory in sorted order.
class Walk {
public:
    /// `limit` is called before each directory.
    Walk(std::string root, Diagnostics& diagnostics, PackedFiles packed, const std::vector<std::string>& named,
         void (*limit)(const std::string&))
        : root_(std::move(root)), diagnostics_(diagnostics), packed_(packed), limit_(limit) {
        real_root_ = sys::real_path(root_).value_or(root_);
        for (const auto& name : named) {
            if (auto real = sys::real_path(name)) { named_.push_back(std::move(*real)); }
        }
        enter(root_);
    }

    [[nodiscard]] ObjectFiles found() && { return std::move(found_); }

private:
    void enter(const std::string& directory) {
        if (limit_ != nullptr) { limit_(directory); }
        struct stat info {};
        if (::stat(directory.c_str(), &info) != 0) {
            const int saved = errno;
            return report(directory, from_errno(saved, "cannot read"));
        }
        const auto identity = std::pair(info.st_dev, info.st_ino);
        const bool is_deep = open_.size() >= k_depth_max;
        if (is_deep || !open_.insert(identity).second) {
            return diagnostics_.push_back(fault_at(
                is_deep ? "document-limit" : "symlink-loop",
                is_deep ? "too many nested directories" : "expected a tree of directories, found a link back into it",
                Position{directory, 0, 0}, is_deep ? "name the directory with the manifests" : "remove the link"));
        }
        try {
            if (entered_.insert(identity).second)
                for (const auto& entry : sys::list_directory(directory)) visit(directory + "/" + entry.name, entry);
        } catch (const Error& error) {
            if (error.exit() == Exit::timeout || error.exit() == Exit::interrupted) { throw; }
            report(directory, error);
        }
        open_.erase(identity);
    }

    void visit(const std::string& path, const sys::DirectoryEntry& entry) {
        if (entry.name[0] == '.') return;
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0) {
            const int saved = errno;
            if (saved == ELOOP || is_taken(path)) report(path, from_errno(saved, "cannot read"));
            return;
        }
        const bool is_directory = S_ISDIR(info.st_mode);
        if (!is_directory && !is_taken(path)) return;
        if (entry.type == sys::EntryType::link && leaves(path)) return;
        if (is_directory) return enter(path);
        if (!S_ISREG(info.st_mode))
            return diagnostics_.push_back(fault_at("unreadable-file", "expected a regular file, found something else",
                                                   Position{path, 0, 0},
                                                   "remove it, or give it a name without .yaml, .yml or .json"));
        if (seen_.insert(std::pair(info.st_dev, info.st_ino)).second) found_.files.push_back(path);
        found_.names.insert(path);
    }

    /// Says so, but for what is read for itself.
    bool leaves(const std::string& path) {
        const auto target = sys::real_path(path);
        if (!target) { return false; }
        const bool is_machine = sys::is_of_machine(*target) && !sys::is_of_machine(real_root_);
        if (sys::is_below(real_root_, *target) && !is_machine) { return false; }
        const bool is_named = std::any_of(named_.begin(), named_.end(),
                                          [&](const auto& name) { return sys::is_below(name, *target); });
        if (!is_named) {
            diagnostics_.push_back(fault_at(
                "link-leaves",
                fmt::format("a link leads out of {}, to {}: it is not followed", base::escape(root_),
                            base::escape(target->string())),
                Position{path, 0, 0},
                limit_ == nullptr ? "put what it leads to into the directory, or remove the link"
                                  : "name what it leads to with -f, too, or remove the link"));
        }
        return true;
    }

    /// What gzip has packed is passed over beside its original.
    [[nodiscard]] bool is_taken(const std::string& path) const {
        std::string_view name = path;
        if (packed_ == PackedFiles::take && name.ends_with(k_packed)) name.remove_suffix(k_packed.size());
        return is_object_file(name) && (name.size() == path.size() || ::access(std::string(name).c_str(), F_OK) != 0);
    }

    void report(const std::string& path, const Error& error) {
        diagnostics_.push_back(fault_at("unreadable-file", error.message(), Position{path, 0, 0}, "", error.exit()));
    }

    std::string root_;
    std::filesystem::path real_root_;
    std::vector<std::filesystem::path> named_;
    Diagnostics& diagnostics_;
    PackedFiles packed_;
    void (*limit_)(const std::string&);
    ObjectFiles found_;
    std::set<std::pair<dev_t, ino_t>> open_, entered_, seen_;  ///< links can make endless paths to what was entered
};

}  // namespace

bool is_object_file(std::string_view name) noexcept {
    return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

std::vector<std::string> object_files(const std::string& directory, Diagnostics& diagnostics, PackedFiles packed,
                                      const std::vector<std::string>& named) {
    Walk walk(directory.substr(0, std::max<std::size_t>(directory.find_last_not_of('/') + 1, 1)), diagnostics, packed,
              named, sys::require_input_time);
    auto files = std::move(walk).found().files;
    std::sort(files.begin(), files.end());
    return files;
}

ObjectFiles find_object_files(const std::string& directory, Diagnostics& diagnostics) {
    return Walk(directory, diagnostics, PackedFiles::skip, {}, nullptr).found();
}

}  // namespace kmm::cluster
