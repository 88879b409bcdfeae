// SPDX-License-Identifier: Apache-2.0
// The seam through which every byte on the network goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/address.hpp"

namespace kmm::net {

struct TlsSettings {
    bool insecure = false;   ///< plain HTTP and unverified TLS are acceptable for this request
    std::string ca_file;     ///< PEM, in addition to the system's; "" for none
    std::vector<std::string> more_ca_files;  ///< likewise
    std::string client_certificate, client_key;  ///< PEM files to show who we are; "" for none
    std::string ca_pem;      ///< PEM text, instead of the system's authorities; "" for none
    std::string client_certificate_pem, client_key_pem;  ///< the same as text; they win over the files
    std::string server_name; ///< name that the certificate must have and that is asked for; "" is the URL's host
    std::string pinned_key;  ///< "sha256//BASE64" of the public key that the server must have, several with ";"
                             ///< between; "" is any
    friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

/// What the other end may do to a body on its way. The sink gets it undone.
enum class Encoding { identity, gzip };

struct Request {
    std::string method = "GET";
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    TlsSettings tls;
    std::chrono::milliseconds connect_timeout{15'000};
    std::chrono::milliseconds timeout{600'000};  ///< whole exchange
    std::uint64_t stall_bytes_per_second = 1024; ///< slower than this for stall_window is a failure
    std::chrono::seconds stall_window{30};
    /// The least public kind of address that the connection may go to, checked on the address really connected to (so
    /// that a DNS answer cannot point a request inwards). A proxy connects to what it likes: then the name is looked up
    /// here, and what this machine does not know either is left to the proxy.
    AddressScope scope_max = AddressScope::link_local;
    /// The host whose answer led to this request. Through a proxy its addresses are not seen: a name may be as little
    /// public as it.
    std::string referred_by;
    Encoding encoding = Encoding::identity;
    std::string
        proxy;  ///< URL of the proxy (http, https, socks5, socks5h), for every host; "" is what `proxy_rule` says
    enum class ProxyRule {
        variables,
        direct
    } proxy_rule = ProxyRule::variables;  ///< direct: none, whatever the variables say
    /// Asked about once a second while the exchange lasts: true ends it with Error interrupted 130 "interrupted".
    std::function<bool()> cancelled;
};

/// Headers of the response; names lower case, in order of arrival.
struct Response {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string peer_address;  ///< numeric address of the other end, "" if unknown or behind a proxy
    std::string proxy;  ///< name of the proxy that may have given this answer itself: for an http URL through one of
                        ///< HTTP; else ""
    /// The value of the first header of that name (lower case), nullopt if there is none.
    [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
    /// The values of all headers of that name, in order.
    [[nodiscard]] std::vector<std::string> all_headers(std::string_view name) const;
};

/// Who has given `response`, for messages: `server`, or both where a proxy may have answered itself.
[[nodiscard]] std::string speaker(const Response& response, const std::string& server);

/// Receives the body in pieces after the status and headers are known; returning false stops the transfer without
/// error. An Error thrown by it is passed on to the caller of send().
using BodySink = std::function<bool(const Response& response, std::string_view piece)>;

class HttpClient {
public:
    virtual ~HttpClient() = default;
    /// One exchange, redirects not followed (callers re-validate each hop). Completed exchanges of any status return.
    /// Errors: unavailable 69 "network" (retryable; details url redacted) for connection, DNS, stall, early end;
    /// integrity 76 "tls" for certificate problems, with a hint; data "bad-certificate" for a CA file without any;
    /// timeout 124 "network-timeout" when `timeout` is over;
    /// no_permission 77 "address-refused" for an address beyond `scope_max`; data "bad-url".
    [[nodiscard]] virtual Response send(const Request& request, const BodySink& sink) = 0;
};

/// Over libcurl easy handles with connection reuse. Honours the usual proxy variables. Not thread safe: one per thread.
class CurlHttpClient final : public HttpClient {
public:
    CurlHttpClient();
    ~CurlHttpClient() override;
    CurlHttpClient(const CurlHttpClient&) = delete;
    CurlHttpClient& operator=(const CurlHttpClient&) = delete;
    [[nodiscard]] Response send(const Request& request, const BodySink& sink) override;

private:
    struct Impl;
    Impl* impl_;
};

/// Loads libcurl now: a process that goes to another root would not find it there. Errors: those of sys::SharedLibrary.
void load_curl();

/// Without user-info and with the query replaced by "…": for messages.
[[nodiscard]] std::string redact_url(std::string_view url);

}  // namespace kmm::net
