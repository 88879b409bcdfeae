// SPDX-License-Identifier: Apache-2.0
#include "sys/environment.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

TEST_SUITE("sys.environment") {
    TEST_CASE("as root, libraries read no code and no configuration of others by the environment") {
        const sys::TempDir dir("kmm-environment-");
        const std::string file = dir.path() + "/openssl.cnf";
        std::ofstream(file) << "# nothing\n";
        const bool is_root = ::geteuid() == 0;
        for (const char* name : {"GCONV_PATH", "SSLKEYLOGFILE", "HOSTALIASES", "CURL_SSL_BACKEND"}) {
            CAPTURE(name);
            REQUIRE(::setenv(name, dir.path().c_str(), 1) == 0);
            sys::take_trusted_environment();
            CHECK((std::getenv(name) == nullptr) == is_root);
            REQUIRE(::unsetenv(name) == 0);
        }
        for (const char* name : {"OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_ENGINES", "OPENSSL_MODULES"}) {
            CAPTURE(name);
            REQUIRE(::chmod(file.c_str(), 0644) == 0);
            REQUIRE(::setenv(name, file.c_str(), 1) == 0);
            sys::take_trusted_environment();
            CHECK(std::string(std::getenv(name)) == file);
            REQUIRE(::chmod(file.c_str(), 0666) == 0);
            std::string code;
            try {
                sys::take_trusted_environment();
            } catch (const Error& error) {
                code = error.code();
            }
            CHECK(code == (is_root ? "untrusted-file" : ""));
            REQUIRE(::unsetenv(name) == 0);
        }
    }
}
