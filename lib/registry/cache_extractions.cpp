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
#include "registry/cache.hpp"
#include "registry/source.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"

namespace kmm::registry {

namespace {

/// Copies the first `size` bytes of one file to the start of an empty one, inside the file system where it can do that. A copy and no link: whoever
/// changes the extracted file must not change the cache.
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

std::optional<ExtractionRecord> read_extraction(const std::string& path, const std::string& name) {
    try {
        auto record = parse_extraction(sys::read_file(path, k_extraction_text_max));
        return record && record->key.name() == name ? std::move(record) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

std::string Cache::list_path(const std::string& name) const { return directory_ + "/extractions/" + name; }

std::optional<ExtractionRecord> Cache::extraction(const ExtractionKey& key, std::vector<std::string>& warnings) {
    const std::string path = list_path(key.name());
    if (::access(path.c_str(), F_OK) != 0) {
        return std::nullopt;
    }
    auto record = read_extraction(path, key.name());
    if (!record || record->key.text != key.text) {
        forget(key, warnings);
        return std::nullopt;
    }
    static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW));  // which list was used last; without it another one goes first
    return record;
}

void Cache::forget(const ExtractionKey& key, std::vector<std::string>& warnings) {
    warnings.push_back("cache-damaged: the list of files of " + key.manifest.to_string() + " was removed");
    remove_list(key.name());
}

void Cache::remove_list(const std::string& name) noexcept { ::unlink(list_path(name).c_str()); }

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

void Cache::keep_extraction(const StagedRecord& staged, const Staging& staging) {
    auto content = staged.contents.begin();
    for (const ExtractionRecord::Entry& entry : staged.record.entries) {
        if (entry.kind == EntryKind::file) {
            take_in(staging.open_content(*content++).get(), entry.digest, entry.size);
        }
    }
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, list_path(staged.record.key.name()), extraction_text(staged.record));
}

std::vector<KeptExtraction> Cache::extractions() const {
    std::vector<KeptExtraction> result;
    for (const sys::DirectoryEntry& entry : sys::list_directory(directory_ + "/extractions")) {
        struct stat facts {};
        if (entry.name.starts_with('.') || ::lstat(list_path(entry.name).c_str(), &facts) != 0) {
            continue;
        }
        KeptExtraction kept{entry.name, static_cast<std::uint64_t>(facts.st_size), {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec}, std::nullopt, {}};
        const auto record = entry.type == sys::EntryType::file ? read_extraction(list_path(entry.name), entry.name) : std::nullopt;
        if (record) {
            kept.manifest = record->key.manifest;
            kept.ours = record->key.is_ours();
            for (const ExtractionRecord::Entry& file : record->entries) {
                if (file.kind == EntryKind::file) {
                    kept.files.push_back({file.digest, file.size});
                }
            }
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
        std::set<image::Digest> counted;
        for (const CachedImage::Part& part : image.parts) {
            counted.insert(part.digest);
        }
        for (const KeptExtraction& list : lists) {
            if (!image.needs(list)) {
                continue;
            }
            image.extracted += list.size;
            for (const CachedImage::Part& file : list.files) {
                image.extracted += counted.insert(file.digest).second ? file.size : 0;
            }
        }
    }
}

}  // namespace kmm::registry
