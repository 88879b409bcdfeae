// SPDX-License-Identifier: Apache-2.0
#include "record/state_dir.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "scenario.hpp"
#include "record/safe_file.hpp"
#include "sys/directory.hpp"

using namespace kmm;
using namespace kmm::record;
using namespace kmm::record::test;
namespace fs = std::filesystem;

namespace {

struct Fixture {
    sys::LinuxFileOps ops;
    FixedClock clock;
    ScratchState scratch;
    StateDir state{scratch.path(), ops, clock};

    [[nodiscard]] std::string file(const std::string& name) const { return scratch.path() + "/" + name; }
    [[nodiscard]] StateDir another() { return StateDir(scratch.path(), ops, clock); }
    void run_of(int entries) {
        state.begin(payload_of(1));
        for (int entry = 2; entry <= entries; ++entry) {
            state.append(payload_of(entry));
            state.write_snapshot(payload_of(entry));
        }
    }
};

std::string code_of(const std::function<void()>& body) {
    try {
        body();
        return "";
    } catch (const Error& error) {
        return error.code();
    }
}

/// From now on faccessat2 of this process ends with EPERM, as under a seccomp profile that does not know it.
bool deny_faccessat2() {
    std::array<sock_filter, 4> rules = {{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                         {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_faccessat2},
                                         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                                         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
    const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace

TEST_SUITE("record::unit") {
    TEST_CASE("a state directory is looked at also where the newest system call for it is denied") {
        const Fixture f;
        const auto child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            if (!deny_faccessat2()) ::_exit(2);
            try {
                require_rights(f.scratch.path(), R_OK | X_OK, "read");
                ::_exit(0);
            } catch (const Error&) { ::_exit(1); }
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFEXITED(status));
        if (WEXITSTATUS(status) == 2) MESSAGE("seccomp filters are not allowed here");
        else CHECK(WEXITSTATUS(status) == 0);
    }

    TEST_CASE("an idle directory, a run, its archive") {
        Fixture f;
        CHECK(f.state.load().entries.empty());
        CHECK(f.state.history().empty());
        CHECK(code_of([&] { f.state.append(payload_of(1)); }) == "bug");
        f.run_of(3);
        const Loaded loaded = f.another().load();
        REQUIRE(loaded.entries.size() == 3);
        CHECK(loaded.entries[2].seq == 3);
        CHECK(loaded.entries[2].time == "2026-09-21T14:13:20Z");
        CHECK(loaded.entries[2].payload.same_value(payload_of(3)));
        CHECK(loaded.warnings.empty());
        CHECK(code_of([&] { f.another().begin(payload_of(1)); }) == "bug");
        f.another().archive("drivers/kmm-hello v1..v2");
        CHECK(f.another().load().entries.empty());
        CHECK_FALSE(fs::exists(f.file("upgrade.json")));
        const auto history = f.another().history();
        REQUIRE(history.size() == 1);
        CHECK(history[0].id == "00001-drivers-kmm-hello-v1..v2");
        CHECK(f.another().load_history(history[0]).entries.size() == 3);
        StateDir second = f.another();
        second.begin(payload_of(1));
        second.archive("");
        REQUIRE(second.history().size() == 2);
        CHECK(second.history()[0].id == "00002-run");
    }

    TEST_CASE("a run is archived also when the earlier ones were moved away") {
        Fixture f;
        f.run_of(3);
        fs::remove_all(f.file("history"));
        fs::remove_all(f.file("backup"));
        CHECK_NOTHROW(f.another().archive("one"));
        REQUIRE(f.another().history().size() == 1);
        CHECK(f.another().history()[0].id == "00001-one");
    }

    TEST_CASE("another process goes on where the first one stopped") {
        Fixture f;
        f.run_of(2);
        StateDir second = f.another();
        second.append(payload_of(3));
        second.append(payload_of(4));
        CHECK(f.another().load().entries.size() == 4);
        // The first object's idea of the file is old: it must not write over what it does not know.
        CHECK(code_of([&] { f.state.append(payload_of(3)); }) == "state-changed");
        CHECK(f.another().load().entries.size() == 4);
        static_cast<void>(f.state.load());
        f.state.append(payload_of(5));
        CHECK(f.another().load().entries.size() == 5);
    }

    TEST_CASE("a record edited between reading and writing is never overwritten") {
        Fixture f;
        f.run_of(3);
        const std::string golden = sys::read_file(f.file("journal.ndjson"));
        struct Row {
            const char* name;
            std::function<void()> edit;
        };
        const std::vector<Row> rows = {
            {"a byte",
             [&] { std::fstream(f.file("journal.ndjson"), std::ios::in | std::ios::out).seekp(20).put('#'); }},
            {"more text", [&] { std::ofstream(f.file("journal.ndjson"), std::ios::app) << "x\n"; }},
            {"less text", [&] { fs::resize_file(f.file("journal.ndjson"), 10); }},
            {"gone", [&] { fs::remove(f.file("journal.ndjson")); }},
        };
        for (const bool own_writer : {true, false}) {
            for (const Row& row : rows) {
                CAPTURE(row.name);
                CAPTURE(own_writer);
                fs::remove(f.file("journal.ndjson"));
                std::ofstream(f.file("journal.ndjson")) << golden;
                ::chmod(f.file("journal.ndjson").c_str(), 0600);
                fs::remove(f.file("upgrade.json"));
                StateDir writer = f.another();
                static_cast<void>(writer.load());
                if (own_writer) {
                    writer.append(payload_of(4));
                }
                row.edit();
                CHECK(code_of([&] { writer.append(payload_of(5)); }) == "state-changed");
            }
        }
    }

    TEST_CASE("an interrupted append is left out, said, and cut by the next append") {
        Fixture f;
        f.run_of(3);
        std::ofstream(f.file("journal.ndjson"), std::ios::app) << R"({"seq":4,"prev":"0123)";
        const Loaded loaded = f.another().load();
        CHECK(loaded.partial_tail);
        CHECK(loaded.entries.size() == 3);
        REQUIRE(loaded.warnings.size() == 1);
        StateDir writer = f.another();
        writer.append(payload_of(4));
        const Loaded after = f.another().load();
        CHECK_FALSE(after.partial_tail);
        CHECK(after.entries.size() == 4);
    }

    TEST_CASE("a snapshot that is damaged is reported, one that is older or missing is not") {
        Fixture f;
        f.run_of(3);
        const std::string good = sys::read_file(f.file("upgrade.json"));
        struct Row {
            const char* name;
            std::size_t warnings;
            std::function<void()> edit;
        };
        const std::vector<Row> rows = {
            {"gone", 0, [&] { fs::remove(f.file("upgrade.json")); }},
            {"cut", 1, [&] { fs::resize_file(f.file("upgrade.json"), 30); }},
            {"changed", 1,
             [&] { std::fstream(f.file("upgrade.json"), std::ios::in | std::ios::out).seekp(60).put('#'); }},
            {"older", 0,
             [&] {
                 fs::copy_file(f.file("backup/2.json"), f.file("upgrade.json"), fs::copy_options::overwrite_existing);
             }},
        };
        for (const Row& row : rows) {
            CAPTURE(row.name);
            std::ofstream(f.file("upgrade.json"), std::ios::trunc) << good;
            ::chmod(f.file("upgrade.json").c_str(), 0600);
            row.edit();
            CHECK(f.another().load().warnings.size() == row.warnings);
            CHECK(f.another().load().entries.size() == 3);
        }
        StateDir writer = f.another();
        static_cast<void>(writer.load());
        writer.write_snapshot(payload_of(3));
        CHECK(f.another().load().warnings.empty());
    }

    TEST_CASE("the last five snapshots are kept") {
        Fixture f;
        f.run_of(12);
        std::vector<std::string> names;
        for (const auto& entry : sys::list_directory(f.file("backup"))) names.push_back(entry.name);
        std::sort(names.begin(), names.end());
        CHECK(names == std::vector<std::string>{"10.json", "11.json", "7.json", "8.json", "9.json"});
        CHECK(sys::read_file(f.file("backup/11.json")).find("\"entry\": 11") != std::string::npos);
    }

    TEST_CASE("reading writes nothing, not even into a directory that cannot be written") {
        Fixture f;
        f.run_of(3);
        fs::permissions(f.scratch.path(), fs::perms::owner_read | fs::perms::owner_exec);
        CHECK(f.another().load().entries.size() == 3);
        CHECK_FALSE(f.another().holder().has_value());
        CHECK(sys::list_directory(f.scratch.path()).size() ==
              4);  // backup history journal.ndjson upgrade.json, no lock
        fs::permissions(f.scratch.path(), fs::perms::owner_all);
    }

    TEST_CASE("a directory that others can reach is refused") {
        const sys::TempDir base("kmm-record-");
        sys::LinuxFileOps ops;
        const FixedClock clock;
        const std::string dir = base.path() + "/state";
        const auto open_code = [&](const std::string& path, bool create) {
            return code_of([&] { StateDir(path, ops, clock).open(create); });
        };
        CHECK(open_code(dir, false) == "io");  // absent
        const mode_t old = ::umask(0);
        CHECK(open_code(dir, true) == "");
        ::umask(old);
        struct stat info {};
        REQUIRE(::stat(dir.c_str(), &info) == 0);
        CHECK((info.st_mode & 07777U) == 0700U);
        for (const mode_t mode : {mode_t{0770}, mode_t{0702}, mode_t{0777}}) {
            CAPTURE(mode);
            ::chmod(dir.c_str(), mode);
            CHECK(open_code(dir, true) == "unsafe-state-dir");
        }
        ::chmod(dir.c_str(), 0700);
        fs::create_symlink(dir, base.path() + "/link");
        CHECK(open_code(base.path() + "/link", true) == "unsafe-state-dir");
        std::ofstream(base.path() + "/file") << "x";
        CHECK_FALSE(open_code(base.path() + "/file", true).empty());
        ::chmod(base.path().c_str(), 0707);
        CHECK(open_code(dir, true) == "unsafe-state-dir");
        ::chmod(base.path().c_str(), 01707);  // sticky: others cannot replace what is ours
        CHECK(open_code(dir, true) == "");
        if (::geteuid() == 0) {
            REQUIRE(::chown(dir.c_str(), 65534, 65534) == 0);
            CHECK(open_code(dir, true) == "unsafe-state-dir");
        } else {
            MESSAGE("not root: a foreign owner was not tried");
        }
    }

    TEST_CASE("a mode that keeps its owner out is named with what changes it") {
        const sys::TempDir base("kmm-record-");
        sys::LinuxFileOps ops;
        const FixedClock clock;
        const std::string dir = base.path() + "/state";
        StateDir(dir, ops, clock).open(true);
        const auto hint_of = [](const std::function<void()>& body) {
            try {
                body();
                return std::string();
            } catch (const Error& error) {
                return error.hint();
            }
        };
        constexpr uid_t k_nobody = 65534;
        const bool is_root = ::geteuid() == 0;  // whom no mode keeps out
        ::chmod(base.path().c_str(), 0755);
        for (const mode_t mode : {mode_t{0000}, mode_t{0500}}) {
            CAPTURE(mode);
            if (is_root) {
                REQUIRE(::chown(dir.c_str(), k_nobody, k_nobody) == 0);
                REQUIRE(::seteuid(k_nobody) == 0);
            }
            ::chmod(dir.c_str(), mode);
            StateDir state(dir, ops, clock);
            CHECK(hint_of([&] { state.open(false); }) == (mode == 0 ? "chmod 0700 " + dir : std::string()));
            CHECK(hint_of([&] { static_cast<void>(state.lock(current_owner("start", clock))); }) ==
                  "chmod 0700 " + dir);
            ::chmod(dir.c_str(), 0700);
            if (is_root) REQUIRE(::seteuid(0) == 0);
        }
    }

    TEST_CASE("files that are not ours are refused") {
        Fixture f;
        f.run_of(2);
        for (const std::string name : {"journal.ndjson", "upgrade.json"}) {
            CAPTURE(name);
            ::chmod(f.file(name).c_str(), 0620);
            CHECK(code_of([&] { static_cast<void>(f.another().load()); }) == "unsafe-state-file");
            ::chmod(f.file(name).c_str(), 0600);
            fs::rename(f.file(name), f.file("elsewhere"));
            fs::create_symlink(f.file("elsewhere"), f.file(name));
            CHECK(code_of([&] { static_cast<void>(f.another().load()); }) == "unsafe-state-file");
            fs::remove(f.file(name));
            ::mkfifo(f.file(name).c_str(), 0600);
            CHECK(code_of([&] { static_cast<void>(f.another().load()); }) == "unsafe-state-file");
            fs::remove(f.file(name));
            fs::rename(f.file("elsewhere"), f.file(name));
        }
        fs::create_symlink(f.file("upgrade.json"), f.file("lock"));
        CHECK(code_of([&] { static_cast<void>(f.state.lock(current_owner("x", f.clock))); }) == "unsafe-state-file");
    }

    TEST_CASE("files are made with mode 0600 whatever the umask") {
        for (const mode_t mask : {mode_t{0}, mode_t{0777}, mode_t{0022}}) {
            CAPTURE(mask);
            Fixture f;
            const mode_t old = ::umask(mask);
            f.run_of(3);
            ::umask(old);
            for (const char* name : {"journal.ndjson", "upgrade.json", "backup/2.json"}) {
                struct stat info {};
                REQUIRE(::stat(f.file(name).c_str(), &info) == 0);
                CHECK((info.st_mode & 07777U) == 0600U);
            }
        }
    }

    TEST_CASE("a long journal is read in time linear to its length") {
        Fixture f;
        class NoSync final : public sys::FileOps {
        public:
            int create(const std::string& path, unsigned mode) override { return real_.create(path, mode); }
            int open_append(const std::string& path) override { return real_.open_append(path); }
            void write(int fd, std::string_view bytes) override { real_.write(fd, bytes); }
            void sync(int) override {}
            void rename(const std::string& from, const std::string& to) override { real_.rename(from, to); }
            void sync_dir(const std::string&) override {}

        private:
            sys::LinuxFileOps real_;
        } ops;
        StateDir state(f.scratch.path(), ops, f.clock);
        state.begin(payload_of(1));
        constexpr int k_entries_many = 5000;
        for (int entry = 2; entry <= k_entries_many; ++entry) {
            state.append(payload_of(entry));
        }
        const std::clock_t start = std::clock();
        CHECK(f.another().load().entries.size() == k_entries_many);
        const std::clock_t took = std::clock() - start;
        CHECK(took < 5 * CLOCKS_PER_SEC);
        MESSAGE("5000 entries loaded in " << took * 1000 / CLOCKS_PER_SEC << " ms");
    }
}
