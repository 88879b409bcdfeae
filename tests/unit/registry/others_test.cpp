// SPDX-License-Identifier: Apache-2.0
// Other users in the same places: locks that they hold, directories that they are first to make.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "registry/layer/hash.hpp"
#include "registry/local/image_sink.hpp"
#include "registry/pull/cache.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/input_deadline.hpp"
#include "sys/signals.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace fs = std::filesystem;

namespace {

constexpr uid_t k_nobody = 65534;

std::string code_of(const std::function<void()>& act) {
    try {
        act();
        return "";
    } catch (const Error& error) {
        return error.code();
    }
}

/// What `act` ends with while `path` is locked by another description of it: at the limit of time, and at a signal.
std::string codes_while_locked(const std::string& path, const std::function<void()>& act) {
    const sys::Fd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(other.get(), LOCK_EX) == 0);
    sys::limit_input_waits(std::chrono::milliseconds(1));
    std::string codes = code_of(act);
    sys::limit_input_waits(sys::k_patient);
    sys::request_interrupt(SIGTERM);
    codes += "," + code_of(act);
    sys::clear_interrupt();
    return codes;
}

}  // namespace

TEST_CASE("a lock that somebody else holds is waited for until the limit of time, or a signal") {
    const sys::TempDir directory("kmm-test-");
    const std::string layout = directory.path() + "/layout";
    const auto reference = *registry::parse_local_reference("oci:" + layout + ":one");
    {
        const auto sink = registry::open_layout_sink(reference, {});
        const auto publish = [&] { sink->publish("type", "text", registry::digest_of("text")); };
        CHECK(codes_while_locked(layout, publish) == "timeout,interrupted");
        CHECK(code_of(publish).empty());
    }
    const auto open = [&] { (void)registry::open_layout_sink(reference, {}); };
    CHECK(codes_while_locked(layout + "/blobs", open) == "timeout,interrupted");
    CHECK(code_of(open).empty());

    const std::string cache = directory.path() + "/cache";
    const auto use = [&] { const registry::Cache made(cache); };
    use();
    CHECK(codes_while_locked(cache + "/lock", use) == "timeout,interrupted");
    registry::Cache mine(cache);
    const registry::Cache others(cache);
    CHECK_FALSE(mine.prune(0));
}

TEST_CASE("a cache below a directory that somebody else was first to make is refused") {
    if (::geteuid() != 0) return;
    const sys::TempDir directory("kmm-test-");
    const std::string top = directory.path() + "/sticky";
    fs::create_directory(top);
    REQUIRE(::chmod(top.c_str(), 01777) == 0);
    const std::string first = top + "/first";
    const std::string prepared = top + "/prepared";
    for (int i = 0; i < 1000; ++i) {
        fs::create_directory(prepared);
        REQUIRE(::chown(prepared.c_str(), k_nobody, k_nobody) == 0);
        std::atomic<bool> is_ready = false;
        std::thread other([&] {
            is_ready = true;
            for (int pause = i % 100; pause > 0; --pause) (void)::getppid();
            (void)::renameat2(AT_FDCWD, prepared.c_str(), AT_FDCWD, first.c_str(), RENAME_NOREPLACE);
        });
        while (!is_ready) {
        }
        const std::string code = code_of([&] { const registry::Cache cache(first + "/cache"); });
        other.join();
        struct stat facts {};
        REQUIRE(::stat(first.c_str(), &facts) == 0);
        const bool is_safe = facts.st_uid == 0 || !code.empty();
        CHECK_MESSAGE(is_safe, code);
        if (!is_safe) break;
        fs::remove_all(first);
        fs::remove_all(prepared);
    }
}
