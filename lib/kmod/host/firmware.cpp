// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/firmware.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/ko/files.hpp"
#include "sys/directory.hpp"
#include "sys/durable_names.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

constexpr const char* k_manifest = ".kmm-worker-firmware";
constexpr const char* k_saved = ".kmm-saved";
constexpr const char* k_unfinished = ".kmm-new";

/// Whether a file of this name would be taken for one that is kept here beside the firmware.
bool is_own_name(const std::string& name) {
    const std::string_view kept = std::string_view(name).substr(0, name.find_last_not_of("0123456789") + 1);
    return name == k_manifest || name.ends_with(k_saved) || name.ends_with(k_unfinished) ||
           (kept != name && kept.ends_with(std::string(k_saved) + "."));
}

/// `path` with `ending`, for a file that is kept beside it. A name that would be too long for that is cut, and told
/// from others by its digest.
std::string beside(const std::string& path, std::string_view ending) {
    constexpr std::size_t longest = 240;  // of the 255 bytes of a name; a number may follow
    constexpr std::size_t digits = 16;
    const auto slash = path.rfind('/') + 1;
    const std::string name = path.substr(slash);
    if (name.size() + ending.size() <= longest) return path + std::string(ending);
    return fmt::format("{}{}-{}{}", path.substr(0, slash), name.substr(0, longest - ending.size() - digits - 1),
                       digest::sha256_hex(name).substr(0, digits), ending);
}

/// Where a file below the firmware directory came from.
enum class Origin { created, replaced, found };

constexpr std::pair<Origin, std::string_view> k_origins[] = {
    {Origin::created, "created"}, {Origin::replaced, "replaced"}, {Origin::found, "found"}};

struct Owned {
    std::string sha256;
    Origin origin = Origin::created;
    std::set<std::string> owners;
};

/// Paths are relative to the firmware directory; of `directories`, "." is itself, ".." and "../.." what is above it.
struct Manifest {
    std::map<std::string, Owned> files;
    std::set<std::string> directories;  ///< that were made for firmware
};

constexpr std::string_view k_directory_line = "directory ";

bool is_above(const std::string& directory) {
    return directory == "." || directory == ".." || directory.starts_with("../");
}

bool leaves_directory(const std::string& path) {
    return path.empty() || path.front() == '/' || ("/" + path + "/").find("/../") != std::string::npos;
}

[[noreturn]] void damaged_manifest(const std::string& path, std::size_t line) {
    throw Error(Exit::io, "firmware-manifest",
                fmt::format("{}:{}: expected SHA256 ORIGIN MODULES PATH", base::escape(path), line))
        .hint("the list of installed firmware is damaged; look at the files beside it and remove it");
}

/// The kernel takes firmware, and this program the names of files to remove, from there: nobody else may write it, or
/// put a link on the way.
void require_own_directory(const std::string& path) { sys::require_trusted(path, "firmware directory"); }

Manifest read_manifest(const std::string& directory) {
    Manifest manifest;
    const std::string path = directory + "/" + k_manifest;
    const auto text = read_raw(path, 16U << 20U);
    std::error_code error;
    if (!text && fs::exists(fs::symlink_status(path, error)))
        throw Error(Exit::io, "firmware-manifest", fmt::format("{} cannot be read", base::escape(path)))
            .hint("it is the list of installed firmware; look at the files beside it and remove it");
    if (!text) return manifest;
    std::size_t number = 0;
    for (const auto line : base::split(*text, '\n')) {
        ++number;
        if (line.empty()) continue;
        if (line.starts_with(k_directory_line)) {
            const std::string made(line.substr(k_directory_line.size()));
            if (is_above(made) ? made.find_first_not_of("./") != std::string::npos : leaves_directory(made))
                damaged_manifest(path, number);
            manifest.directories.insert(made);
            continue;
        }
        const auto words = base::split(line, ' ');
        if (words.size() < 4 || words[0].size() != 64) damaged_manifest(path, number);
        Owned owned;
        owned.sha256 = words[0];
        const auto origin = std::find_if(std::begin(k_origins), std::end(k_origins),
                                         [&](const auto& o) { return o.second == words[1]; });
        if (origin == std::end(k_origins)) damaged_manifest(path, number);
        owned.origin = origin->first;
        for (const auto name : base::split(words[2], ',')) owned.owners.emplace(name);
        const std::string file(line.substr(words[0].size() + words[1].size() + words[2].size() + 3));
        if (leaves_directory(file)) damaged_manifest(path, number);
        manifest.files.emplace(file, std::move(owned));
    }
    return manifest;
}

void write_manifest(sys::FileOps& ops, const std::string& directory, const Manifest& manifest) {
    const std::string path = directory + "/" + k_manifest;
    if (manifest.files.empty()) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT)
            throw LastErrno().error(fmt::format("cannot remove {}", base::escape(path)));
        return;
    }
    std::string text;
    for (const auto& made : manifest.directories) text += fmt::format("{}{}\n", k_directory_line, made);
    for (const auto& [file, owned] : manifest.files) {
        const auto origin = std::find_if(std::begin(k_origins), std::end(k_origins),
                                         [&](const auto& o) { return o.first == owned.origin; });
        text += fmt::format("{} {} {} {}\n", owned.sha256, origin->second,
                            base::join(std::vector<std::string>(owned.owners.begin(), owned.owners.end()), ","), file);
    }
    sys::write_file_atomically(ops, path, text, 0644);
}

/// Where a directory of the list is.
std::string directory_at(const FirmwareDirectory& directory, const std::string& made) {
    if (!is_above(made)) return directory.at(made);
    std::string path = directory.path;
    for (std::size_t levels = made == "." ? 0 : (made.size() + 1) / 3; levels > 0; --levels)
        path = sys::parent_of(path);
    return path;
}

/// The directories that have to be made for `files` below `directory`, as the list has them.
std::set<std::string> missing_directories(const FirmwareDirectory& directory,
                                          const std::map<std::string, std::string>& files) {
    std::set<std::string> missing;
    std::error_code error;
    std::string above = ".";
    for (std::string path = directory.path; !fs::exists(path, error) && !error; path = sys::parent_of(path)) {
        missing.insert(above);
        above = above == "." ? ".." : above + "/..";
    }
    for (const auto& [file, source] : files) {
        for (auto slash = file.rfind('/'); slash != std::string::npos && slash > 0;
             slash = file.rfind('/', slash - 1)) {
            const std::string below = file.substr(0, slash);
            if (missing.contains(below) || fs::exists(fs::symlink_status(directory.at(below), error))) break;
            missing.insert(below);
        }
    }
    return missing;
}

/// Removes those that are empty, the innermost first. What is not empty, or cannot be removed, does no harm.
void remove_directories(const FirmwareDirectory& to, const std::set<std::string>& made) {
    std::vector<std::string> order(made.rbegin(), made.rend());
    const auto above =
        std::stable_partition(order.begin(), order.end(), [](const std::string& each) { return !is_above(each); });
    std::reverse(above, order.end());
    for (const auto& each : order) (void)::rmdir(directory_at(to, each).c_str());
}

void place_firmware(sys::FileOps& ops, const std::string& bytes, const std::string& path, sys::DurableNames& names) {
    const std::string temporary = beside(path, k_unfinished);
    (void)::unlink(temporary.c_str());
    with_context([&] { return "writing " + base::escape(path); }, [&] {
        const sys::Fd fd(ops.create(temporary, 0644));
        try {
            ops.write(fd.get(), bytes);
            names.place(fd.get(), temporary, path);
        } catch (...) {
            (void)::unlink(temporary.c_str());
            throw;
        }
    });
}

/// Lower-case hex of the file at `path`, "" if there is none.
std::string sum_of_file(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(path, error))) return {};
    return digest::sha256_hex(read_module_bytes(path));
}

/// Makes the name free under which the file at `target` will be kept. What is there is of an earlier load whose list is
/// gone, so nobody can tell which of the two is the host's own: it gets a number, unless it has the same bytes.
void make_room_to_keep(const std::string& target, sys::DurableNames& names) {
    const std::string saved = beside(target, k_saved);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(saved, error))) return;
    if (const auto sum = sum_of_file(saved); !sum.empty() && sum == sum_of_file(target))
        return;  // whichever is put back
    int number = 1;
    while (fs::exists(fs::symlink_status(fmt::format("{}.{}", saved, number), error))) ++number;
    names.move(saved, fmt::format("{}.{}", saved, number));
}

constexpr std::size_t k_firmware_files_max = 20'000;
constexpr int k_firmware_depth_max = 64;

/// What the files of a firmware directory are: regular files, and links that end at one inside of it.
class FirmwareLister {
public:
    explicit FirmwareLister(const std::string& from) : from_(from) {
        std::error_code error;
        root_ = fs::canonical(from, error).native();
        if (error) throw from_errno(error.value(), fmt::format("cannot list firmware in {}", base::escape(from)));
    }

    /// Relative paths, each with the file that has the bytes.
    std::map<std::string, std::string> run() {
        walk("", 0);
        return std::move(files_);
    }

private:
    void walk(const std::string& below, int depth) {
        if (depth > k_firmware_depth_max)
            throw Error(Exit::unsafe, "image-limit",
                        fmt::format("the firmware in {} is more than {} directories deep", base::escape(from_),
                                    k_firmware_depth_max));
        std::error_code error;
        for (fs::directory_iterator it(root_ + "/" + below, error), end; !error && it != end; it.increment(error)) {
            take(below + it->path().filename().native(), it->symlink_status().type(), depth);
        }
        if (error) throw from_errno(error.value(), fmt::format("cannot list firmware in {}", base::escape(from_)));
    }

    void take(const std::string& file, fs::file_type type, int depth) {
        std::string source = root_ + "/" + file;
        if (type == fs::file_type::symlink) {
            std::error_code error;
            const std::string target = fs::canonical(source, error).native();
            if (error) return;  // leads nowhere
            if (!target.starts_with(root_ + "/")) {
                throw Error(Exit::unsafe, "image-unsafe",
                            fmt::format("the firmware link '{}' leaves its directory", base::escape(file)))
                    .hint("copy the file instead of linking it when the image is built");
            }
            type = fs::status(target, error).type();
            source = target;
        }
        if (type == fs::file_type::directory) walk(file + "/", depth + 1);
        if (type != fs::file_type::regular) return;
        if (is_own_name(fs::path(file).filename().native())) {
            throw Error(Exit::unsafe, "image-unsafe",
                        fmt::format("firmware file '{}' has a name that kmm-worker keeps for its own files",
                                    base::escape(file)))
                .hint("leave the file out when the image is built");
        }
        if (file.find('\n') != std::string::npos)
            throw Error(Exit::unsafe, "image-unsafe",
                        fmt::format("firmware file '{}' has a line break in its name", base::escape(file)));
        if (files_.size() >= k_firmware_files_max)
            throw Error(Exit::unsafe, "image-limit",
                        fmt::format("more than {} firmware files in {}", k_firmware_files_max, base::escape(from_)));
        files_.emplace(file, std::move(source));
    }

    const std::string& from_;
    std::string root_;
    std::map<std::string, std::string> files_;
};

/// `sources` as FirmwareLister has them, `missing` the directories that are to be made for them.
Error firmware_changed(const std::string& file) {
    return Error(Exit::integrity, "firmware-changed",
                 fmt::format("firmware file '{}' is no longer what the image holds", base::escape(file)))
        .hint("find out who writes to the directory where images are extracted, TMPDIR, then load again");
}

std::vector<FirmwareFile> install_files(sys::FileOps& ops, const std::map<std::string, std::string>& sources,
                                        const std::set<std::string>& missing, const FirmwareDirectory& directory,
                                        const std::string& owner, const FileDigests& digests) {
    const std::string& to = directory.path;
    sys::DurableNames names(ops);
    sys::make_directories(to, 0755);
    (void)sys::remove_temp_files(to);
    Manifest manifest = read_manifest(to);
    manifest.directories.insert(missing.begin(), missing.end());
    std::vector<FirmwareFile> files;
    for (const auto& [file, source] : sources) {
        const std::string target = directory.at(file);
        std::string sum = digest::sha256_hex(read_module_bytes(source));
        if (const auto expected = digests.find(source); expected != digests.end() && expected->second != sum)
            throw firmware_changed(file);
        const std::string there = sum_of_file(target);
        if (const auto it = manifest.files.find(file); it == manifest.files.end()) {
            std::error_code error;
            const bool exists = fs::exists(fs::symlink_status(target, error));
            manifest.files[file].origin = !exists ? Origin::created : there == sum ? Origin::found : Origin::replaced;
            if (manifest.files[file].origin == Origin::replaced) make_room_to_keep(target, names);
        } else if (it->second.origin == Origin::found && there != sum) {
            it->second.origin = Origin::replaced;
        }
        Owned& owned = manifest.files[file];
        std::vector<std::string> others;
        if (owned.sha256 != sum)
            std::copy_if(owned.owners.begin(), owned.owners.end(), std::back_inserter(others),
                         [&](const std::string& name) { return name != owner; });
        owned.sha256 = sum;
        owned.owners.insert(owner);
        files.push_back({target, std::move(sum), std::move(others), file});
    }
    names.finish();
    write_manifest(ops, to, manifest);
    try {
        for (const auto& file : files) {
            if (sum_of_file(file.path) == file.sha256) continue;
            sys::make_directories(sys::parent_of(file.path), 0755);
            std::error_code error;
            const std::string saved = beside(file.path, k_saved);
            if (manifest.files[file.name].origin == Origin::replaced && !fs::exists(fs::symlink_status(saved, error)))
                names.move(file.path, saved);
            const std::string bytes = read_module_bytes(sources.at(file.name));
            if (digest::sha256_hex(bytes) != file.sha256) throw firmware_changed(file.name);
            place_firmware(ops, bytes, file.path, names);
        }
        for (const auto& made : missing) names.note(sys::parent_of(directory_at(directory, made)));
        names.finish();
    } catch (...) {
        try {
            (void)remove_firmware(ops, directory, owner);
        } catch (const Error&) {
            // what led here is what the user must see
        }
        throw;
    }
    return files;
}

}  // namespace

std::string FirmwareDirectory::at(const std::string& file) const {
    const auto slash = file.rfind('/');
    if (root.empty() || slash == std::string::npos) return path + "/" + file;
    HostPaths host;
    host.root = root;
    return here_of(host, on_host(host, path) + "/" + file.substr(0, slash)) + file.substr(slash);
}

std::vector<FirmwareFile> install_firmware(const std::string& from, const FirmwareDirectory& to,
                                           const std::string& owner, const FileDigests& digests) {
    sys::LinuxFileOps ops;
    return install_firmware(ops, from, to, owner, digests);
}

std::vector<std::string> remove_firmware(const FirmwareDirectory& to, const std::string& owner) {
    sys::LinuxFileOps ops;
    return remove_firmware(ops, to, owner);
}

std::vector<FirmwareFile> install_firmware(sys::FileOps& ops, const std::string& from, const FirmwareDirectory& to,
                                           const std::string& owner, const FileDigests& digests) {
    const auto sources = FirmwareLister(from).run();
    require_own_directory(to.path);
    for (const auto& [file, source] : sources) require_own_directory(sys::parent_of(to.at(file)));
    const auto missing = missing_directories(to, sources);
    try {
        return install_files(ops, sources, missing, to, owner, digests);
    } catch (...) {
        remove_directories(to, missing);
        throw;
    }
}

std::vector<std::string> remove_firmware(sys::FileOps& ops, const FirmwareDirectory& directory,
                                         const std::string& owner) {
    const std::string& to = directory.path;
    std::error_code absent;
    if (!fs::is_directory(to, absent)) return {};
    if (!fs::exists(fs::symlink_status(to + "/" + k_manifest, absent)) && sys::trust_fault(to)) return {};
    require_own_directory(to);
    (void)sys::remove_temp_files(to);
    Manifest manifest = read_manifest(to);
    for (const auto& [file, owned] : manifest.files)
        if (owned.owners.contains(owner)) require_own_directory(sys::parent_of(directory.at(file)));
    std::vector<std::string> left;
    std::optional<Error> failed;
    bool changed = false;
    sys::DurableNames names(ops);
    for (auto it = manifest.files.begin(); it != manifest.files.end();) {
        Owned& owned = it->second;
        if (owned.owners.erase(owner) == 0) {
            ++it;
            continue;
        }
        changed = true;
        if (!owned.owners.empty()) {
            ++it;
            continue;
        }
        const std::string path = directory.at(it->first);
        const std::string saved = beside(path, k_saved);
        (void)::unlink(beside(path, k_unfinished).c_str());
        const std::string there = sum_of_file(path);
        std::error_code error;
        std::optional<Error> fault;
        if (owned.origin == Origin::found || (there.empty() && owned.origin == Origin::created)) {
            // nothing of ours is there
        } else if (!there.empty() && there != owned.sha256) {
            if (!fs::exists(fs::symlink_status(saved, error)) && owned.origin == Origin::replaced) {
                // killed before anything was done: the host's own file still stands
            } else {
                left.push_back(path);  // and what was there before us stays beside it: a kill in the middle of a load
                                       // looks the same
            }
        } else if (owned.origin == Origin::replaced) {
            try {
                if (fs::exists(fs::symlink_status(saved, error))) names.move(saved, path);
            } catch (const Error& refused) {
                fault = from_errno(refused.errno_cause().value_or(EIO),
                                   fmt::format("cannot remove {}", base::escape(path)));
            }
        } else {
            if (::unlink(path.c_str()) != 0)
                fault = LastErrno().error(fmt::format("cannot remove {}", base::escape(path)));
            names.note(sys::parent_of(path));
        }
        if (fault) {  // it is still ours, and the others go all the same
            if (!failed) failed = std::move(fault);
            owned.owners.insert(owner);
            ++it;
            continue;
        }
        it = manifest.files.erase(it);
    }
    if (changed) {
        names.finish();  // before the list forgets them
        write_manifest(ops, to, manifest);
        remove_directories(directory, manifest.directories);
        const auto is_gone = [&](const std::string& each) {
            return !fs::exists(directory_at(directory, each), absent);
        };
        if (!manifest.files.empty() && std::erase_if(manifest.directories, is_gone) > 0)
            write_manifest(ops, to, manifest);
    }
    if (failed) throw std::move(*failed);
    return left;
}

}  // namespace kmm::kmod
