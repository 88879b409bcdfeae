// SPDX-License-Identifier: Apache-2.0
// The part of the cache that spares reading layers: lists of extracted files, and the files under their digests.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "registry/layer/source.hpp"
#include "registry/pull/cache.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"

namespace kmm::registry {

namespace {

/// Copies the first `size` bytes of one file to the start of an empty one, inside the file system where it can do that.
/// A copy and no link: whoever changes the extracted file must not change the cache.
void copy_file(int from, int to, std::uint64_t size) {
    std::uint64_t done = 0;
    while (done < size) {
        const ssize_t got = ::copy_file_range(from, nullptr, to, nullptr, size - done, 0);
        if (got <= 0) {
            break;  // other file systems, or a kernel that cannot: by hand, where a full disk shows as well
        }
        done += static_cast<std::uint64_t>(got);
    }
    if (done == size) {
        return;
    }
    FileTarget target(to);
    target.restart();
    FileSource source(from, size);
    for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
        target.put(piece);
    }
}

}  // namespace

std::string Cache::list_path(const std::string& name) const { return directory_ + "/extractions/" + name; }

std::optional<KeptList> Cache::extraction(const ExtractionKey& key, std::vector<std::string>& warnings) {
    const std::string path = list_path(key.name());
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) {
        return std::nullopt;
    }
    sys::Fd fd = open_file(path);
    ReadExtraction read = fd ? registry::read_extraction(fd.get()) : ReadExtraction{};
    if (read.state == ListState::former) {
        return std::nullopt;  // what is extracted takes its place
    }
    if (read.state != ListState::sound || read.head.key.text != key.text) {
        forget(key, warnings);
        return std::nullopt;
    }
    static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr,
                                  AT_SYMLINK_NOFOLLOW));  // which list was used last; without it another one goes first
    return KeptList{std::move(fd), std::move(read.head)};
}

/// Reads the list in the file `name`, which the name of its key must be. `take` may be empty.
ListState Cache::read_list(const std::string& name, const TakeEntry& take) const {
    const sys::Fd fd = open_file(list_path(name));
    const ReadExtraction read = fd ? read_extraction(fd.get(), take) : ReadExtraction{};
    return read.state == ListState::sound && read.head.key.name() != name ? ListState::damaged : read.state;
}

void Cache::forget(const ExtractionKey& key, std::vector<std::string>& warnings) {
    warnings.push_back(damage_text("the list of files of " + key.manifest.to_string(), remove_list(key.name())));
}

bool Cache::remove_list(const std::string& name) noexcept { return remove_entry(list_path(name)); }

bool Cache::has_space(std::uint64_t bytes) const {
    const auto free_bytes = sys::free_bytes(lock_.get());  // where it does not tell, writing will
    return !free_bytes || *free_bytes >= bytes + bytes / 10;
}

void Cache::take_in(int fd, const image::Digest& digest, std::uint64_t size) {
    struct stat facts {};
    if (::lstat(path_of(digest).c_str(), &facts) == 0) {
        if (S_ISREG(facts.st_mode) && static_cast<std::uint64_t>(facts.st_size) == size) {
            return;
        }
        remove(digest);
    }
    const sys::Fd file = new_file();
    copy_file(fd, file.get(), size);
    publish(file, digest);
}

void Cache::keep_extraction(const FinishedExtraction& finished, const Staging& staging) {
    finished.each([&](const ExtractionEntry& entry, ContentId content) {
        if (entry.kind == EntryKind::file) {
            take_in(staging.open_content(content).get(), entry.digest, entry.size);
        }
    });
    make_room(list_path(finished.head().key.name()));
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, list_path(finished.head().key.name()), [&](const sys::PutBytes& put) {
        const auto entries = [&](const TakeEntry& take) {
            finished.each([&](const ExtractionEntry& entry, ContentId) { take(entry); });
        };
        write_extraction(finished.head(), entries, put);
    });
}

std::vector<KeptExtraction> Cache::extractions() const {
    std::vector<KeptExtraction> result;
    for (const sys::DirectoryEntry& entry : sys::list_directory(directory_ + "/extractions")) {
        struct stat facts {};
        if (entry.name.starts_with('.') || ::lstat(list_path(entry.name).c_str(), &facts) != 0) {
            continue;
        }
        KeptExtraction kept{entry.name,
                            static_cast<std::uint64_t>(facts.st_size),
                            {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec},
                            std::nullopt,
                            false};
        const sys::Fd fd = entry.type == sys::EntryType::file ? open_file(list_path(entry.name)) : sys::Fd();
        if (const auto head = fd ? read_extraction_head(fd.get()) : std::nullopt;
            head && head->key.name() == entry.name) {
            kept.manifest = head->key.manifest;
            kept.ours = head->key.is_ours();
        }
        result.push_back(std::move(kept));
    }
    std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
    return result;
}

std::uint64_t Cache::image_bytes() const {
    std::set<image::Digest> counted;
    std::uint64_t total = 0;
    for (const CachedImage& image : records()) {
        for (const CachedImage::Part& part : image.parts) {
            total += counted.insert(part.digest).second ? part.size : 0;
        }
    }
    return total;
}

void Cache::count_extracted(std::vector<CachedImage>& images) const {
    const std::vector<KeptExtraction> lists = extractions();
    for (CachedImage& image : images) {
        DigestValues sizes;
        std::uint64_t parts = 0;
        for (const CachedImage::Part& part : image.parts) {
            sizes.add(part.digest, part.size);
            parts += part.size;
        }
        for (const KeptExtraction& list : lists) {
            if (!image.needs(list) || read_list(list.name, {}) != ListState::sound) {
                continue;
            }
            image.extracted += list.size;
            static_cast<void>(read_list(list.name, [&](const ExtractionEntry& entry) {
                if (entry.kind == EntryKind::file) {
                    sizes.add(entry.digest, entry.size);
                }
            }));
        }
        sizes.settle();
        image.extracted += sizes.sum() - parts;
    }
}

}  // namespace kmm::registry
