// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/staging.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "registry/layer/path_rules.hpp"
#include "registry/unpack/beneath.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"

namespace kmm::registry {

namespace {

constexpr const char* k_work = ".kmm-pull";
constexpr const char* k_tree = "tree";    ///< in it: the files at their paths
constexpr const char* k_names = "names";  ///< in it: the paths of the finished tree, while it is moved out
constexpr std::size_t k_names_max = 1U << 30U;
constexpr std::size_t k_names_chunk = 64U << 10U;
constexpr mode_t k_directory_mode = 0755;

/// Of the directory that is asked for; with its errno if there is none.
sys::Fd parent_directory(const std::string& path) {
    try {
        return sys::open_directory(sys::parent_of(path));
    } catch (const Error& error) {
        if (!error.errno_cause()) {
            throw;
        }
        errno = *error.errno_cause();
        return {};
    }
}

bool is_empty(int directory) {
    bool empty = true;
    sys::each_entry(directory, [&](const sys::DirectoryEntry& /*entry*/) { empty = false; });
    return empty;
}

std::string work_name(ContentId id) { return std::to_string(id); }

bool is_top_name(std::string_view path) {
    const std::string_view top = path.substr(0, path.find('/'));
    return !top.empty() && top != "." && top != "..";
}

/// Calls `hear` with the directories and leaves of `nodes`, parents before what is in them.
template <typename Hear>
void each_path(const ViewNodes& nodes, const Hear& hear) {
    std::string_view before;
    for (const auto& [path, node] : nodes) {
        // What is in one directory stands together.
        for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
            const std::string directory = path.substr(0, slash);
            if (!before.starts_with(std::string_view(path).substr(0, slash + 1)) && !nodes.contains(directory)) {
                hear(directory);
            }
        }
        hear(path);
        before = path;
    }
}

/// Removes `paths` (parents first) beneath `root` again, through no link: files and links, and directories that are
/// empty then. Whatever else is in those directories belongs to others, and stays.
void remove_paths(const sys::Fd& root, const std::vector<std::string_view>& paths) noexcept {
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
        if (!is_top_name(*path)) {
            continue;
        }
        const std::string above(parent_of(*path));
        const sys::Fd directory = above.empty() ? sys::Fd(::openat(root.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC))
                                                : open_beneath(root.get(), above, O_RDONLY | O_DIRECTORY);
        const std::string name(name_of(*path));
        if (directory && ::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno == EISDIR) {
            static_cast<void>(::unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR));
        }
    }
}

bool is_same_file(int one, int directory, const char* name) {
    struct stat left {};
    struct stat right {};
    return ::fstat(one, &left) == 0 && ::fstatat(directory, name, &right, AT_SYMLINK_NOFOLLOW) == 0 &&
           left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

/// 0 if `work`, the directory of a pull, is locked for this one; EWOULDBLOCK if another pull has it; the errno of a
/// file system without locks.
int lock_work(int work) {
    while (::flock(work, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

}  // namespace

bool has_unfinished_pull(const std::string& directory) {
    struct stat facts {};
    return ::lstat((directory + "/" + k_work).c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

Staging::Staging(std::string out_dir, Durability durability)
    : out_dir_(std::move(out_dir)), durable_(durability == Durability::durable) {
    if (const auto parent = parent_directory(out_dir_)) {
        root_.reset(
            ::openat(parent.get(), sys::name_of(out_dir_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    }
    if (!root_) {
        const int saved = errno;
        throw from_errno(saved, "directory " + out_dir_, "out-dir");
    }
    remove_unfinished();
    if (!is_empty(root_.get())) {
        throw Error(Exit::io, "out-dir", "expected an empty directory, found files in " + out_dir_);
    }
    if (::mkdirat(root_.get(), k_work, 0700) != 0) {
        const int saved = errno;
        throw saved == EEXIST ? another_pull() : from_errno(saved, "making a directory in " + out_dir_);
    }
    work_.reset(::openat(root_.get(), k_work, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!work_ && errno != ENOENT) {
        const int saved = errno;
        static_cast<void>(::unlinkat(root_.get(), k_work, AT_REMOVEDIR));
        throw from_errno(saved, "opening a directory in " + out_dir_);
    }
    // Where there are no locks, whoever finds what this pull makes does not take it for left over.
    if (!work_ || lock_work(work_.get()) == EWOULDBLOCK || !is_same_file(work_.get(), root_.get(), k_work)) {
        throw another_pull();  // it took this one for left over, before it was locked
    }
    owned_ = true;
    const bool ready = [&] {
        if (::mkdirat(work_.get(), k_tree, k_directory_mode) != 0) {
            return false;
        }
        tree_.reset(::openat(work_.get(), k_tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        return static_cast<bool>(tree_);
    }();
    if (!ready) {
        const int saved = errno;
        remove_everything();
        throw from_errno(saved, "opening a directory in " + out_dir_);
    }
}

Error Staging::another_pull() const {
    return {Exit::io, "out-dir", "expected no other pull in " + out_dir_ + ", found one"};
}

/// What a pull that was killed left: its work directory, and of the finished tree what had been moved out of it.
void Staging::remove_moved(const sys::Fd& work) const {
    const sys::Fd names(::openat(work.get(), k_names, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const std::string text = names ? sys::read_fd(names.get(), k_names, k_names_max) : std::string();
    std::vector<std::string_view> moved = base::split(text, '\n');
    std::erase_if(moved,
                  [&](std::string_view path) {  // what is in the tree still was not moved: under that name is another's
                      const std::string top = std::string(k_tree) + "/" + std::string(path.substr(0, path.find('/')));
                      struct stat facts {};
                      return ::fstatat(work.get(), top.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
                  });
    remove_paths(root_, moved);
}

void Staging::remove_unfinished() const {
    const sys::Fd work(::openat(root_.get(), k_work, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!work) {
        return;
    }
    if (const int number = lock_work(work.get()); number == EWOULDBLOCK) {
        throw another_pull();
    } else if (number != 0) {
        const std::string found = fmt::format("expected no other pull in {}, found {}, and it cannot be locked",
                                              out_dir_, k_work);
        throw from_errno(number, found, "out-dir")
            .hint(fmt::format("remove {}/{} if no pull into {} is running", out_dir_, k_work, out_dir_));
    }
    remove_moved(work);
    sys::remove_entry(root_.get(), k_work);
}

Staging::~Staging() {
    if (owned_) {
        remove_everything();
    }
}

/// Only what this pull made: others may have put files into the directory since.
void Staging::remove_everything() noexcept {
    file_.reset();
    try {
        remove_moved(work_);
    } catch (const std::exception&) {
        // What cannot be read is left: it may be another's.
    }
    try {
        if (is_same_file(work_.get(), root_.get(), k_work)) {
            sys::remove_entry(root_.get(), k_work);
        }
    } catch (const std::exception&) {
        // The failure that led here is the one to report; the next pull into the directory removes the rest.
    }
    tree_.reset();
    work_.reset();
}

sys::Fd Staging::unnamed_file() const {
    sys::Fd fd(::openat(work_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd) {
        return fd;
    }
    fd.reset(::openat(work_.get(), "blob", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) {
        const int saved = errno;
        throw from_errno(saved, "making a file in " + out_dir_);
    }
    ::unlinkat(work_.get(), "blob", 0);
    return fd;
}

void Staging::need_space(std::uint64_t bytes) const {
    const auto free_bytes = sys::free_bytes(root_.get());  // where it does not tell, writing will
    const std::uint64_t needed = bytes + bytes / 10;
    if (free_bytes && *free_bytes < needed) {
        throw Error(Exit::io, "no-space",
                    fmt::format("expected {} free in {}, found {}", base::format_bytes(needed), out_dir_,
                                base::format_bytes(*free_bytes)));
    }
}

void Staging::begin_file(ContentId id) {
    if (id != stored_.size()) {
        throw bug("contents are stored out of order");
    }
    file_.reset(
        ::openat(work_.get(), work_name(id).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file_) {
        const int saved = errno;
        throw from_errno(saved, "making a file in " + out_dir_);
    }
}

void Staging::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
        if (put < 0) {
            const int saved = errno;
            if (saved == EINTR) {
                continue;
            }
            throw from_errno(saved, "writing a file of the image in " + out_dir_);
        }
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

FileSum::FileSum(const image::Digest& digest) {
    const auto bytes = base::from_hex(digest.hex);
    if (digest.algorithm != image::DigestAlgorithm::sha256 || !bytes || bytes->size() != bytes_.size()) {
        throw bug("expected the SHA-256 of a file, found " + digest.to_string());
    }
    std::copy(bytes->begin(), bytes->end(), bytes_.begin());
}

std::string FileSum::hex() const {
    return bytes_ == std::array<std::uint8_t, 32>{} ? std::string() : base::to_hex(bytes_);
}

void Staging::end_file(StoredFile stored) {
    const int fd = file_.release();
    if (::close(fd) != 0) {
        const int saved = errno;
        throw from_errno(saved, "writing a file of the image in " + out_dir_);
    }
    stored_.push_back(stored);
}

void Staging::forget_after(std::size_t count) {
    const std::size_t end = stored_.size() + (file_ ? 1 : 0);
    file_.reset();
    for (std::size_t id = count; id < end; ++id) {
        if (::unlinkat(work_.get(), work_name(id).c_str(), 0) != 0) {
            const int saved = errno;
            throw from_errno(saved, "removing a file of the image in " + out_dir_);
        }
    }
    stored_.resize(count);
}

sys::Fd Staging::open_content(ContentId id) const {
    sys::Fd fd(::openat(work_.get(), work_name(id).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
        const int saved = errno;
        throw from_errno(saved, "reading a file of the image in " + out_dir_);
    }
    return fd;
}

sys::Fd Staging::open_directory(const std::string& path, bool create) const {
    if (path.empty()) {
        return sys::Fd(::openat(tree_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    sys::Fd fd = open_beneath(tree_.get(), path, O_RDONLY | O_DIRECTORY);
    if (fd || (errno == ENOENT && !create)) {
        return fd;
    }
    // Directories may have to be made: step by step.
    sys::Fd at(::openat(tree_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const std::string_view piece : base::split(path, '/')) {
        const std::string name(piece);
        const bool made = create && ::mkdirat(at.get(), name.c_str(), k_directory_mode) == 0;
        if (create && !made && errno != EEXIST) {
            return {};
        }
        at.reset(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        if (at && made) {
            static_cast<void>(::fchmod(at.get(), k_directory_mode));  // whatever the umask says
        }
        if (!at) {
            return {};
        }
    }
    return at;
}

void Staging::publish(const LayerView& view) {
    std::vector<const std::string*> placed(stored_.size(), nullptr);  // content -> the path it got first
    const auto fail = [&](int number, const std::string& path) {
        return from_errno(number, "making /" + base::escape(path) + " in " + out_dir_);
    };
    std::string open_path;
    sys::Fd directory = open_directory("", false);
    for (const auto& [path, node] : view.nodes()) {
        const std::string parent(node.kind == EntryKind::directory ? path : parent_of(path));
        if (parent != open_path) {
            directory = open_directory(parent, true);
            open_path = parent;
        }
        if (!directory) {
            const int saved = errno;
            throw fail(saved, parent);
        }
        const std::string name(name_of(path));
        if (node.kind == EntryKind::directory) {
            continue;
        }
        if (node.kind == EntryKind::symlink) {
            if (::symlinkat(view.target(node).c_str(), directory.get(), name.c_str()) != 0) {
                const int saved = errno;
                throw fail(saved, path);
            }
            continue;
        }
        const std::string*& first = placed.at(node.number);
        if (first == nullptr) {
            if (::fchmodat(work_.get(), work_name(node.number).c_str(), node.executable ? 0755 : 0644, 0) != 0 ||
                ::renameat(work_.get(), work_name(node.number).c_str(), directory.get(), name.c_str()) != 0) {
                const int saved = errno;
                throw fail(saved, path);
            }
            first = &path;
        } else {
            const sys::Fd other = open_directory(std::string(parent_of(*first)), false);
            if (::linkat(other.get(), std::string(name_of(*first)).c_str(), directory.get(), name.c_str(), 0) != 0) {
                const int saved = errno;
                throw fail(saved, path);
            }
        }
    }
    move_out(view);
    owned_ = false;
}

/// The finished tree becomes visible: a rename for each top-level name. All paths are on record before.
void Staging::move_out(const LayerView& view) {
    const sys::Fd list(::openat(work_.get(), k_names, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!list) {
        const int saved = errno;
        throw from_errno(saved, "making a file in " + out_dir_);
    }
    sys::LinuxFileOps ops;
    std::vector<std::string> tops;
    std::string lines;
    each_path(view.nodes(), [&](const std::string& path) {
        if (path.find('/') == std::string::npos) {
            tops.push_back(path);
        }
        lines.append(path).append("\n");
        if (lines.size() >= k_names_chunk) {
            ops.write(list.get(), std::exchange(lines, {}));
        }
    });
    ops.write(list.get(), lines);
    if (durable_ && (::syncfs(root_.get()) != 0 || ::fsync(work_.get()) != 0)) {
        throw LastErrno().error("making the files in " + out_dir_ + " durable");
    }
    for (const std::string& top : tops) {
        if (::renameat2(tree_.get(), top.c_str(), root_.get(), top.c_str(), RENAME_NOREPLACE) != 0) {
            throw LastErrno().error("making /" + base::escape(top) + " in " + out_dir_);
        }
    }
    if (durable_ && ::fsync(root_.get()) != 0) {
        throw LastErrno().error("making the files in " + out_dir_ + " durable");
    }
    // The list goes last: without it a kill leaves a complete tree, and a failure would.
    tree_.reset();
    sys::each_entry(work_.get(), [&](const sys::DirectoryEntry& entry) {
        if (entry.name != k_names) {
            sys::remove_entry(work_.get(), entry.name);
        }
    });
    if (::unlinkat(work_.get(), k_names, 0) != 0) {
        throw LastErrno().error("removing a file in " + out_dir_);
    }
    if (::unlinkat(root_.get(), k_work, AT_REMOVEDIR) != 0) {
        const LastErrno failure;
        std::vector<std::string> paths;
        each_path(view.nodes(), [&](const std::string& path) { paths.push_back(path); });
        remove_paths(root_, {paths.begin(), paths.end()});
        throw failure.error("removing a directory in " + out_dir_);
    }
}

}  // namespace kmm::registry
