// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "net/ca_bundle.hpp"
#include "net/address.hpp"
#include "net/http.hpp"
#include "net/proxy.hpp"
#include "net/retry.hpp"
#include "net/url.hpp"

using namespace kmm;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_SUITE("net::unit") {

TEST_CASE("the authorities of a system are where its distribution has them") {
    const auto found = [](const std::string& there) {
        return net::system_ca_bundle([&](const std::string& file) { return file == there; });
    };
    for (const char* place : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                              "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
        CHECK(found(place) == place);
    CHECK(found("/elsewhere").empty());
}

TEST_CASE("Retry-After: seconds, dates and nonsense") {
    const std::int64_t now = 784'111'777;  // Sun, 06 Nov 1994 08:49:37 GMT
    struct Row {
        const char* text;
        std::optional<milliseconds> wait;
    };
    for (const Row& row :
         {Row{"0", milliseconds(0)}, Row{" 7 ", seconds(7)}, Row{"99999", seconds(99999)},
          Row{"99999999999999999999", seconds(1'000'000)}, Row{"Sun, 06 Nov 1994 08:50:37 GMT", seconds(60)},
          Row{"Sun, 06 Nov 1994 08:49:00 GMT", milliseconds(0)}, Row{"Sun, 06 Nov 1994 08:50:37 CET", std::nullopt},
          Row{"Sun, 06 Foo 1994 08:50:37 GMT", std::nullopt}, Row{"", std::nullopt},
          Row{"Sunday, 06-Nov-94 08:50:37 GMT", seconds(60)},  // the obsolete forms, which RFC 9110 5.6.7
          Row{"Sun Nov  6 08:50:37 1994", seconds(60)},        // wants read
          Row{"Saturday, 05-Nov-94 08:50:37 GMT", milliseconds(0)}, Row{"Sunday, 06-Nov-94 08:50:37 CET", std::nullopt},
          Row{"Sunday, 06 Nov 94 08:50:37 GMT", std::nullopt}, Row{"Sun Nov 6 08:50:37 1994", std::nullopt},
          Row{"Sun Nov 31 08:50:37 1994", std::nullopt}, Row{"-1", std::nullopt}, Row{"1.5", std::nullopt},
          Row{"soon", std::nullopt}}) {
        CAPTURE(row.text);
        CHECK(net::parse_retry_after(row.text, now) == row.wait);
    }
}

TEST_CASE("Retry-After: a date is held against the server's own clock, not against a node's that went wrong") {
    const std::int64_t an_hour_late = 784'111'777 + 3600;
    net::Response response{503, {{"retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"}}, "", ""};
    CHECK(net::retry_after(response, an_hour_late) == milliseconds(0));
    response.headers.emplace_back("date", "Sun, 06 Nov 1994 08:50:30 GMT");
    CHECK(net::retry_after(response, an_hour_late) == seconds(7));
    CHECK(net::retry_after(net::Response{503, {{"date", "Sun, 06 Nov 1994 08:50:30 GMT"}}, "", ""}, an_hour_late) ==
          std::nullopt);
}

TEST_CASE("waits double, jitter, follow the server, and are capped") {
    const net::RetryPolicy policy;
    struct Row {
        int failures;
        std::optional<milliseconds> asked;
        double random;
        milliseconds wait;
    };
    for (const Row& row : {Row{1, {}, 0.5, milliseconds(500)}, Row{2, {}, 0.5, milliseconds(1000)},
                           Row{5, {}, 0.5, milliseconds(8000)}, Row{1, {}, 0.0, milliseconds(375)},
                           Row{1, {}, 1.0, milliseconds(625)}, Row{1, seconds(9), 0.5, seconds(9)},
                           Row{3, milliseconds(1), 0.5, milliseconds(2000)}, Row{1, seconds(3600), 0.5, seconds(60)},
                           Row{1000, {}, 1.0, seconds(60)}}) {
        CAPTURE(row.failures);
        CHECK(net::retry_delay(policy, row.failures, row.asked, row.random) == row.wait);
    }
    for (const int status : {408, 429, 500, 502, 503, 504}) {
        CHECK(net::is_retryable_status(status));
    }
    for (const int status : {200, 301, 400, 401, 403, 404, 416, 501, 505}) {
        CHECK_FALSE(net::is_retryable_status(status));
    }
}

TEST_CASE("URLs are split and joined") {
    const auto url = net::parse_url("HTTPS://User:pw@Reg.Example.com:8443/v2/a?x=1#frag");
    REQUIRE(url.has_value());
    CHECK(url->scheme == "https");
    CHECK(url->user_info == "User:pw");
    CHECK(url->host == "reg.example.com");
    CHECK(url->port == 8443);
    CHECK(url->path == "/v2/a");
    CHECK(url->query == "x=1");
    CHECK(net::parse_url("http://[fd00::1]:5000/x")->to_string() == "http://[fd00::1]:5000/x");
    CHECK(net::parse_url("http://a")->to_string() == "http://a/");
    for (const char* bad : {"", "a", "ftp://a/", "http://", "http:///x", "http://a:0/", "http://a:65536/",
                            "http://a:b/", "http://[::1/", "http://a b/", "http://a\\b/", "http://a/\x01",
                            "http://%41/", "http://a:999999999999/", "file:///etc/passwd"}) {
        CAPTURE(bad);
        CHECK_FALSE(net::parse_url(bad).has_value());
    }
    const net::Url base = *net::parse_url("https://h:1/a/b?q");
    struct Row {
        const char* reference;
        const char* result;
    };
    for (const Row& row : {Row{"/x?y", "https://h:1/x?y"}, Row{"c", "https://h:1/a/c"}, Row{"?z", "https://h:1/a/b?z"},
                           Row{"//other/x", "https://other/x"}, Row{"http://o/", "http://o/"},
                           Row{"/x?name=a b", "https://h:1/x?name=a%20b"},
                           Row{"https://o/\xc3\xa4?b=\xff", "https://o/%C3%A4?b=%FF"}, Row{"https://o o/x", ""},
                           Row{"https://\xc3\xa4/x", ""}, Row{"https://o/\n", ""}, Row{"c:d", ""},
                           Row{"unix:/run/x", ""}}) {
        CAPTURE(row.reference);
        const auto joined = net::resolve_url(base, row.reference);
        CHECK((joined ? joined->to_string() : "") == row.result);
    }
    CHECK(net::percent_encode("a/b:c d\xff~") == "a%2Fb%3Ac%20d%FF~");
    CHECK(base.same_origin(*net::parse_url("https://h:1/")));
    CHECK_FALSE(base.same_origin(*net::parse_url("https://h:2/")));
    CHECK_FALSE(base.same_origin(*net::parse_url("http://h:1/")));
}

TEST_CASE("URLs in messages keep no secrets") {
    CHECK(net::redact_url("https://u:p@h/x?X-Sig=secret#f") == "https://h/x?…");
    CHECK(net::redact_url("https://h/x") == "https://h/x");
    CHECK(net::redact_url("https://h/a@b") == "https://h/a@b");
    CHECK(net::redact_url("u:p@h") == "h");
    CHECK(net::redact_url("https://h/\n\x1b") == "https://h/\\n\\x1b");
}

TEST_CASE("no_proxy: hosts, addresses, networks and ports, between commas or blanks") {
    struct Row {
        const char* no_proxy;
        const char* url;
        bool proxied;
    };
    const Row rows[] = {
        {"", "https://registry.example/", true},
        {"*", "https://registry.example/", false},
        {"example", "https://registry.example/", false},
        {".example", "https://registry.example/", false},
        {".registry.example", "https://registry.example/", false},
        {"gistry.example", "https://registry.example/", true},
        {"*.example", "https://registry.example/", false},
        {"*.example", "https://a.registry.example:5000/", false},
        {"*.example:5000", "https://registry.example:5000/", false},
        {"*.example:5000", "https://registry.example/", true},
        {"*.registry.example", "https://registry.example/", true},
        {"*.gistry.example", "https://registry.example/", true},
        {"*.", "https://registry.example/", true},
        {"REGISTRY.example", "https://registry.example/", false},
        {"other, registry.example", "https://registry.example/", false},
        {"other registry.example\tmore", "https://registry.example/", false},
        {",, ,", "https://registry.example/", true},
        {"registry.example:5000", "https://registry.example:5000/", false},
        {"registry.example:5000", "https://registry.example/", true},
        {"registry.example:443", "https://registry.example/", false},
        {"registry.example:", "https://registry.example/", true},
        {"registry.example:70000", "https://registry.example/", true},
        {".example:443", "https://registry.example/", false},
        {"10.0.0.0/8", "https://10.1.2.3:5000/", false},
        {"10.0.0.0/8", "https://11.1.2.3/", true},
        {"10.1.2.128/25", "https://10.1.2.127/", true},
        {"10.1.2.128/25", "https://10.1.2.200/", false},
        {"10.0.0.0/33", "https://10.0.0.0/", true},
        {"10.0.0.0/", "https://10.0.0.0/", true},
        {"0.0.0.0/0", "https://registry.example/", true},
        {"fd00::/8", "https://[fd12::1]/", false},
        {"fd00::/8", "https://[fe80::1]/", true},
        {"fd00::/8", "https://10.0.0.1/", true},
        {"::1", "https://[::1]:5000/", false},
        {"[::1]", "https://[::1]:5000/", false},
        {"[::1]:5000", "https://[::1]:5000/", false},
        {"[::1]:5001", "https://[::1]:5000/", true},
        {"fd12:0::1", "https://[fd12::1]/", false},
        {"0.0.1", "https://10.0.0.1/", true},
        {"127.0.0.1:5000", "https://127.0.0.1:5000/", false},
        {"[", "https://registry.example/", true},
        {":", "https://registry.example/", true},
        {"/", "https://registry.example/", true},
    };
    ::setenv("https_proxy", "http://proxy.example:3128", 1);
    for (const auto& row : rows) {
        CAPTURE(row.no_proxy);
        CAPTURE(row.url);
        ::setenv("no_proxy", row.no_proxy, 1);
        const auto url = net::parse_url(row.url);
        REQUIRE(url.has_value());
        CHECK(net::proxy_of(*url).empty() != row.proxied);
    }
    ::unsetenv("no_proxy");
    ::unsetenv("https_proxy");
}

TEST_CASE("a variable of proxies that is empty is as one that is absent") {
    ::setenv("https_proxy", "", 1);
    ::setenv("HTTPS_PROXY", "http://proxy.example:3128", 1);
    ::setenv("no_proxy", "", 1);
    ::setenv("NO_PROXY", "other.example", 1);
    CHECK(net::proxy_of(*net::parse_url("https://registry.example/")) == "http://proxy.example:3128");
    CHECK(net::proxy_of(*net::parse_url("https://other.example/")).empty());
    for (const char* name : {"https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"}) ::unsetenv(name);
}

TEST_CASE("the name of a proxy holds no password") {
    for (const char* address : {"http://u:p@proxy.example:3128", "u:p@proxy.example:3128/", "proxy.example:3128",
                                "https://u:p/@p@proxy.example:3128"}) {
        CHECK(net::proxy_name(address) == "proxy.example:3128");
    }
    CHECK(net::proxy_name("http://[::1]:3128") == "[::1]:3128");
    for (const char* address : {"", "http://", "http://a b:1", "p\x1b[0m"})
        CHECK(net::proxy_name(address) == "(not shown)");
    CHECK(net::is_http_proxy("proxy.example:3128"));
    CHECK_FALSE(net::is_http_proxy("SOCKS5h://proxy.example:1080"));
}

TEST_CASE("how public an address is") {
    using net::AddressScope;
    struct Row {
        const char* host;
        std::optional<AddressScope> scope;
    };
    for (const Row& row :
         {Row{"8.8.8.8", AddressScope::global}, Row{"2001:4860::1", AddressScope::global},
          Row{"10.1.2.3", AddressScope::site}, Row{"172.16.0.1", AddressScope::site},
          Row{"172.32.0.1", AddressScope::global}, Row{"192.168.1.1", AddressScope::site},
          Row{"100.64.0.1", AddressScope::site}, Row{"fd00::1", AddressScope::site},
          Row{"[fd00::1]", AddressScope::site}, Row{"127.0.0.1", AddressScope::loopback},
          Row{"127.1", AddressScope::loopback}, Row{"0x7f000001", AddressScope::loopback},
          Row{"2130706433", AddressScope::loopback}, Row{"::1", AddressScope::loopback},
          Row{"::ffff:127.0.0.1", AddressScope::loopback}, Row{"64:ff9b::a00:1", AddressScope::site},
          Row{"2002:a00:1::", AddressScope::site}, Row{"169.254.169.254", AddressScope::link_local},
          Row{"fe80::1", AddressScope::link_local}, Row{"fe80::1%eth0", AddressScope::link_local},
          Row{"0.0.0.0", AddressScope::link_local}, Row{"::", AddressScope::link_local},
          Row{"224.0.0.1", AddressScope::link_local}, Row{"255.255.255.255", AddressScope::link_local},
          Row{"localhost", std::nullopt}, Row{"reg.example.com", std::nullopt}, Row{"", std::nullopt},
          Row{"1.2.3.4.5", std::nullopt}}) {
        CAPTURE(row.host);
        CHECK(net::literal_scope(row.host) == row.scope);
    }
}

}
