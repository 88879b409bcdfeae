// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/beneath.hpp"
#include "registry/local.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

namespace {

bool ends_like_module(std::string_view name) {
    static constexpr std::string_view k_endings[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};
    return std::any_of(std::begin(k_endings), std::end(k_endings), [&](std::string_view ending) { return name.ends_with(ending); });
}

class DirectoryReader final : public EntryReader {
public:
    DirectoryReader(const LocalReference& reference, const Wanted& wanted, const Limits& limits)
        : root_path_(reference.path), wanted_(wanted), limits_(limits) {
        root_.reset(::open(root_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!root_) {
            const int saved = errno;
            throw from_errno(saved, "directory " + base::escape(root_path_), saved == ENOENT || saved == ENOTDIR ? "image-not-found" : "io");
        }
        const sys::Fd modules = open_beneath(root_.get(), wanted_.modules_root, O_RDONLY | O_DIRECTORY);
        if (modules) {
            walk("", "", false);
            return;
        }
        if (wanted_.kernels.size() != 1) {
            throw Error(Exit::usage, "usage", fmt::format("{} holds no {}: expected one kernel for the modules in it", base::escape(root_path_), wanted_.modules_root))
                .hint("--kernel K says which kernel they are for");
        }
        walk("", wanted_.modules_root + "/" + wanted_.kernels.front(), true);
        if (!wanted_.firmware_root.empty()) {
            walk(wanted_.firmware_root, wanted_.firmware_root, false);
        }
    }

    bool next(LayerEntry& entry) override {
        source_.reset();
        file_.reset();
        if (at_ == entries_.size()) {
            return false;
        }
        const Found& found = entries_[at_++];
        entry = found.entry;
        if (entry.kind == EntryKind::file) {
            file_ = open_beneath(root_.get(), found.path, O_RDONLY | O_NONBLOCK);
            struct stat facts {};
            if (!file_ || ::fstat(file_.get(), &facts) != 0) {
                const int saved = errno;
                throw from_errno(saved, "reading " + base::escape(root_path_ + "/" + found.path));
            }
            entry.kind = S_ISREG(facts.st_mode) ? EntryKind::file : EntryKind::special;
            entry.size = static_cast<std::uint64_t>(facts.st_size);
            entry.executable = (facts.st_mode & 0111U) != 0;
            source_ = std::make_unique<FileSource>(file_.get(), entry.size);
        }
        return true;
    }

    std::string_view content() override { return source_ ? source_->next() : std::string_view(); }

private:
    struct Found {
        LayerEntry entry;
        std::string path;  ///< below the directory
    };

    /// Collects what is below `path`, as entries below `name`. Flat: module files only, whatever else lies there.
    void walk(const std::string& path, const std::string& name, bool flat) {
        const std::string full = path.empty() ? root_path_ : root_path_ + "/" + path;
        std::error_code ignored;
        if (!path.empty() && !std::filesystem::is_directory(full, ignored)) {
            return;
        }
        for (const sys::DirectoryEntry& item : sys::list_directory(full)) {
            const auto below = [&](const std::string& parent) { return parent.empty() ? item.name : parent + "/" + item.name; };
            Found found{{}, below(path)};
            found.entry.name = below(name);
            const bool inside = wanted_.covers(found.entry.name) || wanted_.is_ancestor(found.entry.name);
            const bool other_kernel = parent_of(found.entry.name) == wanted_.modules_root && !inside;
            if ((!inside && !other_kernel) || (flat && item.type != sys::EntryType::directory && !ends_like_module(item.name))) {
                continue;
            }
            if (std::count(found.path.begin(), found.path.end(), '/') >= static_cast<std::ptrdiff_t>(limits_.depth)) {
                throw limit_error("the depth of the path " + base::escape(found.path), "depth", limits_.depth);
            }
            if (entries_.size() >= limits_.entries) {
                throw limit_error("the number of files in " + base::escape(root_path_), "entries", limits_.entries);
            }
            switch (item.type) {
                case sys::EntryType::file: found.entry.kind = EntryKind::file; break;
                case sys::EntryType::directory: found.entry.kind = EntryKind::directory; break;
                case sys::EntryType::other: found.entry.kind = EntryKind::special; break;
                case sys::EntryType::link:
                    found.entry.kind = EntryKind::symlink;
                    found.entry.target = std::filesystem::read_symlink(root_path_ + "/" + found.path, ignored).native();
                    break;
            }
            const bool descend = inside && item.type == sys::EntryType::directory;
            const std::string next_path = found.path;
            const std::string next_name = found.entry.name;
            // Of a flat directory only modules count: an empty directory is not even mentioned.
            if (!flat || item.type != sys::EntryType::directory) {
                entries_.push_back(std::move(found));
            }
            if (descend) {
                walk(next_path, next_name, flat);
            }
        }
    }

    std::string root_path_;
    const Wanted& wanted_;
    const Limits& limits_;
    sys::Fd root_;
    sys::Fd file_;
    std::unique_ptr<FileSource> source_;
    std::vector<Found> entries_;
    std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<EntryReader> read_module_directory(const LocalReference& reference, const Wanted& wanted, const Limits& limits) {
    return std::make_unique<DirectoryReader>(reference, wanted, limits);
}

}  // namespace kmm::registry
