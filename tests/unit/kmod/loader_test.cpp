// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/loader.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <fcntl.h>

#include "digest/digest.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_SUITE("kmod::unit") {

TEST_CASE("a sealed file has the bytes and cannot be written") {
    const std::string bytes(100'000, 'x');
    const sys::Fd fd = kmod::sealed_file(bytes, "demo");
    std::string back(bytes.size() + 1, '\0');
    CHECK(::pread(fd.get(), back.data(), back.size(), 0) == static_cast<ssize_t>(bytes.size()));
    back.resize(bytes.size());
    CHECK(back == bytes);
    CHECK(::write(fd.get(), "y", 1) == -1);
    const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
    const sys::Fd writable(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (writable) CHECK(::pwrite(writable.get(), "y", 1, 0) == -1);
}

TEST_CASE("the helper process brings the kernel's answer back") {
    kmod::LinuxModuleLoader loader;
    // no kernel takes this as a module, whoever asks: ENOEXEC, EPERM or ENOSYS, depending on kernel and user
    const sys::Fd fd = kmod::sealed_file("no module at all", "demo");
    const auto loaded = loader.load(fd.get(), "", {}, std::chrono::seconds(30));
    CHECK_FALSE(loaded.hung);
    CHECK((loaded.error == ENOEXEC || loaded.error == EPERM || loaded.error == ENOSYS));
    const auto unloaded = loader.unload("kmm_no_such_module", {}, std::chrono::seconds(30));
    CHECK_FALSE(unloaded.hung);
    CHECK((unloaded.error == ENOENT || unloaded.error == EPERM || unloaded.error == ENOSYS));
}

TEST_CASE("SHA-256") {
    CHECK(digest::sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}
