// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/source.hpp"
#include "sys/directory.hpp"
#include "sys/file_lock.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_record_max = 1U << 20U;

value::Node record_of(const CachedImage& image) {
    value::Node parts = value::Node::sequence();
    for (const CachedImage::Part& part : image.parts) {
        parts.push_back(value::Node::mapping({{"digest", part.digest.to_string()}, {"size", part.size}}));
    }
    value::Node record = value::Node::mapping({{"reference", image.reference},
                                               {"os", image.platform.os},
                                               {"architecture", image.platform.architecture},
                                               {"variant", image.platform.variant},
                                               {"digest", image.digest.to_string()},
                                               {"lastUsed", image.last_used}});
    record.set("parts", std::move(parts));
    if (image.learnt) {
        record.set("learnt", to_node(*image.learnt));
    }
    return record;
}

std::optional<CachedImage> image_of(const value::Node& record) {
    CachedImage image;
    image.reference = record.get_string({"reference"});
    image.platform = {record.get_string({"os"}), record.get_string({"architecture"}), record.get_string({"variant"})};
    const auto digest = image::parse_digest(record.get_string({"digest"}));
    const value::Node* used = record.find("lastUsed");
    const value::Node* parts = record.find("parts");
    if (!digest || used == nullptr || !used->as_int() || parts == nullptr) {
        return std::nullopt;
    }
    image.digest = *digest;
    image.learnt = learnt_of(record.find("learnt"));
    image.last_used = *used->as_int();
    for (const value::Node& item : parts->items()) {
        const auto part = image::parse_digest(item.get_string({"digest"}));
        const value::Node* size = item.find("size");
        if (!part || size == nullptr || !size->as_uint()) {
            return std::nullopt;
        }
        image.parts.push_back({*part, *size->as_uint()});
    }
    return image;
}

/// The record in a file; nullopt for anything that is none: a cache may always be forgotten.
std::optional<CachedImage> read_record(const std::string& path) {
    try {
        Diagnostics faults;
        const sys::Fd fd = Cache::open_file(path);
        if (!fd) {
            return std::nullopt;
        }
        const auto documents = value::read_json(sys::read_fd(fd.get(), path, k_record_max), path, faults);
        return has_errors(faults) || documents.size() != 1 ? std::nullopt : image_of(documents.front().root);
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::string record_name(const std::string& reference, const image::Platform& platform) {
    return digest_of(reference + "\n" + platform.to_string()).hex;
}

/// Refuses a directory with files of others, such as an image layout: a cache removes what it does not need.
void require_own(const std::string& directory) {
    const std::vector<sys::DirectoryEntry> entries = sys::list_directory(directory);
    const auto is_ours = [](const sys::DirectoryEntry& entry) { return entry.name == "lock"; };
    const auto is_ignored = [](const sys::DirectoryEntry& entry) { return entry.name == "lost+found"; };
    if (std::none_of(entries.begin(), entries.end(), is_ours) &&
        !std::all_of(entries.begin(), entries.end(), is_ignored)) {
        throw Error(Exit::not_found, "no-cache",
                    fmt::format("expected a cache or an empty directory at {}, found something else", directory))
            .hint(fmt::format("nothing in {} was changed; --cache-dir DIR names another one", directory));
    }
}

void require_trusted(const std::string& directory) {
    if (const auto fault = sys::trust_fault(directory)) {
        throw Error(Exit::no_permission, "cache-unsafe",
                    "expected a cache that nobody else may write to, found that " + base::escape(*fault))
            .hint("another --cache-dir");
    }
}

/// Makes a directory of the cache. A link in its place is none: what the cache writes and removes would be elsewhere.
void make_part(const std::string& path) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) {
        sys::make_directories(path, 0700);
    }
    if (::lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        throw Error(Exit::io, "io", fmt::format("expected a directory at {}, found something else", path))
            .hint("remove it: a cache may always be forgotten");
    }
}

/// The digest of an open file's bytes.
image::Digest digest_of_file(int fd, image::DigestAlgorithm algorithm) {
    Hasher hasher(algorithm);
    FileSource source(fd);
    for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
        hasher.update(piece);
    }
    return hasher.finish();
}

}  // namespace

std::uint64_t CachedImage::size() const {
    std::uint64_t total = extracted;
    for (const Part& part : parts) {
        total += part.size;
    }
    return total;
}

std::string damage_text(const std::string& what, bool removed) {
    return fmt::format("cache-damaged: {} {}", what, removed ? "was removed" : "is of no use, and cannot be removed");
}

bool CachedImage::needs(const KeptExtraction& list) const {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.digest == list.manifest; });
}

Cache::Cache(std::string directory) : directory_(std::move(directory)) {
    require_trusted(directory_);
    sys::make_directories(directory_, 0700);
    require_trusted(directory_);  // somebody else may have been first to make one on the way
    struct stat facts {};
    if (::stat(directory_.c_str(), &facts) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cache " + directory_);
    }
    if ((facts.st_uid != ::geteuid() && facts.st_uid != 0) || (facts.st_mode & 022U) != 0) {
        throw Error(Exit::no_permission, "cache-unsafe",
                    fmt::format("expected a cache that nobody else may write to, found mode {:04o} of user {} at {}",
                                static_cast<unsigned>(facts.st_mode & 07777U), facts.st_uid, directory_))
            .hint("chmod 700, or another --cache-dir");
    }
    require_own(directory_);
    lock_.reset(::open((directory_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_ && errno == EROFS) {
        lock_.reset(
            ::open((directory_ + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));  // what is there can be read
        if (!lock_) {
            make_part(directory_ + "/blobs");  // says that nothing can be made there
        }
    }
    share_lock();
    for (const char* part : {"/blobs", "/blobs/sha256", "/blobs/sha512", "/images", "/extractions"}) {
        make_part(directory_ + part);
    }
}

void Cache::share_lock() {
    const std::string path = directory_ + "/lock";
    if (lock_ && sys::wait_for_lock(lock_.get(), LOCK_SH, path)) return;
    const int saved = errno;
    throw from_errno(saved, "lock of the cache, " + path);
}

std::string Cache::path_of(const image::Digest& digest) const {
    return fmt::format("{}/blobs/{}/{}", directory_, image::to_string(digest.algorithm), digest.hex);
}

sys::Fd Cache::open_file(const std::string& path) {
    sys::Fd fd(::open(path.c_str(),
                      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));  // of a pipe an open would wait for a writer
    struct stat facts {};
    if (fd && (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode))) {
        fd.reset();
    }
    return fd;
}

bool Cache::remove_entry(const std::string& path) noexcept {
    try {
        sys::remove_tree(path);  // there may be a directory in a file's place
        return true;
    } catch (const Error&) {
        return false;
    }
}

sys::Fd Cache::open(const image::Digest& digest) const { return open_file(path_of(digest)); }

std::optional<std::string> Cache::read(const image::Digest& digest, std::uint64_t cap) {
    const sys::Fd fd = open(digest);
    struct stat facts {};
    if (!fd || ::fstat(fd.get(), &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) > cap) {
        return std::nullopt;
    }
    try {
        std::string bytes = sys::read_fd(fd.get(), path_of(digest), cap);
        if (digest_of(bytes, digest.algorithm) == digest) {
            return bytes;
        }
    } catch (const Error&) {
        // What cannot be read is as good as gone.
    }
    remove(digest);
    return std::nullopt;
}

sys::Fd Cache::new_file() const {
    sys::Fd fd(::open((directory_ + "/blobs").c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!fd) {
        const int saved = errno;
        throw from_errno(saved, "a new file in the cache " + directory_);
    }
    return fd;
}

void Cache::publish(const sys::Fd& file, const image::Digest& digest) {
    const std::string from = fmt::format("/proc/self/fd/{}", file.get());
    const std::string path = path_of(digest);
    for (bool again = false;; again = true) {
        if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
            return;
        }
        const int saved = errno;
        if (saved == EEXIST && open(digest)) {
            return;  // another pull was faster
        }
        if (saved != EEXIST || again) {
            throw from_errno(saved, "a new file in the cache " + directory_);
        }
        remove(digest);  // something that is no file
    }
}

void Cache::write(const image::Digest& digest, std::string_view bytes) {
    if (read(digest, bytes.size())) {
        return;
    }
    remove(digest);  // one that is longer
    const sys::Fd file = new_file();
    FileTarget(file.get()).put(bytes);
    publish(file, digest);
}

bool Cache::remove(const image::Digest& digest) noexcept { return remove_entry(path_of(digest)); }

bool Cache::remove_record(const std::string& name) noexcept { return remove_entry(directory_ + "/images/" + name); }

/// A file can take the place of any file, and of no directory.
void Cache::make_room(const std::string& path) noexcept {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
        remove_entry(path);
    }
}

std::optional<CachedImage> Cache::recall(const std::string& reference, const image::Platform& platform) const {
    auto image = read_record(directory_ + "/images/" + record_name(reference, platform));
    return image && image->reference == reference ? std::move(image) : std::nullopt;
}

void Cache::remember(const CachedImage& image) {
    const std::string path = directory_ + "/images/" + record_name(image.reference, image.platform);
    make_room(path);
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, path, value::to_json(record_of(image)) + "\n");
}

std::vector<CachedImage> Cache::images() const {
    std::vector<CachedImage> result = records();
    count_extracted(result);
    return result;
}

std::vector<CachedImage> Cache::records() const {
    std::vector<CachedImage> result;
    each_record([&](const std::string&, std::optional<CachedImage> image) {
        if (image) {
            result.push_back(std::move(*image));
        }
    });
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.last_used < b.last_used; });
    return result;
}

void Cache::each_record(const std::function<void(const std::string&, std::optional<CachedImage>)>& take) const {
    for (const sys::DirectoryEntry& entry : sys::list_directory(directory_ + "/images")) {
        if (!entry.name.starts_with('.')) {
            auto image = read_record(directory_ + "/images/" + entry.name);
            const bool found =
                image && record_name(image->reference, image->platform) == entry.name;  // nobody finds others
            take(entry.name, found ? std::move(image) : std::nullopt);
        }
    }
}

void Cache::each_blob(const std::function<void(const CachedImage::Part&)>& take) const {
    for (const auto algorithm : {image::DigestAlgorithm::sha256, image::DigestAlgorithm::sha512}) {
        const std::string name(image::to_string(algorithm));
        sys::each_entry(directory_ + "/blobs/" + name, [&](const sys::DirectoryEntry& entry) {
            const auto digest = image::parse_digest(name + ":" + entry.name);
            struct stat facts {};
            if (digest && ::lstat(path_of(*digest).c_str(), &facts) == 0) {
                take({*digest, static_cast<std::uint64_t>(facts.st_size)});
            }
        });
    }
}

bool Cache::is_sound(const image::Digest& digest) const {
    const sys::Fd fd = open(digest);
    try {
        return fd && digest_of_file(fd.get(), digest.algorithm) == digest;
    } catch (const Error&) {
        return false;  // it cannot be read
    }
}

CacheReport Cache::verify() const {
    CacheReport report;
    each_blob([&](const CachedImage::Part& blob) {
        ++report.blobs;
        report.bytes += blob.size;
        if (!is_sound(blob.digest)) {
            report.damaged.push_back(blob.digest.to_string());
        }
    });
    std::sort(report.damaged.begin(), report.damaged.end());
    for (const KeptExtraction& list : extractions()) {
        ++report.blobs;
        report.bytes += list.size;
        if (read_list(list.name, [](const ExtractionEntry&) {}) == ListState::damaged) {
            report.damaged_lists.push_back(list.name);
        }
    }
    each_record([&](const std::string& name, std::optional<CachedImage> image) {
        if (!image) {
            ++report.blobs;
            report.damaged_records.push_back(name);
            return;
        }
        const auto is_absent = [&](const CachedImage::Part& part) { return !open(part.digest); };
        const auto absent =
            static_cast<std::size_t>(std::count_if(image->parts.begin(), image->parts.end(), is_absent));
        if (absent != 0) {
            report.incomplete.push_back({image->reference, absent, image->parts.size()});
        }
    });
    return report;
}

/// For each digest the last that needs it, by its place in `lists` and, behind these, in `images`. Lists that turn out
/// to be damaged are dropped.
DigestValues Cache::last_needs(std::vector<KeptExtraction>& lists, const std::vector<CachedImage>& images,
                               const std::function<void(const KeptExtraction&)>& drop) const {
    while (true) {
        DigestValues needs;
        std::uint64_t place = 0;
        const auto damaged = std::find_if(lists.begin(), lists.end(), [&](const KeptExtraction& list) {
            const auto add_file = [&](const ExtractionEntry& entry) {
                if (entry.kind == EntryKind::file) {
                    needs.add(entry.digest, place);
                }
            };
            const bool is_sound = read_list(list.name, add_file) == ListState::sound;
            ++place;
            return !is_sound;
        });
        if (damaged != lists.end()) {
            drop(*damaged);
            lists.erase(damaged);
            continue;
        }
        for (const CachedImage& image : images) {
            for (const CachedImage::Part& part : image.parts) {
                needs.add(part.digest, place);
            }
            ++place;
        }
        needs.settle();
        return needs;
    }
}

std::optional<PruneReport> Cache::prune(std::uint64_t bytes_max, const std::string& last) {
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        share_lock();  // which the attempt has given up
        return std::nullopt;
    }
    PruneReport report;
    std::vector<CachedImage> kept = records();
    const auto is_last = [&](const CachedImage& image) { return image.reference == last; };
    std::stable_partition(kept.begin(), kept.end(), std::not_fn(is_last));
    std::vector<KeptExtraction> lists = extractions();
    std::stable_partition(lists.begin(), lists.end(), [&](const KeptExtraction& list) {
        return std::none_of(kept.begin(), kept.end(),
                            [&](const CachedImage& image) { return is_last(image) && image.needs(list); });
    });
    const auto take_away = [&](const std::string& path) {
        try {
            sys::remove_tree(path);
            return true;
        } catch (const Error& error) {
            report.failure = report.failure ? report.failure : error;
            return false;
        }
    };
    const auto drop = [&](const KeptExtraction& list) {
        report.bytes += take_away(list_path(list.name)) ? list.size : 0;
    };
    std::erase_if(lists, [&](const KeptExtraction& list) {
        const bool is_needed = list.ours && std::any_of(kept.begin(), kept.end(),
                                                        [&](const CachedImage& image) { return image.needs(list); });
        if (!is_needed) {
            drop(list);
        }
        return !is_needed;
    });
    const DigestValues needs = last_needs(lists, kept, drop);
    // What may go, in the order in which it goes, and the bytes that go with each: lists, then images.
    std::vector<std::uint64_t> freed(lists.size() + kept.size());
    std::uint64_t total = 0;
    const auto count = [&](std::size_t place, std::uint64_t size) {
        freed.at(place) += size;
        total += size;
    };
    for (std::size_t i = 0; i < lists.size(); ++i) {
        count(i, lists[i].size);
    }
    each_blob([&](const CachedImage::Part& blob) {
        if (const auto place = needs.find(blob.digest)) {
            count(*place, blob.size);
        }
    });
    std::size_t gone = 0;
    for (; gone < freed.size() && total > bytes_max; ++gone) {
        total -= freed[gone];
        if (gone < lists.size()) {
            drop(lists[gone]);
            continue;
        }
        const CachedImage& image = kept[gone - lists.size()];
        if (take_away(directory_ + "/images/" + record_name(image.reference, image.platform))) {
            report.images.push_back(image.reference);
        }
    }
    each_blob([&](const CachedImage::Part& blob) {
        const auto place = needs.find(blob.digest);
        if ((!place || *place < gone) && take_away(path_of(blob.digest))) {
            ++report.blobs;
            report.bytes += blob.size;
        }
    });
    static_cast<void>(sys::remove_temp_files(directory_ + "/images"));
    static_cast<void>(sys::remove_temp_files(directory_ + "/extractions"));
    share_lock();
    return report;
}

}  // namespace kmm::registry
