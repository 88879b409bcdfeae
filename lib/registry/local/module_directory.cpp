// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/path_rules.hpp"
#include "registry/layer/way.hpp"
#include "registry/local/local.hpp"
#include "registry/unpack/beneath.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

namespace {

class DirectoryReader final : public EntryReader {
public:
    DirectoryReader(const LocalReference& reference, const Wanted& wanted, const Limits& limits)
        : root_path_(reference.path), asked_(wanted), wanted_(wanted), limits_(limits) {
        root_.reset(::open(root_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!root_) {
            const int saved = errno;
            throw from_errno(saved, "directory " + base::escape(root_path_),
                             saved == ENOENT || saved == ENOTDIR ? "image-not-found" : "io");
        }
        follow_links();
        const sys::Fd modules = open_beneath(root_.get(), wanted_.modules_root, O_RDONLY | O_DIRECTORY);
        if (const int saved = errno; !modules && saved != ENOENT && saved != ENOTDIR) {
            throw from_errno(saved, "directory " + base::escape(root_path_ + "/" + wanted_.modules_root));
        }
        if (modules) {
            walk("", "", false);
            return;
        }
        if (wanted_.kernels.size() != 1) {
            if (!image_form().empty()) {
                throw no_modules();
            }
            throw Error(Exit::usage, "usage",
                        fmt::format("{} holds no {}: expected one kernel for the modules in it",
                                    base::escape(root_path_), asked_.modules_root))
                .hint("--kernel K says which kernel they are for");
        }
        walk("", wanted_.modules_root + "/" + wanted_.kernels.front(), true);
        if (entries_.size() == links_.size()) {
            throw no_modules();
        }
        const std::vector<std::string> roots = wanted_.whole_roots();
        for (auto root = roots.begin(); root != roots.end(); ++root) {
            if (std::none_of(roots.begin(), root, [&](const auto& walked) { return is_in(*root, walked); })) {
                walk(*root, *root, false);
            }
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

    /// Where the symbolic link `path` leads; nullopt if it is none.
    [[nodiscard]] std::optional<std::string> link_target(const std::string& path) const {
        const sys::Fd link = open_beneath(root_.get(), path, O_PATH | O_NOFOLLOW);
        std::string target(PATH_MAX, '\0');
        const ssize_t length = link ? ::readlinkat(link.get(), "", target.data(), target.size()) : -1;
        if (length < 0) {
            return std::nullopt;
        }
        target.resize(static_cast<std::size_t>(length));
        return target;
    }

    /// Finds the links on the way to what is asked for, and turns to where they lead, as in a file system whose root is
    /// the directory. They are the first entries, so that the view goes the same way.
    void follow_links() {
        Way way;
        for (bool found = true; found;) {
            found = false;
            wanted_ = way.route(asked_).real;
            std::vector<std::string> ends{wanted_.modules_root};
            for (const std::string& kernel : wanted_.kernels) {
                ends.push_back(wanted_.modules_root + "/" + kernel);
            }
            for (std::string& root : wanted_.whole_roots()) {
                ends.push_back(std::move(root));
            }
            for (auto end = ends.begin(); end != ends.end() && !found; ++end) {
                for (std::size_t slash = 0; slash != std::string::npos && !found;) {
                    slash = end->find('/', slash + 1);
                    const std::string path = end->substr(0, slash);
                    if (const auto target = link_target(path)) {
                        found = true;
                        way.add(path, *target, 1, true);
                        links_.insert(path);
                        entries_.push_back({{path, EntryKind::symlink, *target}, path});
                    }
                }
            }
        }
    }

    /// Modules of an unpacked image that lie elsewhere than they were looked for are no flat directory: they would be
    /// mixed, of all its kernels.
    void refuse_unpacked(const std::string& path) const {
        constexpr std::string_view modules = "/lib/modules/";
        const std::string absolute = "/" + path;
        const std::size_t at = absolute.find(modules);
        if (at == std::string::npos) {
            return;
        }
        const std::string kernel = absolute.substr(0, absolute.find('/', at + modules.size()));
        throw Error(Exit::not_found, "kernel-not-in-image",
                    fmt::format("expected the directory /{} in the unpacked image, found modules in {}",
                                asked_.modules_root, base::escape(kernel)))
            .detail("image", base::escape(root_path_))
            .hint(fmt::format("dirName or --dir-name {} looks for them there",
                              at == 0 ? "/" : base::escape(absolute.substr(0, at))));
    }

    /// How to read an image that is not unpacked in the directory, "" if there is none.
    [[nodiscard]] std::string image_form() const {
        constexpr std::string_view of_skopeo = "Directory Transport";
        const sys::Fd version = open_beneath(root_.get(), "version", O_RDONLY | O_NONBLOCK);
        std::string head(of_skopeo.size(), '\0');
        if (version && ::pread(version.get(), head.data(), head.size(), 0) > 0 && head == of_skopeo) {
            return "this is skopeo's own form of an image: skopeo copy dir:DIR oci:DIR:TAG makes a layout that is read "
                   "here";
        }
        const bool is_layout = static_cast<bool>(open_beneath(root_.get(), "oci-layout", O_PATH));
        return is_layout ? "this is an OCI layout: oci:DIR[:TAG] reads it" : "";
    }

    [[nodiscard]] Error no_modules() const {
        const std::string form = image_form();
        return Error(Exit::not_found, "kernel-not-in-image",
                     fmt::format("expected the directory /{} or modules (.ko, .ko.gz, .ko.xz, .ko.zst) in the "
                                 "directory, found neither",
                                 asked_.modules_root))
            .detail("image", base::escape(root_path_))
            .hint(!form.empty() ? form
                                : "dirName or --dir-name names the directory of lib/modules in an unpacked image");
    }

    /// Collects what is below `path`, as entries below `name`. Flat: module files only, whatever else lies there.
    void walk(const std::string& path, const std::string& name, bool flat) {
        const std::string full = path.empty() ? root_path_ : root_path_ + "/" + path;
        std::error_code ignored;
        if (!path.empty() && !std::filesystem::is_directory(full, ignored)) {
            return;
        }
        for (const sys::DirectoryEntry& item : sys::list_directory(full)) {
            const auto below = [&](const std::string& parent) {
                return parent.empty() ? item.name : parent + "/" + item.name;
            };
            Found found{{}, below(path)};
            found.entry.name = below(name);
            const bool inside = wanted_.covers(found.entry.name) || wanted_.is_ancestor(found.entry.name);
            const bool other_kernel = parent_of(found.entry.name) == wanted_.modules_root && !inside;
            if ((!inside && !other_kernel) || links_.contains(found.entry.name) ||
                (flat && item.type != sys::EntryType::directory && !ends_like_module(item.name))) {
                continue;
            }
            if (flat) {
                refuse_unpacked(found.path);
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
    const Wanted asked_;
    Wanted wanted_;  ///< the same without links on the way
    const Limits& limits_;
    sys::Fd root_;
    sys::Fd file_;
    std::unique_ptr<FileSource> source_;
    std::set<std::string> links_;  ///< those on the way
    std::vector<Found> entries_;
    std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<EntryReader> read_module_directory(const LocalReference& reference, const Wanted& wanted,
                                                   const Limits& limits) {
    return std::make_unique<DirectoryReader>(reference, wanted, limits);
}

}  // namespace kmm::registry
