// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "api/names.hpp"

using namespace kmm::api;

TEST_SUITE("api::unit") {
    TEST_CASE("quantities, as the API server reads them") {
        for (const char* text : {"0", "100m", "1e3", "1E3", "1E", "1Ei", ".5", "+1", "-1", "1.", "1.5Gi", "2k", "3n",
                                 "4u", "1e-3", "1e+3", "123456789012345678901234567890"}) {
            CAPTURE(text);
            CHECK(api::is_quantity(text));
        }
        for (const char* text : {"",  " ",  "1 Gi", "1GiB", "1K",   "1mi",  "1e",  "1e3.5", ".",   "+",
                                 "m", "Gi", "1..5", "1,5",  "0x10", "1Gi ", "--1", "1e+",   "1ei", "ten"}) {
            CAPTURE(text);
            CHECK_FALSE(api::is_quantity(text));
        }
}

TEST_CASE("object names are DNS-1123 subdomains") {
        for (const auto* good : {"a", "node-1", "a.b", "0", "worker-7.example.org"}) {
            CAPTURE(good);
            CHECK(is_dns1123_subdomain(good));
        }
        for (const auto* bad : {"", "-a", "a-", "A", "a..b", ".a", "a.", "a_b", "a/b", "a b", "-oProxyCommand=x"}) {
            CAPTURE(bad);
            CHECK_FALSE(is_dns1123_subdomain(bad));
        }
        CHECK(is_dns1123_subdomain(std::string(253, 'a')));
        CHECK_FALSE(is_dns1123_subdomain(std::string(254, 'a')));
    }

    TEST_CASE("namespaces are DNS-1123 labels") {
        CHECK(is_dns1123_label("kmm-system"));
        CHECK(is_dns1123_label(std::string(63, 'a')));
        CHECK_FALSE(is_dns1123_label(std::string(64, 'a')));
        CHECK_FALSE(is_dns1123_label("a.b"));
    }

    TEST_CASE("label keys are qualified names") {
        for (const auto* good : {"a", "A_b.c", "kmm.node.kubernetes.io/version-module.drivers.kmm-hello", "x/y"}) {
            CAPTURE(good);
            CHECK(is_qualified_name(good));
        }
        for (const auto* bad : {"", "/a", "a/", "a/b/c", "A/b", "a b", "-a", "a-"}) {
            CAPTURE(bad);
            CHECK_FALSE(is_qualified_name(bad));
        }
        CHECK(is_qualified_name("x/" + std::string(63, 'a')));
        CHECK_FALSE(is_qualified_name("x/" + std::string(64, 'a')));
    }

    TEST_CASE("label values may be empty") {
        CHECK(is_label_value(""));
        CHECK(is_label_value("v1.2_3-x"));
        CHECK_FALSE(is_label_value("v1+2"));
        CHECK_FALSE(is_label_value(".v1"));
        CHECK_FALSE(is_label_value(std::string(64, 'a')));
    }
}
