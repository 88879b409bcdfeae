// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/render/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/names.hpp"
#include "digest/digest.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

constexpr const char* k_list_name = ".kmm-render.json";
constexpr std::size_t k_list_bytes_max = 64U << 20U;
constexpr std::string_view k_list_kind = "RenderedFiles";

/// The files that were written here, each with the digests of what may stand in it.
using OwnedFiles = std::map<std::string, std::set<std::string>>;

std::string path_of(const std::string& directory, const std::string& name) { return directory + "/" + name; }

enum class Occupant { nothing, file, directory, other };

Occupant occupant_of(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
        const int number = errno;
        if (number == ENOENT) { return Occupant::nothing; }
        throw from_errno(number, fmt::format("cannot look at {}", base::escape(path)));
    }
    if (S_ISDIR(info.st_mode)) { return Occupant::directory; }
    return S_ISREG(info.st_mode) ? Occupant::file : Occupant::other;
}

/// The directory that is written to. As root, where somebody else may redirect the way to it or what is in it, links on
/// that way count only if root made them, and everything happens below what was opened.
class OutPlace {
public:
    explicit OutPlace(const std::string& shown) : shown_(shown), path_(shown) {
        if (!sys::trust_fault(shown)) {
            sys::make_directories(shown, k_mode);
            return;
        }
        std::string there = shown;
        while (occupant_of(there) == Occupant::nothing && sys::parent_of(there) != there) {
            there = sys::parent_of(there);
        }
        opened_ = sys::open_directory(there);
        make_below(there);
        path_ = fd_path(opened_.get());
    }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::string shown(const std::string& name) const { return path_of(shown_, name); }

    /// Makes the directories of the file `name` and replaces it.
    void write(sys::FileOps& ops, const std::string& name, const std::string& bytes) const {
        const std::size_t slash = name.rfind('/');
        const std::string parent = slash == std::string::npos ? std::string() : name.substr(0, slash);
        if (!opened_) {
            if (!parent.empty()) { sys::make_directories(path_of(path_, parent), k_mode); }
            sys::write_file_atomically(ops, path_of(path_, name), bytes, 0644);
            return;
        }
        const sys::Fd below = open_below(opened_.get(), parent);
        with_context([&] { return "writing " + base::escape(shown(name)); }, [&] {
            const std::string path = path_of(fd_path(below.get()), sys::name_of(name));
            sys::write_file_atomically(ops, path, bytes, 0644);
        });
    }

private:
    static constexpr unsigned k_mode = 0755;
    static std::string fd_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

    /// The directory `name` below `directory`; what is missing is made, and no link is followed.
    [[nodiscard]] sys::Fd open_below(int directory, const std::string& name) const {
        constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        sys::Fd at(::openat(directory, ".", flags));
        for (const std::string_view part : base::split(name, '/')) {
            if (part.empty() || part == ".") { continue; }
            const std::string next(part);
            (void)::mkdirat(at.get(), next.c_str(), k_mode);
            sys::Fd opened(::openat(at.get(), next.c_str(), flags));
            const int number = errno;
            if (!opened) { throw from_errno(number, fmt::format("cannot open {}", base::escape(shown(name)))); }
            at = std::move(opened);
        }
        return at;
    }

    void make_below(const std::string& there) {
        if (there.size() < shown_.size()) {
            opened_ = open_below(opened_.get(), there == "." ? shown_ : shown_.substr(there.size()));
        }
    }

    std::string shown_, path_;
    sys::Fd opened_{};  ///< only where others may redirect
};

/// The bytes of a regular file; nullopt if there is none.
std::optional<std::string> read_regular(const std::string& path, int directory = AT_FDCWD) {
    const sys::Fd fd(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    const int number = fd && ::fstat(fd.get(), &info) == 0 ? 0 : errno;
    if (number == ENOENT || number == ELOOP) { return std::nullopt; }
    if (number != 0) { throw from_errno(number, fmt::format("cannot read {}", base::escape(path))); }
    if (!S_ISREG(info.st_mode)) { return std::nullopt; }
    return sys::read_fd(fd.get(), path);
}

/// Parts of names that render makes: no way out of the directory, nothing hidden.
bool is_own_part(std::string_view name) {
    return !name.empty() && name.front() != '.' && name.size() <= 255 &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
           });
}

bool is_own_name(std::string_view name) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) { return is_own_part(name); }
    return is_own_part(name.substr(slash + 1)) && is_own_name(name.substr(0, slash));
}

/// The directories that `name` lies in, outermost first.
std::vector<std::string> parents_of(const std::string& name) {
    std::vector<std::string> result;
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
        result.push_back(name.substr(0, slash));
    }
    return result;
}

Error damaged_list(const std::string& path, const std::string& what) {
    return Error(Exit::data, "damaged-list", fmt::format("{}: {}", base::escape(path), what))
        .hint("it says which files render may replace and remove; restore it, or render into an empty directory");
}

OwnedFiles read_list(const OutPlace& place) {
    const std::string path = path_of(place.path(), k_list_name);
    const std::string shown = place.shown(k_list_name);
    OwnedFiles owned;
    if (occupant_of(path) == Occupant::nothing) { return owned; }
    const auto text = read_regular(path);
    if (!text || text->size() > k_list_bytes_max) { throw damaged_list(shown, "expected a regular file"); }
    Diagnostics faults;
    const auto documents = value::read_json(*text, shown, faults);
    if (has_errors(faults) || documents.size() != 1) { throw damaged_list(shown, "expected JSON"); }
    const value::Node* files = documents[0].root.find("files");
    if (documents[0].root.get_string({"kind"}) != k_list_kind || files == nullptr || !files->is_mapping()) {
        throw damaged_list(shown, fmt::format("expected kind {} and a mapping \"files\"", k_list_kind));
    }
    for (const auto& member : files->members()) {
        if (!is_own_name(member.key) || !member.value.is_sequence()) {
            throw damaged_list(shown, fmt::format("\"{}\" is not a file of render", base::escape(member.key)));
        }
        for (const auto& digest : member.value.items()) { owned[member.key].insert(digest.text()); }
    }
    return owned;
}

void write_list(sys::FileOps& ops, const OutPlace& place, const OwnedFiles& owned) {
    value::Node files = value::Node::mapping();
    for (const auto& [name, digests] : owned) {
        files.set(name, value::Node::strings({digests.begin(), digests.end()}));
    }
    const value::Node list =
        value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"files", std::move(files)}, {"kind", k_list_kind}});
    const std::string text = value::to_json_pretty(list);
    if (read_regular(path_of(place.path(), k_list_name)) != text) { place.write(ops, k_list_name, text); }
}

Error not_ours(const std::string& path, const char* what) {
    return Error(Exit::data, "not-ours", fmt::format("{} {}", base::escape(path), what))
        .hint("move it away, or render into another directory");
}

/// Splits the wanted files into what is there already and what must be written. Changes nothing.
void compare_files(const OutPlace& place, const std::vector<OutputFile>& files, const OwnedFiles& owned,
                   OutputChanges& changes) {
    for (const auto& file : files) {
        for (const auto& parent : parents_of(file.name)) {
            const std::string path = path_of(place.path(), parent);
            const Occupant occupant = occupant_of(path);
            if (occupant == Occupant::nothing || occupant == Occupant::directory) { continue; }
            throw not_ours(place.shown(parent), "is not a directory, expected one or nothing of that name");
        }
        const std::string path = path_of(place.path(), file.name);
        const Occupant occupant = occupant_of(path);
        if (occupant == Occupant::other || occupant == Occupant::directory) {
            throw not_ours(place.shown(file.name), "is not a regular file, expected none of that name");
        }
        if (occupant == Occupant::file && read_regular(path) == file.bytes) {
            changes.unchanged.push_back(file.name);
            continue;
        }
        if (occupant == Occupant::file && owned.count(file.name) == 0) {
            throw not_ours(place.shown(file.name), "is there already and was not written by render");
        }
        changes.written.push_back(file.name);
    }
}

/// The directory beneath `top` that `name` lies in. No link is followed. Empty, with errno, if there is none.
sys::Fd open_parent(int top, const std::string& name) {
    constexpr int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    sys::Fd at(::openat(top, ".", flags));
    for (const auto& parent : parents_of(name)) {
        if (!at) { break; }
        at.reset(::openat(at.get(), sys::name_of(parent).c_str(), flags));
    }
    return at;
}

/// Removes the directories beneath `top` that `name` was in, as far as they are empty now.
void remove_empty_parents(int top, const std::string& name) {
    auto parents = parents_of(name);
    while (!parents.empty()) {
        const std::string& last = parents.back();
        const sys::Fd above = open_parent(top, last);
        if (!above || ::unlinkat(above.get(), sys::name_of(last).c_str(), AT_REMOVEDIR) != 0) { return; }
        parents.pop_back();
    }
}

/// What happened to a file that is not wanted any more.
enum class Pruned { removed, was_gone, is_of_others };

/// Removes the file `name` beneath `top` if its bytes are of these digests. A link is not what was written, be it the
/// file or a directory on the way to it.
Pruned prune_file(int top, const std::string& name, const std::set<std::string>& digests) {
    const sys::Fd parent = open_parent(top, name);
    if (!parent) {
        const int number = errno;
        if (number == ENOENT) { return Pruned::was_gone; }
        if (number == ENOTDIR || number == ELOOP) { return Pruned::is_of_others; }
        throw from_errno(number, "cannot open its directory");
    }
    const std::string last = sys::name_of(name);
    struct stat info {};
    if (::fstatat(parent.get(), last.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
        return Pruned::was_gone;
    }
    const auto bytes = read_regular(last, parent.get());
    if (!bytes || digests.count(digest::sha256_hex(*bytes)) == 0) { return Pruned::is_of_others; }
    if (::unlinkat(parent.get(), last.c_str(), 0) != 0) {
        const int number = errno;
        throw from_errno(number, fmt::format("cannot remove {}", base::escape(last)));
    }
    remove_empty_parents(top, name);
    return Pruned::removed;
}

/// Removes what is no longer wanted, and takes it from the list.
void prune_files(const std::string& directory, const std::set<std::string>& wanted, const std::set<std::string>& in_use,
                 OwnedFiles& owned, OutputChanges& changes) {
    const sys::Fd top(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!top) {
        const int number = errno;
        throw from_errno(number, fmt::format("cannot open {}", base::escape(directory)));
    }
    for (auto it = owned.begin(); it != owned.end();) {
        const std::string& name = it->first;
        if (wanted.count(name) != 0) {
            ++it;
            continue;
        }
        if (in_use.count(name) != 0) {
            changes.in_use.push_back(name);
            ++it;
            continue;
        }
        const Pruned what = with_context([&] { return "pruning " + base::escape(path_of(directory, name)); },
                                         [&] { return prune_file(top.get(), name, it->second); });
        if (what == Pruned::is_of_others) {
            changes.changed_by_others.push_back(name);
            ++it;
            continue;
        }
        if (what == Pruned::removed) { changes.removed.push_back(name); }
        it = owned.erase(it);
    }
}

}  // namespace

std::string documents_text(const std::vector<value::Node>& documents, const std::string& output) {
    if (output == "json") {
        const value::Node list =
            value::Node::mapping({{"apiVersion", "v1"}, {"items", value::Node::sequence(documents)}, {"kind", "List"}});
        return value::to_json_pretty(list);
    }
    std::string text;
    for (const auto& document : documents) {
        if (output == "jsonl") {
            text += value::to_json(document) + "\n";
        } else if (output == "name") {
            text += fmt::format("{}/{}\n", cli::plain_name(base::to_lower(document.get_string({"kind"}))),
                                cli::plain_name(document.get_string({"metadata", "name"})));
        } else {
            text += (text.empty() ? "" : "---\n") + value::to_yaml(document);
        }
    }
    return text;
}

OutputChanges write_files(sys::FileOps& ops, const std::string& directory, const std::vector<OutputFile>& files,
                          Prune prune, const std::vector<std::string>& in_use) {
    const OutPlace place(directory);
    OwnedFiles owned = read_list(place);
    OutputChanges changes;
    compare_files(place, files, owned, changes);

    std::set<std::string> wanted;
    std::map<std::string, std::string> digests;
    for (const auto& file : files) {
        wanted.insert(file.name);
        digests[file.name] = digest::sha256_hex(file.bytes);
        owned[file.name].insert(digests[file.name]);
    }
    write_list(ops, place, owned);
    for (const auto& file : files) {
        if (std::find(changes.unchanged.begin(), changes.unchanged.end(), file.name) != changes.unchanged.end()) {
            continue;
        }
        place.write(ops, file.name, file.bytes);
    }
    if (prune == Prune::yes) {
        prune_files(place.path(), wanted, {in_use.begin(), in_use.end()}, owned, changes);
        ops.sync_dir(place.path());
    }
    for (const auto& [name, digest] : digests) { owned[name] = {digest}; }
    write_list(ops, place, owned);
    return changes;
}

}  // namespace kmm::tool_plan
