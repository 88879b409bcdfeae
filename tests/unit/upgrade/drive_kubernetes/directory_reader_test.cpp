// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/directory_reader.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <doctest/doctest.h>

#include "sys/temp_dir.hpp"

namespace kmm::drive {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a directory cluster is read once for each change") {
    const sys::TempDir top("kmm-directory-reader-");
    const auto write = [&](const std::string& name, const std::string& text) {
        fs::create_directories(fs::path(top.path() + "/" + name).parent_path());
        std::ofstream(top.path() + "/" + name) << text;
    };
    write("nodes/a.yaml", "a");
    int reads = 0;
    const auto read = [&] {
        ++reads;
        return kubernetes::Inventory();
    };
    // Whatever was written before is settled, as if the clock of the files were an hour behind.
    DirectoryReader reader(top.path(), read, -std::chrono::hours(1));
    const auto reads_now = [&] {
        reads = 0;
        static_cast<void>(reader.read());
        return reads;
    };
    CHECK(reads_now() == 1);
    CHECK(reads_now() == 0);
    CHECK(reader.read() == reader.read());
    write("nodes/a.yaml", "other");
    CHECK(reads_now() == 1);
    CHECK(reads_now() == 0);
    write("nodes/b.yaml", "b");
    CHECK(reads_now() == 1);
    fs::rename(top.path() + "/nodes/b.yaml", top.path() + "/nodes/a.yaml");
    CHECK(reads_now() == 1);
    fs::remove(top.path() + "/nodes/a.yaml");
    CHECK(reads_now() == 1);
    CHECK(reads_now() == 0);

    // What a link leads to is changed elsewhere.
    fs::create_symlink("/etc/hostname", top.path() + "/nodes/c.yaml");
    CHECK(reads_now() == 1);
    CHECK(reads_now() == 1);

    // What has just been written may be written again within one tick of the clock.
    fs::remove(top.path() + "/nodes/c.yaml");
    DirectoryReader careful(top.path(), read);
    static_cast<void>(careful.read());
    reads = 0;
    static_cast<void>(careful.read());
    CHECK(reads == 1);
}

TEST_CASE("a directory that cannot be read is asked again") {
    int reads = 0;
    DirectoryReader reader("/nonexistent/kmm", [&]() -> kubernetes::Inventory {
        ++reads;
        throw std::runtime_error("no");
    });
    CHECK_THROWS(static_cast<void>(reader.read()));
    CHECK_THROWS(static_cast<void>(reader.read()));
    CHECK(reads == 2);
}

}  // namespace
}  // namespace kmm::drive
