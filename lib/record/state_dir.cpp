// SPDX-License-Identifier: Apache-2.0
// Writing and reading of the record. Every path to a durable state goes: temporary file, fsync, rename, fsync of the
// directory; an append goes: write, fsync. Nothing is ever cut or overwritten in place.
#include "record/state_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <mutex>

#include "base/text.hpp"
#include "digest/digest.hpp"
#include "record/journal.hpp"
#include "record/safe_file.hpp"
#include "record/snapshot.hpp"
#include "record/space.hpp"
#include "sys/directory.hpp"
#include "sys/durable_names.hpp"
#include "sys/fd.hpp"

namespace kmm::record {
namespace {

constexpr std::uint64_t k_reserve = 64U << 10U;
constexpr std::size_t k_backups_max = 5;

std::string journal_path(const std::string& dir) { return dir + "/journal.ndjson"; }
std::string snapshot_path(const std::string& dir) { return dir + "/upgrade.json"; }
std::string backup_dir(const std::string& dir) { return dir + "/backup"; }
std::string history_dir(const std::string& dir) { return dir + "/history"; }

/// What tells two versions of a file apart without reading it.
struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    timespec modified{};

    friend bool operator==(const Stamp& a, const Stamp& b) {
        return a.device == b.device && a.inode == b.inode && a.size == b.size &&
               a.modified.tv_sec == b.modified.tv_sec && a.modified.tv_nsec == b.modified.tv_nsec;
    }
};

Stamp stamp_of(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
        return {};
    }
    return Stamp{info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

Error state_changed(const std::string& path) {
    return Error(Exit::locked, "state-changed",
                 "the upgrade record was changed by someone else while this run was using it")
        .at(Position{path, 0, 0})
        .hint("nothing was written; look at kmm-upgrade show, then kmm-upgrade resume");
}

/// N of "N.json" or "N-anything.ndjson"; 0 when the name does not begin with a number.
std::uint64_t leading_number(std::string_view name) {
    std::uint64_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    return number;
}

std::string name_part(const std::string& hint) {
    constexpr std::size_t k_name_max = 80;
    std::string name;
    for (const char byte : hint.substr(0, k_name_max)) {
        const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
        name += plain ? byte : '-';
    }
    return name.empty() ? "run" : name;
}

/// SHA-256 of a line that ends in a newline, without it.
std::string hash_of_line(std::string_view line) {
    return digest::sha256_hex(line.substr(0, line.size() - 1));
}

std::vector<sys::DirectoryEntry> entries_or_none(const std::string& directory) {
    try {
        return sys::list_directory(directory);
    } catch (const Error& error) {
        if (error.exit() == Exit::not_found) {
            return {};
        }
        throw;
    }
}

/// Makes the directories below `dir` that are not there.
void make_parts(const std::string& dir) {
    sys::make_directories(backup_dir(dir), 0700);
    sys::make_directories(history_dir(dir), 0700);
}

constexpr const char* k_place_hint = "name a directory that this user may make and write with --state-dir DIR";

/// All of backup/, newest first.
std::vector<std::string> all_backups(const std::string& dir) {
    std::vector<std::uint64_t> serials;
    for (const sys::DirectoryEntry& entry : entries_or_none(backup_dir(dir))) {
        if (leading_number(entry.name) > 0) {
            serials.push_back(leading_number(entry.name));
        }
    }
    std::sort(serials.rbegin(), serials.rend());
    std::vector<std::string> paths;
    paths.reserve(serials.size());
    for (const std::uint64_t serial : serials) {
        paths.push_back(fmt::format("{}/{}.json", backup_dir(dir), serial));
    }
    return paths;
}

/// True if both files are there and hold the same bytes.
bool is_same_text(const std::string& one, const std::string& other) {
    const Stamp first = stamp_of(one);
    return first.inode != 0 && first.size == stamp_of(other).size && read_own_file(one) == read_own_file(other);
}

/// Where the run that is recorded goes when it ends.
struct HistoryPlace {
    std::string path;
    bool is_there = false;  ///< its journal is there already: `succeed` was cut off
};

HistoryPlace history_place(const std::string& dir, const std::string& id_hint) {
    std::uint64_t number = 0;
    std::string newest;
    for (const sys::DirectoryEntry& entry : entries_or_none(history_dir(dir))) {
        if (leading_number(entry.name) > number) {
            number = leading_number(entry.name);
            newest = history_dir(dir) + "/" + entry.name;
        }
    }
    if (!newest.empty() && is_same_text(newest, journal_path(dir))) {
        return {newest, true};
    }
    return {fmt::format("{}/{:05}-{}.ndjson", history_dir(dir), number + 1, name_part(id_hint)), false};
}

}  // namespace

/// What this object knows of the journal's end.
struct StateDir::Tail {
    std::mutex mutex;
    bool known = false;        ///< a load or a write told us what is there
    std::string good;          ///< all verified lines
    std::string on_disk;       ///< what the file held when it was loaded; only until it is adopted
    std::string pending;       ///< a line whose append failed, of which any part may be in the file
    std::uint64_t seq = 0;
    std::string last_hash;
    std::optional<std::string> key;  ///< of the seals, if it was there
    Seal seal = Seal::none;
    std::string vouched;  ///< `last_hash` of the record that the user took for his own
    sys::Fd fd;  ///< open at the end of a journal that this object itself wrote; else it must be rewritten first
    Stamp stamp;
    std::uint64_t reserved = 0;

    [[nodiscard]] bool is_own() const { return seal == Seal::own || (!vouched.empty() && vouched == last_hash); }

    /// There is no run.
    void forget() {
        known = true;
        seq = 0;
        good.clear();
        on_disk.clear();
        pending.clear();
        last_hash.clear();
        fd.reset();
        reserved = 0;
    }

    void take(ParsedJournal&& parsed, std::string&& text) {
        known = true;
        if (fd && !parsed.partial_tail && parsed.good == good) {
            return;  // our own work, read back
        }
        seq = parsed.entries.size();
        good = std::move(parsed.good);
        last_hash = std::move(parsed.last_hash);
        seal = parsed.seal;
        on_disk = std::move(text);
        pending.clear();
        fd.reset();
    }

    void expect_unchanged(const std::string& path) const {
        if (fd) {
            if (!(stamp_of(path) == stamp)) {
                throw state_changed(path);
            }
            return;
        }
        const std::optional<std::string> now = read_own_file(path);
        const std::string_view text = now ? std::string_view(*now) : std::string_view();
        const bool as_loaded = now && text == on_disk;
        const bool as_left = now && !pending.empty() && text.substr(0, good.size()) == good &&
                             std::string_view(pending).substr(0, text.size() - good.size()) == text.substr(good.size());
        if (!as_loaded && !as_left) {
            throw state_changed(path);
        }
    }

    /// Replaces the journal by `text` and keeps it open for appending.
    void replace(sys::FileOps& ops, const std::string& dir, const std::string& text) {
        const std::string path = journal_path(dir);
        const std::string temp = fmt::format("{}/.journal.ndjson.{}.kmm-tmp", dir, ::getpid());
        ::unlink(temp.c_str());
        fd.reset();
        sys::DurableNames names(ops);
        with_context([&] { return "writing " + path; }, [&] {
            sys::Fd file(ops.create(temp, 0600));
            try {
                reserved = text.size() + k_reserve;
                sys::reserve_space(file.get(), reserved);
                ops.write(file.get(), text);
                names.place(file.get(), temp, path);
            } catch (...) {
                ::unlink(temp.c_str());
                throw;
            }
            names.finish();
            fd = std::move(file);
        });
        good = text;
        stamp = stamp_of(path);
    }

    /// A run of one line takes the place of what was there, if anything was.
    void begin(sys::FileOps& ops, const std::string& dir, const std::string& line) {
        replace(ops, dir, line);
        known = true;
        seq = 1;
        last_hash = hash_of_line(line);
        seal = key ? Seal::own : Seal::none;
        pending.clear();
        on_disk.clear();
    }

    void append(sys::FileOps& ops, const std::string& dir, const std::string& line) {
        const std::string path = journal_path(dir);
        with_context([&] { return "writing " + path; }, [&] {
            pending = line;
            try {
                if (good.size() + line.size() + k_reserve / 2 > reserved) {
                    reserved = good.size() + line.size() + k_reserve;
                    sys::reserve_space(fd.get(), reserved);
                }
                ops.write(fd.get(), line);
                ops.sync(fd.get());
            } catch (...) {
                fd.reset();  // what a failed write or fsync left behind is not trusted; the next append rewrites all
                on_disk.clear();
                throw;
            }
            good += line;
            seq += 1;
            const bool was_own = is_own();
            seal = key && was_own ? Seal::own : Seal::none;
            last_hash = hash_of_line(line);
            if (was_own) vouched = last_hash;
            pending.clear();
            stamp = stamp_of(path);
        });
    }
};

StateDir::StateDir(std::string path, sys::FileOps& ops, const sys::Clock& clock, std::optional<SealKey> key)
    : path_(std::move(path)), ops_(ops), clock_(clock), key_(std::move(key)), tail_(std::make_shared<Tail>()) {}

void StateDir::open(bool create) {
    with_context([&] { return "state directory " + path_; }, [&] {
        if (create) {
            const bool is_new = !stamp_of(path_).inode;
            if (is_new) {
                with_place_explained(k_place_hint, [&] { sys::make_directories(path_, 0700); });
            }
            check_own_directory(path_);  // nothing is put into a directory that others may change
            with_place_explained(k_place_hint, [&] { make_parts(path_); });
            if (is_new) {
                ops_.sync_dir(sys::parent_of(path_));
            }
        }
        check_own_directory(path_);
    });
}

Loaded StateDir::load() const {
    const std::scoped_lock guard(tail_->mutex);
    std::optional<std::string> text;
    std::optional<std::string> snapshot_text;
    std::optional<ParsedSnapshot> snapshot;
    ParsedJournal parsed;
    const auto key = key_ ? key_->read() : std::nullopt;
    std::string damage;
    // The snapshot is read first, so a growing journal can only be ahead of it. When a run begins or is archived
    // between the two reads they do not belong together; then they are read again.
    constexpr int k_attempts = 3;
    for (int attempt = 0; attempt < k_attempts; ++attempt) {
        damage.clear();
        snapshot_text = read_own_file(snapshot_path(path_));
        text = read_own_file(journal_path(path_));
        snapshot = snapshot_text ? parse_snapshot(*snapshot_text, snapshot_path(path_)) : std::nullopt;
        parsed = text ? parse_journal(*text, journal_path(path_), key) : ParsedJournal{};
        if (!text && snapshot_text) {
            damage = "the journal is missing although upgrade.json names a run";
        } else if (snapshot && snapshot->serial > parsed.entries.size()) {
            damage = fmt::format("the journal ends at entry {}, but upgrade.json names entry {}",
                                 parsed.entries.size(), snapshot->serial);
        } else {
            break;
        }
    }
    if (!damage.empty()) {
        throw damaged(journal_path(path_), 0, damage);
    }
    Loaded loaded;
    if (!text) {
        tail_->forget();
        return loaded;
    }
    loaded.entries = parsed.entries;
    loaded.partial_tail = parsed.partial_tail;
    loaded.seal = parsed.seal;
    if (key) tail_->key = key;
    tail_->take(std::move(parsed), std::move(*text));
    std::vector<std::string> warnings;
    if (loaded.partial_tail) {
        warnings.emplace_back("the last line of the journal is incomplete (an interrupted write): it is left out");
    }
    if (snapshot_text && !snapshot) warnings.emplace_back("upgrade.json was changed or cut: the journal is used");
    // With a writer at work all of these are ordinary moments between two of its steps.
    if (!warnings.empty() && !holder()) {
        loaded.warnings = std::move(warnings);
    }
    return loaded;
}

Seal StateDir::seal() const {
    const std::scoped_lock guard(tail_->mutex);
    return tail_->is_own() ? Seal::own : tail_->seal;
}

void StateDir::vouch() {
    const std::scoped_lock guard(tail_->mutex);
    if (key_) tail_->key = key_->read_or_make();
    tail_->vouched = tail_->last_hash;
}

std::string StateDir::first_line(const value::Node& header) {
    tail_->key = key_ ? key_->read_or_make() : std::nullopt;
    return encode_line(1, k_no_previous, base::format_rfc3339(clock_.now_unix()), header, tail_->key);
}

void StateDir::begin(const value::Node& header) {
    const std::scoped_lock guard(tail_->mutex);
    if (stamp_of(journal_path(path_)).inode || stamp_of(snapshot_path(path_)).inode) {
        throw bug("a run was begun in a state directory that already has one");
    }
    tail_->begin(ops_, path_, first_line(header));
}

void StateDir::succeed(const std::string& id_hint, const value::Node& header) {
    static_cast<void>(load());
    const std::scoped_lock guard(tail_->mutex);
    if (tail_->seq == 0) {
        throw bug("there is no run to follow");
    }
    const HistoryPlace place = history_place(path_, id_hint);
    if (!place.is_there) {
        sys::write_file_atomically(ops_, place.path, tail_->good);
    }
    put_snapshot_away();
    tail_->begin(ops_, path_, first_line(header));
}

void StateDir::append(const value::Node& payload) {
    const bool known = [&] {
        const std::scoped_lock guard(tail_->mutex);
        return tail_->known;
    }();
    if (!known) {
        static_cast<void>(load());
    }
    const std::scoped_lock guard(tail_->mutex);
    if (tail_->seq == 0) {
        throw bug("an entry was appended to a state directory without a run");
    }
    tail_->expect_unchanged(journal_path(path_));
    if (!tail_->fd) {
        // Written by another process, or after a failed write: what the disk really holds is not known (a failed fsync
        // leaves pages that read well and are lost), so the verified lines are written anew, with space reserved.
        tail_->replace(ops_, path_, std::string(tail_->good));
    }
    const std::string line =
        encode_line(tail_->seq + 1, tail_->last_hash, base::format_rfc3339(clock_.now_unix()), payload,
                    tail_->is_own() ? tail_->key : std::nullopt);
    tail_->append(ops_, path_, line);
}

void StateDir::write_snapshot(const value::Node& payload) {
    const std::scoped_lock guard(tail_->mutex);
    if (!tail_->known || tail_->seq == 0) {
        throw bug("a snapshot was written without a run");
    }
    const std::string path = snapshot_path(path_);
    std::optional<ParsedSnapshot> previous;
    if (const std::optional<std::string> text = read_own_file(path)) {
        previous = parse_snapshot(*text, path);
    }
    if (previous && previous->serial != tail_->seq) {
        const std::string backup = fmt::format("{}/{}.json", backup_dir(path_), previous->serial);
        // A second name for the bytes that are about to be replaced. Where links are not possible there is no backup:
        // the journal is the truth anyway.
        if (::link(path.c_str(), backup.c_str()) == 0) {
            const std::vector<std::string> all = all_backups(path_);
            for (std::size_t i = k_backups_max; i < all.size(); ++i) {
                ::unlink(all[i].c_str());
            }
        }
    }
    sys::write_file_atomically(ops_, path,
                               encode_snapshot(tail_->seq, payload, previous ? &previous->document : nullptr));
}

void StateDir::archive(const std::string& id_hint) {
    static_cast<void>(load());
    const std::scoped_lock guard(tail_->mutex);
    if (tail_->seq == 0) {
        throw bug("there is no run to archive");
    }
    make_parts(path_);  // old runs may have been moved away, directory and all
    const HistoryPlace place = history_place(path_, id_hint);
    put_snapshot_away();
    sys::DurableNames names(ops_);
    names.move(journal_path(path_), place.path);
    names.finish();
    tail_->forget();
}

void StateDir::put_snapshot_away() {
    if (!stamp_of(snapshot_path(path_)).inode) {
        return;
    }
    // Away before the journal, and durably so: a snapshot without a journal would look like a lost journal.
    sys::DurableNames names(ops_);
    names.move(snapshot_path(path_), fmt::format("{}/{}.json", backup_dir(path_), tail_->seq));
    names.finish();
}

std::vector<HistoryItem> StateDir::history() const {
    constexpr std::string_view k_ending = ".ndjson";
    std::vector<HistoryItem> items;
    for (const sys::DirectoryEntry& entry : entries_or_none(history_dir(path_))) {
        const std::string& name = entry.name;
        if (entry.type == sys::EntryType::file && name.size() > k_ending.size() && name.front() != '.' &&
            name.ends_with(k_ending)) {
            items.push_back({name.substr(0, name.size() - k_ending.size()), history_dir(path_) + "/" + name});
        }
    }
    std::stable_sort(items.begin(), items.end(), [](const HistoryItem& a, const HistoryItem& b) {
        return leading_number(a.id) > leading_number(b.id);
    });
    if (!items.empty() && is_same_text(items.front().path, journal_path(path_))) {
        items.erase(items.begin());  // of a `succeed` that was cut off: that run is still the one that is recorded
    }
    return items;
}

Loaded StateDir::load_history(const HistoryItem& item) const {
    const std::optional<std::string> text = read_own_file(item.path);
    if (!text) {
        throw Error(Exit::not_found, "history-not-found", "there is no run " + item.id + " in the history");
    }
    ParsedJournal parsed = parse_journal(*text, item.path);
    Loaded loaded;
    loaded.entries = std::move(parsed.entries);
    loaded.partial_tail = parsed.partial_tail;
    if (loaded.partial_tail) {
        loaded.warnings.push_back(
            item.id + ": the last line of the journal is incomplete (an interrupted write): it is left out");
    }
    return loaded;
}

}  // namespace kmm::record
