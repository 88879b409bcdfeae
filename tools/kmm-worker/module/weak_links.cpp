// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/module/weak_links.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/kernel_name.hpp"
#include "base/text.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"
#include "sys/directory.hpp"

namespace kmm::tool_worker {
namespace {

constexpr const char* k_modules = "/lib/modules";
constexpr std::size_t k_module_max = 512U << 20U, k_files_max = 20'000;
constexpr int k_depth_max = 64;
constexpr std::size_t k_modules_size = std::string_view("/lib/modules/").size();

bool is_module_file_name(std::string_view name) {
    return name.ends_with(".ko") || name.ends_with(".ko.gz") || name.ends_with(".ko.xz") || name.ends_with(".ko.zst");
}

/// A directory beneath another one, which is no link. Errors: from_errno.
sys::Fd open_below(int directory, const std::string& name, const std::string& path) {
    sys::Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const int saved = errno;
    if (!fd) throw from_errno(saved, "cannot open " + path);
    return fd;
}

/// A directory of the host; nullopt if it is absent.
std::optional<sys::Fd> open_if_there(const kubeadm::Place& place, const std::string& path) {
    try {
        return place.open(path, O_RDONLY | O_DIRECTORY);
    } catch (const Error& error) {
        if (error.errno_cause() == ENOENT || error.errno_cause() == ENOTDIR) return std::nullopt;
        throw;
    }
}

/// Told of each entry that is no directory; false ends the walk.
using Visit = std::function<bool(int directory, const std::string& subpath, const sys::DirectoryEntry& entry)>;

bool walk(int directory, const std::string& prefix, int depth, const Visit& visit) {
    std::vector<sys::DirectoryEntry> entries;
    sys::each_entry(directory, [&](const sys::DirectoryEntry& entry) {
        if (entries.size() < k_files_max) entries.push_back(entry);
    });
    std::sort(entries.begin(), entries.end(),
              [](const auto& left, const auto& right) { return left.name < right.name; });
    for (const auto& entry : entries) {
        const auto path = prefix + entry.name;
        if (entry.type != sys::EntryType::directory) {
            if (!visit(directory, path, entry)) return false;
        } else if (depth < k_depth_max) {
            const auto below = open_below(directory, entry.name, path);
            if (!walk(below.get(), path + "/", depth + 1, visit)) return false;
        }
    }
    return true;
}

/// A regular file beneath a directory.
std::string read_below(int directory, const std::string& name, const std::string& path) {
    const sys::Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const int saved = errno;
    if (!fd) throw from_errno(saved, "cannot open " + path);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
        throw Error(Exit::io, "io", fmt::format("cannot read {}: expected a regular file", path));
    return sys::read_fd(fd.get(), path, k_module_max);
}

kmod::IndexedModule module_at(int directory, const std::string& name, const std::string& path) {
    auto plain = kmod::plain_module(read_below(directory, name, path), path);
    kmod::IndexedModule module;
    module.file = kmod::parse_module(plain, path);
    module.path = module.image_path = path;
    return module;
}

std::string text_if_there(const kubeadm::Place& place, const std::string& path) {
    return place.read_if_there(path).value_or("");
}

/// Vermagic and architecture as a module of the kernel's own tree has them.
void take_from_module(const kubeadm::Place& place, const std::string& release, kernel::Interface& to) {
    const auto tree = fmt::format("{}/{}/kernel", k_modules, release);
    const auto directory = open_if_there(place, tree);
    if (!directory) return;
    static_cast<void>(
        walk(directory->get(), "", 0, [&](int at, const std::string& subpath, const sys::DirectoryEntry& entry) {
            if (entry.type != sys::EntryType::file || !is_module_file_name(entry.name)) return true;
            const auto module = module_at(at, entry.name, tree + "/" + subpath);
            const auto vermagic = module.file.vermagic();
            if (vermagic.substr(0, vermagic.find(' ')) != release) return true;
            to.vermagic = vermagic;
            if (to.architecture.empty()) to.architecture = module.file.machine;
            return false;
        }));
}

/// What unpacks modules speaks of a module of an image.
std::string plain_symvers(std::string bytes, const std::string& path) {
    try {
        return kmod::plain_module(std::move(bytes), path);
    } catch (const Error& error) {
        if (error.code() != "module-format" && error.code() != "image-limit") throw;
        throw Error(Exit::data, "bad-symvers", path + " cannot be unpacked: it is damaged")
            .hint("install the package of this kernel again");
    }
}

std::string link_text(int directory, const std::string& name, const std::string& path) {
    std::array<char, PATH_MAX> text{};
    const ssize_t size = ::readlinkat(directory, name.c_str(), text.data(), text.size());
    if (size < 0) {
        const int saved = errno;
        if (saved == ENOENT || saved == EINVAL) return "";
        throw from_errno(saved, "cannot read the link " + path);
    }
    return {text.data(), static_cast<std::size_t>(size)};
}

void sync(int directory, const std::string& path) {
    if (::fsync(directory) == 0) return;
    const int saved = errno;
    throw from_errno(saved, "cannot write " + path);
}

/// A link or a file in the place of `path` is somebody else's, and nothing can be made below it.
void refuse_other_than_directory(const kubeadm::Place& place, const std::string& path) {
    struct stat info {};
    try {
        const auto found = place.open(path, O_PATH | O_NOFOLLOW);
        if (::fstat(found.get(), &info) != 0 || S_ISDIR(info.st_mode)) return;
    } catch (const Error& error) {
        if (error.errno_cause() == ENOENT || error.errno_cause() == ENOTDIR) return;
        throw;
    }
    throw Error(Exit::io, "io",
                fmt::format("cannot make links in {}: expected a directory, found {}", path,
                            S_ISLNK(info.st_mode) ? "a link" : "a file"))
        .hint("move it away, then run the same command again");
}

/// The directory of `subpath` beneath `top`, made where it is absent if it is to be; nullopt if it is absent. `shown`
/// is the whole path, with `subpath` at its end.
std::optional<sys::Fd> directory_of(int top, const std::string& subpath, bool is_made, const std::string& shown) {
    sys::Fd at(::fcntl(top, F_DUPFD_CLOEXEC, 3));
    std::size_t begin = 0;
    for (auto slash = subpath.find('/'); slash != std::string::npos;
         begin = slash + 1, slash = subpath.find('/', begin)) {
        const auto name = subpath.substr(begin, slash - begin);
        const auto here = shown.substr(0, shown.size() - (subpath.size() - slash));
        if (is_made && ::mkdirat(at.get(), name.c_str(), 0755) == 0) sync(at.get(), here);
        else if (is_made && errno != EEXIST) {
            const int saved = errno;
            throw from_errno(saved, "cannot make " + here);
        }
        sys::Fd next(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        const int saved = errno;
        if (!next && saved == ENOENT && !is_made) return std::nullopt;
        if (!next) throw from_errno(saved, fmt::format("cannot open {}, expected a directory", here));
        at = std::move(next);
    }
    return at;
}

void change_link(int directory, const std::string& name, const LinkChange& change, const std::string& shown) {
    if (link_text(directory, name, shown) != change.before)
        throw Error(Exit::locked, "weak-link-changed",
                    fmt::format("{} was changed by somebody else", base::escape(shown)))
            .hint("run the same command again")
            .retryable();
    if (change.after.empty()) {
        if (::unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT) {
            const int saved = errno;
            throw from_errno(saved, "cannot remove " + shown);
        }
    } else {
        const auto temporary = fmt::format(".kmm-{}", ::getpid());
        static_cast<void>(::unlinkat(directory, temporary.c_str(), 0));
        if (::symlinkat(change.after.c_str(), directory, temporary.c_str()) != 0) {
            const int saved = errno;
            throw from_errno(saved, "cannot make the link " + shown);
        }
        if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) {
            const int saved = errno;
            static_cast<void>(::unlinkat(directory, temporary.c_str(), 0));
            throw from_errno(saved, "cannot make the link " + shown);
        }
    }
    sync(directory, shown);
}

/// Removes the directories of `subpath` beneath `top` that are empty, the lowest one first.
void prune(int top, std::string subpath, std::string shown) {
    for (auto slash = subpath.rfind('/'); slash != std::string::npos; slash = subpath.rfind('/')) {
        shown.resize(shown.size() - (subpath.size() - slash));
        subpath.resize(slash);
        const auto parent = directory_of(top, subpath, false, shown);
        const auto name = sys::name_of(subpath);
        if (!parent || ::unlinkat(parent->get(), name.c_str(), AT_REMOVEDIR) != 0) return;
    }
}

}  // namespace

std::vector<std::string> kernel_releases(const kubeadm::Place& place) {
    std::vector<std::string> releases;
    const auto directory = open_if_there(place, k_modules);
    if (!directory) return releases;
    sys::each_entry(directory->get(), [&](const sys::DirectoryEntry& entry) {
        if (entry.type == sys::EntryType::directory && base::is_kernel_name(entry.name)) releases.push_back(entry.name);
    });
    std::sort(releases.begin(), releases.end());
    return releases;
}

LinkForm link_form(const kubeadm::Place& place, const std::vector<std::string>& releases) {
    if (place.exists("/usr/lib/module-init-tools/weak-modules2")) return LinkForm::with_part;
    if (!place.find_program("weak-modules").empty()) return LinkForm::plain;
    bool is_with_part = false;
    for (const auto& release : releases) {
        std::map<std::string, std::string> links;
        try {
            links = read_links(place, release);
        } catch (const Error& error) {
            if (error.code() != "io" || error.errno_cause()) throw;
            continue;  // said where the links of this release are looked at
        }
        for (const auto& [subpath, target] : links) {
            const auto path = addon_path(target);
            if (path.empty()) continue;
            const auto with_part = path.substr(path.find('/', k_modules_size) + 1);
            if (subpath == with_part.substr(with_part.find('/') + 1)) return LinkForm::plain;
            if (subpath == with_part) is_with_part = true;
        }
    }
    return is_with_part ? LinkForm::with_part : LinkForm::plain;
}

std::vector<kernel::WeakCandidate> read_addons(const kubeadm::Place& place, const std::string& release,
                                               LinkForm form, std::vector<std::string>& warnings) {
    std::vector<kernel::WeakCandidate> found;
    for (const auto* part : {"extra", "updates"}) {
        const auto top = fmt::format("{}/{}/{}", k_modules, release, part);
        const auto directory = open_if_there(place, top);
        if (!directory) continue;
        const auto prefix = form == LinkForm::with_part ? std::string(part) + "/" : std::string();
        static_cast<void>(
            walk(directory->get(), "", 0, [&](int at, const std::string& subpath, const sys::DirectoryEntry& entry) {
                if (!is_module_file_name(entry.name)) return true;
                const auto path = top + "/" + subpath;
                if (entry.type != sys::EntryType::file) {
                    warnings.push_back(path + " is left out: expected a regular file");
                    return true;
                }
                try {
                    found.push_back({release, prefix + subpath, module_at(at, entry.name, path)});
                } catch (const Error& error) {
                    if (error.code() != "module-format" && error.code() != "image-limit") throw;
                    warnings.push_back(error.message() + "; the file is left out");
                }
                return found.size() < k_files_max;
            }));
    }
    return found;
}

std::optional<kernel::Interface> read_kernel(const kubeadm::Place& place, const std::string& release,
                                             std::string& why) {
    const auto own = fmt::format("{}/{}", k_modules, release);
    std::vector<std::string> places;
    for (const auto* packed : {"gz", "xz", "zst"})
        for (const auto& path :
             {fmt::format("{}/symvers.{}", own, packed), fmt::format("/boot/symvers-{}.{}", release, packed)})
            places.push_back(path);
    for (const auto& path : {own + "/build", "/usr/src/kernels/" + release, "/usr/src/linux-headers-" + release})
        places.push_back(path + "/Module.symvers");
    kernel::Interface interface;
    interface.release = release;
    for (const auto& path : places) {
        const auto bytes = place.read_if_there(path);
        if (!bytes) continue;
        interface.source = path;
        kernel::read_symvers(plain_symvers(*bytes, path), path, interface);
        break;
    }
    if (interface.source.empty()) {
        why = fmt::format("no symvers of kernel {}: looked for {}/symvers.gz, /boot/symvers-{}.gz and the headers",
                          release, own, release);
        return std::nullopt;
    }
    for (const auto& path : {"/boot/config-" + release, own + "/config", own + "/build/.config"}) {
        const auto text = text_if_there(place, path);
        if (text.empty()) continue;
        kernel::read_configuration(text, interface);
        break;
    }
    if (interface.vermagic.empty()) take_from_module(place, release, interface);
    if (!interface.vermagic.empty()) return interface;
    why = fmt::format("the vermagic of kernel {} is not known: it has no configuration and no module of its own",
                      release);
    return std::nullopt;
}

std::map<std::string, std::string> read_links(const kubeadm::Place& place, const std::string& release) {
    std::map<std::string, std::string> links;
    const auto top = fmt::format("{}/{}/weak-updates", k_modules, release);
    refuse_other_than_directory(place, top);
    const auto directory = open_if_there(place, top);
    if (!directory) return links;
    static_cast<void>(
        walk(directory->get(), "", 0, [&](int at, const std::string& subpath, const sys::DirectoryEntry& entry) {
            links[subpath] = entry.type == sys::EntryType::link ? link_text(at, entry.name, top + "/" + subpath) : "";
            return true;
        }));
    return links;
}

std::string addon_path(const std::string& target) {
    auto path = target.starts_with("/usr/lib/") ? target.substr(4) : target;
    const auto parts = base::split(path, '/');  // "", "lib", "modules", RELEASE, "extra", ...
    const bool is_addon = parts.size() > 5 && parts[0].empty() && parts[1] == "lib" && parts[2] == "modules" &&
                          (parts[4] == "extra" || parts[4] == "updates") &&
                          std::find(parts.begin(), parts.end(), "..") == parts.end();
    return is_addon ? path : "";
}

std::string initramfs_of(const kubeadm::Place& place, const std::string& release) {
    for (const auto& path : {fmt::format("/boot/initramfs-{}.img", release), "/boot/initrd.img-" + release})
        if (place.exists(path)) return path;
    return "";
}

void change_links(const kubeadm::Place& place, const std::string& release, const std::vector<LinkChange>& changes) {
    const auto own = fmt::format("{}/{}", k_modules, release);
    const auto kernel = place.open(own, O_RDONLY | O_DIRECTORY);
    for (const auto& change : changes) {
        const auto below = "weak-updates/" + change.subpath;
        const auto shown = own + "/" + below;
        const auto directory = directory_of(kernel.get(), below, !change.after.empty(), shown);
        if (!directory) continue;
        change_link(directory->get(), sys::name_of(change.subpath), change, shown);
        if (change.after.empty()) prune(kernel.get(), below, shown);
    }
}

}  // namespace kmm::tool_worker
