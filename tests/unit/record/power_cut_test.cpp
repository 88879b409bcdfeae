// SPDX-License-Identifier: Apache-2.0
// What the disk may hold after a power cut. The operations of one life of the record are logged; then, for a cut after
// each of them, every state that a file system may have kept is built and read: operations on names that were not yet
// made durable are lost or kept (in order, and in any subset), bytes that were not are lost, kept, cut or read as
// zeros.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "scenario.hpp"
#include "sys/directory.hpp"

using namespace kmm;
using namespace kmm::record;
using namespace kmm::record::test;

namespace {

struct Operation {
    enum class Type { create, write, sync, rename, sync_dir, acknowledge } type;
    int inode = 0;
    std::string from, to;  ///< paths; `to` also the directory of sync_dir
    std::string bytes;
    int step = 0;
};

/// Does the real thing and writes it down.
class RecordingFileOps final : public sys::FileOps {
public:
    std::vector<Operation> log;

    int create(const std::string& path, unsigned mode) override {
        const int fd = real_.create(path, mode);
        inode_of_fd_[fd] = ++inodes_;
        log.push_back({Operation::Type::create, inodes_, "", path, "", 0});
        return fd;
    }
    int open_append(const std::string&) override { throw bug("the record does not append to files of others"); }
    void write(int fd, std::string_view bytes) override {
        real_.write(fd, bytes);
        log.push_back({Operation::Type::write, inode_of_fd_.at(fd), "", "", std::string(bytes), 0});
    }
    void sync(int fd) override {
        real_.sync(fd);
        log.push_back({Operation::Type::sync, inode_of_fd_.at(fd), "", "", "", 0});
    }
    void rename(const std::string& from, const std::string& to) override {
        real_.rename(from, to);
        log.push_back({Operation::Type::rename, 0, from, to, "", 0});
    }
    void sync_dir(const std::string& directory) override {
        real_.sync_dir(directory);
        log.push_back({Operation::Type::sync_dir, 0, "", directory, "", 0});
    }
    void acknowledge(int step) { log.push_back({Operation::Type::acknowledge, 0, "", "", "", step}); }

private:
    sys::LinuxFileOps real_;
    std::map<int, int> inode_of_fd_;
    int inodes_ = 0;
};

using Names = std::map<std::string, int>;

void apply(Names& names, const Operation& operation) {
    if (operation.type == Operation::Type::create) {
        names[operation.to] = operation.inode;
    } else if (const auto found = names.find(operation.from); found != names.end()) {
        const int inode = found->second;
        names.erase(found);
        names[operation.to] = inode;
    }
}

bool touches(const Operation& operation, const std::string& directory) {
    return sys::parent_of(operation.to) == directory ||
           (!operation.from.empty() && sys::parent_of(operation.from) == directory);
}

/// What is certainly on the disk after `count` operations, and what may be.
struct Disk {
    Names durable_names;
    std::vector<Operation> pending_names;
    std::map<int, std::string> durable_bytes;
    std::map<int, std::string> pending_bytes;  ///< written after the durable ones
    int acked = 0;
};

Disk disk_after(const std::vector<Operation>& log, std::size_t count) {
    Disk disk;
    for (std::size_t i = 0; i < count; ++i) {
        const Operation& operation = log[i];
        switch (operation.type) {
            case Operation::Type::create:
            case Operation::Type::rename: disk.pending_names.push_back(operation); break;
            case Operation::Type::write: disk.pending_bytes[operation.inode] += operation.bytes; break;
            case Operation::Type::sync:
                disk.durable_bytes[operation.inode] += disk.pending_bytes[operation.inode];
                disk.pending_bytes.erase(operation.inode);
                break;
            case Operation::Type::sync_dir: {
                std::vector<Operation> left;
                for (const Operation& pending : disk.pending_names) {
                    if (touches(pending, operation.to)) {
                        apply(disk.durable_names, pending);
                    } else {
                        left.push_back(pending);
                    }
                }
                disk.pending_names = std::move(left);
                break;
            }
            case Operation::Type::acknowledge: disk.acked = operation.step; break;
        }
    }
    return disk;
}

/// Each way in which the unsynced bytes of one file may have survived.
std::vector<std::string> survivals(const std::string& durable, const std::string& pending) {
    std::set<std::string> texts{durable};
    for (std::size_t cut :
         {std::size_t{1}, pending.size() / 4, pending.size() / 2, pending.size() - 1, pending.size()}) {
        cut = std::min(cut, pending.size());
        texts.insert(durable + pending.substr(0, cut));
        texts.insert(durable + pending.substr(0, cut) + std::string(pending.size() - cut, '\0'));
    }
    // Whole sectors that never arrived.
    constexpr std::size_t k_sector = 512;
    const std::size_t end = durable.size() + pending.size();
    for (std::size_t sector = durable.size() / k_sector * k_sector; sector < end; sector += k_sector) {
        std::string text = durable + pending;
        const std::size_t from = std::max(sector, durable.size());
        text.replace(from, std::min(sector + k_sector, end) - from, std::min(sector + k_sector, end) - from, '\0');
        if (std::min(sector + k_sector, end) - from >= 2) {
            texts.insert(text);
        }
    }
    return {texts.begin(), texts.end()};
}

std::vector<Names> name_states(const Disk& disk) {
    std::vector<Names> states;
    const std::size_t count = disk.pending_names.size();
    REQUIRE(count <= 8);
    for (std::size_t subset = 0; subset < (std::size_t{1} << count); ++subset) {
        Names names = disk.durable_names;
        for (std::size_t i = 0; i < count; ++i) {
            if ((subset >> i & 1U) != 0) {
                apply(names, disk.pending_names[i]);
            }
        }
        states.push_back(std::move(names));
    }
    return states;
}

void build(const std::string& root, const std::string& recorded_root, const Names& names,
           const std::map<int, std::string>& bytes) {
    for (const auto& [path, inode] : names) {
        const std::string target = root + path.substr(recorded_root.size());
        const auto found = bytes.find(inode);
        std::ofstream(target, std::ios::binary) << (found == bytes.end() ? std::string() : found->second);
        ::chmod(target.c_str(), 0600);
    }
}

struct Tally {
    std::size_t states = 0;
    std::size_t bad = 0;
    std::size_t stuck = 0;
    std::string first_fault;
};

/// Builds one state, reads it, goes on from it.
void try_state(Tally& tally, const std::string& recorded_root, const Disk& disk, const Names& names,
               const std::map<int, std::string>& bytes) {
    const ScratchState replay;
    build(replay.path(), recorded_root, names, bytes);
    const std::string wrong = verdict(replay.path(), disk.acked);
    const std::string stuck = go_on(replay.path());
    tally.states += 1;
    tally.bad += wrong.empty() ? 0U : 1U;
    tally.stuck += stuck.empty() ? 0U : 1U;
    if (tally.first_fault.empty()) {
        tally.first_fault = wrong + stuck;
    }
}

/// Every state after every operation of `log`.
Tally enumerate(const std::vector<Operation>& log, const std::string& recorded_root) {
    Tally tally;
    for (std::size_t count = 0; count <= log.size(); ++count) {
        const Disk disk = disk_after(log, count);
        for (const Names& names : name_states(disk)) {
            if (disk.pending_bytes.empty()) {
                try_state(tally, recorded_root, disk, names, disk.durable_bytes);
                continue;
            }
            // One file's unsynced bytes vary at a time; the others' are lost, then kept.
            for (const bool keep_others : {false, true}) {
                std::map<int, std::string> others = disk.durable_bytes;
                for (const auto& [inode, pending] : disk.pending_bytes) {
                    others[inode] += keep_others ? pending : "";
                }
                for (const auto& [inode, pending] : disk.pending_bytes) {
                    const auto durable = disk.durable_bytes.find(inode);
                    for (const std::string& text :
                         survivals(durable == disk.durable_bytes.end() ? "" : durable->second, pending)) {
                        std::map<int, std::string> bytes = others;
                        bytes[inode] = text;
                        try_state(tally, recorded_root, disk, names, bytes);
                    }
                }
            }
        }
    }
    return tally;
}

std::vector<Operation> without(std::vector<Operation> log, Operation::Type type, std::size_t keep_every) {
    std::size_t seen = 0;
    std::erase_if(log, [&](const Operation& operation) { return operation.type == type && ++seen % keep_every != 0; });
    return log;
}

}  // namespace

TEST_SUITE("record::unit") {
    TEST_CASE("no state that a power cut may leave is bad") {
        const ScratchState scratch;
        RecordingFileOps ops;
        play(scratch.path(), ops, [&](int step) { ops.acknowledge(step); });
        const Tally tally = enumerate(ops.log, scratch.path());
        CHECK_MESSAGE(tally.bad == 0, tally.first_fault);
        CHECK_MESSAGE(tally.stuck == 0, tally.first_fault);
        CHECK(tally.states > 200);
        MESSAGE("power cuts after " << ops.log.size() << " operations, states tried: " << tally.states
                                    << ", bad: " << tally.bad);
        // The model must be able to fail: with every second fsync forgotten, or every second one of a directory, it
        // does.
        const Tally no_sync = enumerate(without(ops.log, Operation::Type::sync, 2), scratch.path());
        CHECK(no_sync.bad > 0);
        const Tally no_sync_dir = enumerate(without(ops.log, Operation::Type::sync_dir, 2), scratch.path());
        CHECK(no_sync_dir.bad > 0);
        MESSAGE("with half of the fsyncs forgotten: bad " << no_sync.bad << " of " << no_sync.states
                                                          << "; of those of directories: bad " << no_sync_dir.bad
                                                          << " of " << no_sync_dir.states);
    }

    TEST_CASE("a replaced file goes through create, write, fsync, rename, fsync of the directory, in that order") {
        const ScratchState scratch;
        RecordingFileOps ops;
        sys::write_file_atomically(ops, scratch.path() + "/file", "text");
        std::vector<Operation::Type> order;
        for (const Operation& operation : ops.log) {
            order.push_back(operation.type);
        }
        using Type = Operation::Type;
        CHECK(order == std::vector<Type>{Type::create, Type::write, Type::sync, Type::rename, Type::sync_dir});
        CHECK(sys::parent_of(ops.log[0].to) == scratch.path());
        CHECK(ops.log[4].to == scratch.path());
    }
}
