// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/directory_reader.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::drive {
namespace {

using std::chrono::nanoseconds;

nanoseconds nanoseconds_of(const struct timespec& time) {
    return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

/// What tells whether files below a directory are others than before.
struct Signs {
    std::string text;       ///< "" where it cannot be told
    nanoseconds newest{0};  ///< when the last one was changed
};

Signs signs_of(const std::string& directory) {
    namespace fs = std::filesystem;
    std::vector<std::string> lines;
    Signs signs;
    const auto add = [&](const std::string& path) {
        struct stat info {};
        // What a link leads to may change elsewhere.
        if (::lstat(path.c_str(), &info) != 0 || S_ISLNK(info.st_mode)) return false;
        signs.newest = std::max({signs.newest, nanoseconds_of(info.st_mtim), nanoseconds_of(info.st_ctim)});
        lines.push_back(fmt::format("{}\t{}:{}\t{}\t{}\t{}", path, info.st_dev, info.st_ino, info.st_size,
                                    nanoseconds_of(info.st_mtim).count(), nanoseconds_of(info.st_ctim).count()));
        return true;
    };
    std::error_code failed;
    bool is_told = add(directory);
    for (fs::recursive_directory_iterator at(directory, failed), end; is_told && !failed && at != end;
         at.increment(failed))
        is_told = add(at->path().native());
    if (!is_told || failed) return {};
    std::sort(lines.begin(), lines.end());
    signs.text = base::join(lines, "\n");
    return signs;
}

}  // namespace

std::shared_ptr<const kubernetes::Inventory> DirectoryReader::read() {
    const std::lock_guard lock(mutex_);
    struct timespec time {};
    ::clock_gettime(CLOCK_REALTIME, &time);
    auto signs = signs_of(directory_);
    if (last_ && !signs.text.empty() && signs.text == last_signs_) return last_;
    last_ = std::make_shared<const kubernetes::Inventory>(read_());
    const bool is_settled = signs.newest + settled_ < nanoseconds_of(time);
    last_signs_ = is_settled ? std::move(signs.text) : std::string();
    return last_;
}

}  // namespace kmm::drive
