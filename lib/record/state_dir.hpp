// SPDX-License-Identifier: Apache-2.0
// The state directory of kmm-upgrade: an append-only journal that is the truth, a snapshot that is a cache of it, a
// lock that dies with its owner, and the history of ended runs. What the payloads mean is the business of lib/upgrade.
//
// Layout of DIR (0700, owned by the effective user):
//   lock                never renamed, never deleted; OFD-locked by the one writer; its text is the owner record
//   journal.ndjson      one JSON object a line: {"seq","prev","time","payload","mac","crc"}; the first has the header
//   upgrade.json        {"formatVersion","serial","payload","checksum"}: the run at its last stop; a journal that ends
//   before it is damaged backup/N.json       the last five good snapshots history/SERIAL-...  journals of ended runs
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "record/seal.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "value/node.hpp"

namespace kmm::record {

/// The format this program writes, and the oldest program that can read it.
inline constexpr std::int64_t k_format_version = 1;

/// Who holds, or last held, the lock.
struct Owner {
    std::string host, machine_id, boot_id, tty, command, operation, since;
    std::int64_t pid = 0, uid = 0;
    std::string user;           ///< as sys::caller_name; "" in records of earlier versions
    std::string pid_namespace;  ///< in which `pid` counts, as sys::pid_namespace; "" if it is not known
    std::uint64_t start_time = 0;  ///< field 22 of /proc/PID/stat, against reuse of the pid
    bool is_gone = false;  ///< not of the file: it has ended, a child of it holds the lock
};

/// One line of the journal.
struct Entry {
    std::uint64_t seq = 0;
    std::string time;      ///< RFC 3339 UTC, information only
    value::Node payload;
};

/// What is on disk. `entries` is empty when there is no run.
struct Loaded {
    std::vector<Entry> entries;
    std::vector<std::string> warnings;  ///< e.g. a partial last line that was cut off, a snapshot that was rebuilt
    bool partial_tail = false;          ///< the journal ends in an incomplete line (an interrupted append)
    Seal seal = Seal::none;             ///< whose the entries are
};

/// A run that ended and was deleted: its journal, newest first in lists.
struct HistoryItem {
    std::string id;    ///< file name without ending
    std::string path;
};

/// Exclusive right to write; given back on destruction or when the process dies, with those that have `descriptor`.
class Lock {
public:
    Lock(Lock&&) noexcept;
    Lock& operator=(Lock&&) noexcept;
    ~Lock();
    /// For a child that is to hold the lock too: until the last process that has this descriptor has ended, or
    /// until this object is destroyed.
    [[nodiscard]] int descriptor() const noexcept { return fd_; }

private:
    friend class StateDir;
    friend Lock lock_cluster_directory(const std::string& directory, const Owner& owner);
    explicit Lock(int fd) noexcept : fd_(fd) {}
    /// Locks `opened`, the file `path`, and writes the owner into it. Errors: as StateDir::lock, without hints.
    [[nodiscard]] static Lock take(int opened, const std::string& path, const std::string& place, const Owner& owner);
    int fd_ = -1;
    std::string remove_;  ///< file to remove when the lock is given back, "" for none
};

/// The right to change the objects of a directory cluster, whatever state directory the record is in: several of those
/// would put several nodes in flight. The file is DIRECTORY/.kmm-lock, readable and writable for whom the directory is,
/// and removed with the lock. Errors: locked (75) "cluster-locked" with the details of StateDir::lock; from_errno; io
/// "unsafe-state-fs".
[[nodiscard]] Lock lock_cluster_directory(const std::string& directory, const Owner& owner);

/// Reading needs no lock and never writes. Writing methods need the Lock that `lock` returned to be alive.
class StateDir {
public:
    /// Does not touch the disk. `ops` and `clock` must outlive the object. Without `key` nothing is sealed.
    StateDir(std::string path, sys::FileOps& ops, const sys::Clock& clock, std::optional<SealKey> key = std::nullopt);

    /// Checks (owner, mode not group- or world-writable, no symlink) and creates the directory 0700 if `create`.
    /// Errors: no_permission "unsafe-state-dir", io, not_found when absent and not `create`.
    void open(bool create);

    /// Takes the lock and writes the owner record; waits a quarter of a second at most, for a killed owner's last
    /// breath. Errors: locked (75) "locked" with details who, where, since, operation; io "unsafe-state-fs" on
    /// ENOLCK/ENOTSUP.
    [[nodiscard]] Lock lock(const Owner& owner);
    /// Text of the lock file with a verdict: is that owner alive? nullopt when nobody holds the lock.
    [[nodiscard]] std::optional<Owner> holder() const;

    /// Reads and verifies the journal (and the snapshot against it). Never writes.
    /// Errors: io "state-damaged" (exit 74) with line number for anything but a partial last line; config (78)
    /// "state-newer" for a higher formatVersion; an absent journal gives no entries.
    [[nodiscard]] Loaded load() const;

    /// Whose the record is that this object loaded or wrote last; `own` as well once `vouch` was called for it.
    [[nodiscard]] Seal seal() const;
    /// The user takes the record, as it was loaded last, for his own: what is appended to it is sealed, and so is what
    /// stands before that. Makes the key if there is none. Does not touch the record.
    void vouch();

    /// Starts a new run: journal with `header` as entry 1, sealed if there can be a key, preallocated so that a full
    /// disk shows here (P05). Errors: bug if a run exists; io.
    void begin(const value::Node& header);
    /// Appends one entry, sealed if seal() is `own`, and fsyncs it; on return it survives power loss. Compare-and-swap:
    /// aborts (locked, "state-changed") when the file is not what this object last read or wrote. Cuts a partial tail
    /// first.
    void append(const value::Node& payload);
    /// Writes the snapshot atomically and keeps the last five. Written at stops, it may be of an earlier entry than the
    /// journal's last; a journal that ends before its snapshot does has lost entries.
    void write_snapshot(const value::Node& payload);
    /// Moves the run to history/ and leaves the directory idle. `id_hint` becomes part of the file name.
    void archive(const std::string& id_hint);
    /// As archive and then begin, but killed anywhere between, one of the two runs is what `load` reads: never none.
    /// Errors: bug if there is no run; io.
    void succeed(const std::string& id_hint, const value::Node& header);

    /// Ended runs, newest first.
    [[nodiscard]] std::vector<HistoryItem> history() const;
    [[nodiscard]] Loaded load_history(const HistoryItem& item) const;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    struct Tail;  // what this object knows of the journal's end
    void put_snapshot_away();
    std::string first_line(const value::Node& header);
    std::string path_;
    sys::FileOps& ops_;
    const sys::Clock& clock_;
    std::optional<SealKey> key_;
    std::shared_ptr<Tail> tail_;
};

/// This process as an owner record.
[[nodiscard]] Owner current_owner(const std::string& operation, const sys::Clock& clock);
/// False only when the owner is provably gone (other boot id on the same machine; in this pid namespace no such pid, or
/// other start time).
[[nodiscard]] bool owner_may_live(const Owner& owner);

/// --state-dir, or /var/lib/kmm-upgrade for root, else $XDG_STATE_HOME/kmm-upgrade (default ~/.local/state).
[[nodiscard]] std::string default_state_dir();

}  // namespace kmm::record
