// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/module_finder.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

constexpr int k_depth_max = 64;
constexpr std::size_t k_files_max = 20'000;

bool is_module_file(const std::string& name) {
    for (const std::string_view ending : {".ko", ".ko.gz", ".ko.xz", ".ko.zst"}) {
        if (name.size() > ending.size() && name.ends_with(ending)) return true;
    }
    return false;
}

/// Finds module files as depmod does: links count for what they mean. Here they stay inside of the image's root, and a
/// link to what is below the directory anyway, or to something above it, leads nowhere new.
class FileFinder {
public:
    FileFinder(std::string directory, const std::string& image_root) : directory_(std::move(directory)) {
        std::error_code error;
        real_directory_ = fs::canonical(directory_, error).native();
        real_root_ = fs::canonical(image_root.empty() ? directory_ : image_root, error).native();
    }

    /// Sorted by path. Errors: unsafe "image-limit"; from_errno.
    std::vector<FoundFile> run() {
        std::error_code error;
        if (!fs::exists(directory_, error)) {
            if (error) throw from_errno(error.value(), fmt::format("cannot list {}", base::escape(directory_)));
            return {};
        }
        walk(directory_, real_directory_, 0);
        std::vector<FoundFile> files;
        for (auto& [real, found] : found_) files.push_back(std::move(found));
        std::sort(files.begin(), files.end(),
                  [](const FoundFile& a, const FoundFile& b) { return a.paths.front() < b.paths.front(); });
        return files;
    }

private:
    void walk(const std::string& path, const std::string& real, int depth) {
        std::error_code error;
        std::vector<fs::directory_entry> entries;
        for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
            entries.push_back(*it);
        if (error) throw from_errno(error.value(), fmt::format("cannot list {}", base::escape(path)));
        std::sort(entries.begin(), entries.end());
        for (const auto& entry : entries)
            take(path + "/" + entry.path().filename().native(), real + "/" + entry.path().filename().native(), depth);
    }

    void take(const std::string& path, std::string real, int depth) {
        std::error_code error;
        auto type = fs::symlink_status(real, error).type();
        const bool link = type == fs::file_type::symlink;
        if (link) {
            real = fs::canonical(real, error).native();
            if (error || !real.starts_with(real_root_ + "/")) return;
            type = fs::status(real, error).type();
        }
        if (type == fs::file_type::directory) {
            if (link && !is_new(path, real)) return;
            if (depth < k_depth_max) walk(path, real, depth + 1);
        } else if (type == fs::file_type::regular && is_module_file(fs::path(path).filename().native())) {
            add(path, real, link);
        }
    }

    bool is_new(const std::string& path, const std::string& real) {
        const std::string name = fs::path(path).filename().native();
        const bool around =
            (real_directory_ + "/").starts_with(real + "/") || (real + "/").starts_with(real_directory_ + "/");
        return name != "build" && name != "source" && !around && followed_.insert(real).second;
    }

    void add(const std::string& path, const std::string& real, bool link) {
        if (++count_ > k_files_max)
            throw Error(Exit::unsafe, "image-limit",
                        fmt::format("more than {} module files below {}", k_files_max, base::escape(directory_)));
        FoundFile& found = found_[real];
        found.paths.insert(link ? found.paths.end() : found.paths.begin(), path);
        if (!link || found.file.empty()) found.file = link ? real : path;
    }

    std::string directory_, real_directory_, real_root_;
    std::size_t count_ = 0;
    std::set<std::string> followed_;
    std::map<std::string, FoundFile> found_;  // by where the file really is
};

}  // namespace

std::vector<FoundFile> find_module_files(const std::string& directory, const std::string& image_root) {
    return FileFinder(directory, image_root).run();
}

}  // namespace kmm::kmod
