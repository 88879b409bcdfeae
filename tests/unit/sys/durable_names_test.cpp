// SPDX-License-Identifier: Apache-2.0
#include "sys/durable_names.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/last_errno.hpp"

using namespace kmm;

namespace {

/// Writes down what it is asked for.
class NotedOps final : public sys::FileOps {
public:
    std::vector<std::string> log;
    std::string absent, broken;

    int create(const std::string&, unsigned) override { return -1; }
    int open_append(const std::string&) override { return -1; }
    void write(int, std::string_view) override {}
    void sync(int fd) override { log.push_back("sync " + std::to_string(fd)); }
    void rename(const std::string& from, const std::string& to) override { log.push_back(from + " -> " + to); }
    void sync_dir(const std::string& directory) override {
        if (directory == absent) throw from_errno(ENOENT, directory);
        if (directory == broken) throw from_errno(EIO, directory);
        log.push_back("sync " + directory);
    }
};

}  // namespace

TEST_SUITE("sys::unit") {
    TEST_CASE("bytes come before the name, directories that got names before those that lost them, each once") {
        NotedOps ops;
        sys::DurableNames names(ops);
        names.move("/a/old", "/b/old");
        names.place(7, "/c/new.tmp", "/c/new");
        names.place(8, "/c/other.tmp", "/c/other");
        names.finish();
        names.finish();
        CHECK(ops.log == std::vector<std::string>{"/a/old -> /b/old", "sync 7", "/c/new.tmp -> /c/new", "sync 8",
                                                  "/c/other.tmp -> /c/other", "sync /b", "sync /c", "sync /a"});
    }

    TEST_CASE("a directory that is gone needs nothing; another fault is an error") {
        NotedOps ops;
        ops.absent = "/gone";
        ops.broken = "/broken";
        sys::DurableNames names(ops);
        names.note("/gone");
        names.note("/there");
        CHECK_NOTHROW(names.finish());
        CHECK(ops.log == std::vector<std::string>{"sync /there"});
        names.note("/broken");
        CHECK_THROWS_AS(names.finish(), Error);
    }

    TEST_CASE("errno is kept before the text of the error is made") {
        const auto text = [] {
            errno = ENOMEM;  // as any function may
            return std::string("cannot open it");
        };
        errno = EROFS;
        const Error error = LastErrno().error(text());
        CHECK(error.errno_cause() == EROFS);
        CHECK(error.message() == "cannot open it: Read-only file system (EROFS)");
    }
}
