// SPDX-License-Identifier: Apache-2.0
#include "kmod/errno_doctor.hpp"

#include <doctest/doctest.h>

#include <cerrno>

#include "base/error.hpp"

using namespace kmm;

TEST_SUITE("kmod::unit") {

TEST_CASE("every row of the table names a cause and a hint, in ascending order") {
    for (const auto table : {kmod::load_errnos(), kmod::unload_errnos()}) {
        int last = 0;
        for (const auto& row : table) {
            CAPTURE(row.number);
            CHECK(row.number > last);
            CHECK_FALSE(row.cause.empty());
            CHECK_FALSE(row.hint.empty());
            last = row.number;
        }
    }
}

TEST_CASE("the errnos of the kernel's loader have a row") {
    for (const int number : {ENOENT, EINVAL, ENOEXEC, EEXIST, EBUSY, EKEYREJECTED, ENOKEY, EKEYEXPIRED, EPERM, EACCES, EBADMSG, ELIBBAD, ENOPKG, ENOMEM, ENOSPC,
                             ENODEV, ESRCH, EIO, ETIMEDOUT, EFAULT, ENOSYS, EINTR}) {
        CAPTURE(errno_name(number));
        CHECK(kmod::load_advice(number).cause.find("returned this error") == std::string_view::npos);
    }
    CHECK(kmod::load_advice(EXDEV).cause.find("init function") != std::string_view::npos);
    CHECK(kmod::unload_advice(EAGAIN).cause == "the module is in use");
}

TEST_CASE("the cause of EPERM is read from the kernel") {
    kmod::KernelState state;
    CHECK(kmod::load_cause(EPERM, state, false) == "this process has no CAP_SYS_MODULE");
    state.cap_sys_module = true;
    state.modules_disabled = true;
    CHECK(kmod::load_cause(EPERM, state, false).find("modules_disabled") != std::string::npos);
    state.modules_disabled = false;
    state.lockdown = "integrity";
    CHECK(kmod::load_cause(EPERM, state, false) == "lockdown is integrity and the module is not signed");
    CHECK(kmod::load_cause(EPERM, state, true) == "lockdown is integrity and the module has no valid signature");
    state.lockdown = "none";
    CHECK(kmod::load_cause(EPERM, state, true).find("module_blacklist") != std::string::npos);
}

TEST_CASE("numbers of errno names") {
    CHECK(kmod::errno_number("ENOEXEC") == ENOEXEC);
    CHECK(kmod::errno_number("enodev") == ENODEV);
    CHECK(kmod::errno_number("8") == 8);
    CHECK(kmod::errno_number("EWOULDBLOCK") == EAGAIN);
    for (const char* bad : {"", "0", "-1", "99999", "EFOO", "module-refused"}) CHECK(kmod::errno_number(bad) == 0);
}

}
