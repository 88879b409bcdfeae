// SPDX-License-Identifier: Apache-2.0
// The one place that knows libcurl.
#include <curl/curl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "net/ca_bundle.hpp"
#include "net/exchange_rules.hpp"
#include "net/http.hpp"
#include "net/proxy.hpp"
#include "net/tls_files.hpp"
#include "net/tls_words.hpp"
#include "net/url.hpp"
#include "sys/shared_library.hpp"

namespace kmm::net {

namespace {

constexpr std::size_t k_header_bytes_max = 256U << 10U;

/// What is called of libcurl. With the thirty libraries that it needs it takes half of the start of a process, and most
/// commands ask no server: it is loaded with the first request.
class Curl {
    sys::SharedLibrary library_{"libcurl.so.4", "libcurl4"};
    sys::SharedLibrary tls_{"libssl.so.3", "libssl3"};  // libcurl has loaded it

public:
    decltype(&SSL_CTX_get_cert_store) ssl_ctx_get_cert_store =
        tls_.function<decltype(SSL_CTX_get_cert_store)>("SSL_CTX_get_cert_store");
    decltype(&curl_easy_cleanup) easy_cleanup = library_.function<decltype(curl_easy_cleanup)>("curl_easy_cleanup");
    decltype(&curl_easy_getinfo) easy_getinfo = library_.function<decltype(curl_easy_getinfo)>("curl_easy_getinfo");
    decltype(&curl_easy_init) easy_init = library_.function<decltype(curl_easy_init)>("curl_easy_init");
    decltype(&curl_easy_perform) easy_perform = library_.function<decltype(curl_easy_perform)>("curl_easy_perform");
    decltype(&curl_easy_reset) easy_reset = library_.function<decltype(curl_easy_reset)>("curl_easy_reset");
    decltype(&curl_easy_setopt) easy_setopt = library_.function<decltype(curl_easy_setopt)>("curl_easy_setopt");
    decltype(&curl_easy_strerror) easy_strerror = library_.function<decltype(curl_easy_strerror)>("curl_easy_strerror");
    decltype(&curl_slist_append) slist_append = library_.function<decltype(curl_slist_append)>("curl_slist_append");
    decltype(&curl_slist_free_all) slist_free_all =
        library_.function<decltype(curl_slist_free_all)>("curl_slist_free_all");

    Curl() { library_.function<decltype(curl_global_init)>("curl_global_init")(CURL_GLOBAL_DEFAULT); }
};

const Curl& curl() {
    static const Curl loaded;
    return loaded;
}

struct EasyDeleter {
    void operator()(CURL* handle) const { curl().easy_cleanup(handle); }
};
struct ListDeleter {
    void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using EasyHandle = std::unique_ptr<CURL, EasyDeleter>;
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

/// Everything that libcurl's callbacks share during one exchange.
struct Exchange {
    const Request& request;
    const BodySink& sink;
    CURL* handle = nullptr;
    const TlsFiles& files;
    Response response;
    std::size_t header_bytes = 0;
    bool stopped = false;
    bool check_address = false;
    AddressScope& widest;  ///< of the addresses that the handle's connections go to
    std::string proxy;     ///< its address, "" without one; may hold a password
    std::string answerer;  ///< Response::proxy
    std::string refused_address;
    const Authority* bad_authority = nullptr;  ///< without certificates
    std::exception_ptr failure;
    bool cancelled = false;
};

void read_peer(Exchange& exchange) {
    const char* address = nullptr;
    if (!exchange.proxy.empty()) {
        return;  // that would be the proxy's
    }
    if (curl().easy_getinfo(exchange.handle, CURLINFO_PRIMARY_IP, &address) == CURLE_OK && address != nullptr) {
        exchange.response.peer_address = address;
    }
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    const std::size_t length = size * count;
    try {
        std::string_view line(data, length);
        exchange.header_bytes += length;
        if (exchange.header_bytes > k_header_bytes_max) {
            throw Error(Exit::unavailable, "network", "expected at most 256 KiB of response headers, found more");
        }
        if (line.starts_with("HTTP/")) {
            exchange.response = Response{};
            exchange.response.proxy = exchange.answerer;
            long status = 0;
            curl().easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &status);
            exchange.response.status = static_cast<int>(status);
            return length;
        }
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos) {
            exchange.response.headers.emplace_back(base::to_lower(base::trim(line.substr(0, colon))),
                                                   std::string(base::trim(line.substr(colon + 1))));
        }
    } catch (...) {
        exchange.failure = std::current_exception();
        return 0;
    }
    return length;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    const std::size_t length = size * count;
    try {
        if (exchange.response.peer_address.empty()) {
            read_peer(exchange);
        }
        if (exchange.sink && !exchange.sink(exchange.response, std::string_view(data, length))) {
            exchange.stopped = true;
            return 0;
        }
    } catch (...) {
        exchange.failure = std::current_exception();
        return 0;
    }
    return length;
}

curl_socket_t on_open_socket(void* user, curlsocktype /*purpose*/, curl_sockaddr* address) {
    auto& exchange = *static_cast<Exchange*>(user);
    std::array<char, 64> text{};
    const int fault = ::getnameinfo(&address->addr, address->addrlen, text.data(), static_cast<socklen_t>(text.size()),
                                    nullptr, 0, NI_NUMERICHOST);
    const auto scope = fault == 0 ? literal_scope(text.data()) : std::optional<AddressScope>();
    if (exchange.check_address && (!scope || *scope > exchange.request.scope_max)) {
        exchange.refused_address = fault == 0 ? text.data() : "unknown";
        return CURL_SOCKET_BAD;
    }
    exchange.widest = std::max(exchange.widest, scope.value_or(AddressScope::link_local));
    const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    // With the idle time and interval below: a peer that vanished is noticed within a minute.
    const int probes = 3;
    if (fd >= 0) ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    return fd;
}

/// False if there is none, or one is damaged.
bool add_certificates(X509_STORE* store, const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                         BIO_free);
    char no_passphrase[] = "";  // without one OpenSSL asks on the terminal
    bool is_any = false;
    ERR_clear_error();
    while (X509* certificate = text ? PEM_read_bio_X509_AUX(text.get(), nullptr, nullptr, no_passphrase) : nullptr) {
        is_any = X509_STORE_add_cert(store, certificate) == 1 || is_any;
        X509_free(certificate);
    }
    const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return is_any && is_end;
}

CURLcode on_ssl_context(CURL* /*handle*/, void* context, void* user) {
    auto& exchange = *static_cast<Exchange*>(user);
    X509_STORE* store = curl().ssl_ctx_get_cert_store(static_cast<SSL_CTX*>(context));
    for (const Authority& authority : exchange.files.authorities) {
        if (!add_certificates(store, authority.pem)) {
            exchange.bad_authority = &authority;
            return CURLE_SSL_CACERT_BADFILE;
        }
    }
    return CURLE_OK;
}

int on_progress(void* user, curl_off_t /*to_get*/, curl_off_t /*got*/, curl_off_t /*to_put*/, curl_off_t /*put*/) {
    auto& exchange = *static_cast<Exchange*>(user);
    try {
        exchange.cancelled = exchange.request.cancelled();
    } catch (...) {
        exchange.failure = std::current_exception();
        return 1;
    }
    return exchange.cancelled ? 1 : 0;
}

template <typename Value>
void set(CURL* handle, CURLoption option, Value value) {
    const CURLcode code = curl().easy_setopt(handle, option, value);
    if (code != CURLE_OK) {
        throw bug(fmt::format("libcurl refused an option: {}", curl().easy_strerror(code)));
    }
}

void set_blob(CURL* handle, CURLoption option, const std::string& pem) {
    if (pem.empty()) {
        return;
    }
    curl_blob blob{};
    blob.data = const_cast<char*>(pem.data());  // copied at once
    blob.len = pem.size();
    blob.flags = CURL_BLOB_COPY;
    set(handle, option, &blob);
}

void set_certificates(CURL* handle, const TlsSettings& tls, const TlsFiles& files) {
    set_blob(handle, CURLOPT_CAINFO_BLOB, tls.ca_pem);
    if (!tls.ca_pem.empty()) {
        set(handle, CURLOPT_CAPATH, nullptr);
    } else if (tls.insecure) {  // OpenSSL would read the system's 140 authorities for nobody
        set(handle, CURLOPT_CAINFO, nullptr);
        set(handle, CURLOPT_CAPATH, nullptr);
    } else {
        const std::string bundle =
            system_ca_bundle([](const std::string& file) { return ::access(file.c_str(), R_OK) == 0; });
        set(handle, CURLOPT_CAINFO, bundle.empty() ? nullptr : bundle.c_str());
        set(handle, CURLOPT_PROXY_CAINFO, bundle.empty() ? nullptr : bundle.c_str());
    }
    const bool is_text = !tls.client_certificate_pem.empty();
    set_blob(handle, CURLOPT_SSLCERT_BLOB, is_text ? tls.client_certificate_pem : files.client_certificate_pem);
    set_blob(handle, CURLOPT_SSLKEY_BLOB, is_text ? tls.client_key_pem : files.client_key_pem);
}

bool is_tls_fault(CURLcode code) {
    switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS:
        case CURLE_SSL_CRL_BADFILE: return true;
        default: return false;
    }
}

/// Of a proxy that does not make the connection that CONNECT asks for.
std::optional<Error> tunnel_refusal(const Exchange& exchange, const std::string& url) {
    long status = 0;
    constexpr long not_made = 300;
    if (exchange.proxy.empty() ||
        curl().easy_getinfo(exchange.handle, CURLINFO_HTTP_CONNECTCODE, &status) != CURLE_OK || status < not_made) {
        return std::nullopt;
    }
    Error error = proxy_refusal(proxy_name(exchange.proxy), static_cast<int>(status), "a connection");
    error.detail("url", url);
    return error;
}

/// True if the TLS that failed was spoken to the proxy: no connection through it was made yet.
bool is_tls_of_proxy(const Exchange& exchange) {
    long status = 0;
    curl().easy_getinfo(exchange.handle, CURLINFO_HTTP_CONNECTCODE, &status);
    return status == 0 && base::to_lower(exchange.proxy).starts_with("https://");
}

Error classify(CURLcode code, const std::string& text, const Exchange& exchange) {
    const Request& request = exchange.request;
    const std::string url = redact_url(request.url);
    const std::string reason = base::escape(base::trim(text.empty() ? curl().easy_strerror(code) : text));
    if (!exchange.refused_address.empty()) {
        return address_refused(exchange.refused_address, request.url);
    }
    if (quotes_proxy(reason)) {
        return bad_proxy_address(reason.substr(0, reason.find('\'')) + "(not shown)").detail("url", url);
    }
    if (auto refusal = tunnel_refusal(exchange, url)) {
        return std::move(*refusal);
    }
    if (exchange.bad_authority != nullptr) {
        return bad_authority(*exchange.bad_authority);
    }
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH) {
        return Error(Exit::integrity, "tls", "TLS: " + reason)
            .detail("url", url)
            .detail("expected", request.tls.pinned_key)
            .hint("the server has another key than --pinned-key names: if it was changed on purpose, name the new one");
    }
    if (is_tls_fault(code) || refuses_certificate(reason)) {
        const bool by_proxy = is_tls_of_proxy(exchange);
        std::string what = by_proxy ? "TLS with the proxy " + proxy_name(exchange.proxy) : "TLS";
        if (code == CURLE_SSL_CERTPROBLEM && !request.tls.client_certificate.empty()) {
            what += ": " + base::escape(request.tls.client_certificate + " and " + request.tls.client_key);
        }
        return Error(Exit::integrity, "tls", what + ": " + reason)
            .detail("url", url)
            .hint(by_proxy && !speaks_tls(reason)
                      ? "the proxy speaks no TLS on this port: http://HOST:PORT as its address"
                      : tls_hint(reason));
    }
    double seconds = 0;
    curl().easy_getinfo(exchange.handle, CURLINFO_TOTAL_TIME, &seconds);
    if (code == CURLE_OPERATION_TIMEDOUT && seconds * 1000.0 + 50.0 >= static_cast<double>(request.timeout.count())) {
        return Error(Exit::timeout, "network-timeout",
                     fmt::format("no complete answer within {}", base::format_duration(request.timeout)))
            .detail("url", url);
    }
    if (code == CURLE_OPERATION_TIMEDOUT && request.stall_bytes_per_second == 1 &&
        reason.starts_with("Operation too slow")) {
        return Error(Exit::unavailable, "network",
                     fmt::format("no more data for {}", base::format_duration(request.stall_window)))
            .detail("url", url)
            .retryable();
    }
    if (code == CURLE_OUT_OF_MEMORY) {  // mostly libcurl's limit of 100 kB, which has no code of its own before 8.6
        return Error(Exit::unavailable, "network", "a header of the answer is too long, or memory is short")
            .detail("url", url)
            .hint("ask the address with curl -v: a proxy or another server may answer there");
    }
    return Error(Exit::unavailable, "network", reason).detail("url", url).retryable();
}

HeaderList list_of(const std::vector<std::string>& lines) {
    HeaderList list;
    for (const std::string& line : lines) {
        curl_slist* longer = curl().slist_append(list.get(), line.c_str());
        if (longer == nullptr) {
            throw bug("libcurl is out of memory");
        }
        static_cast<void>(list.release());
        list.reset(longer);
    }
    return list;
}

/// Method, body, protocols and limits.
void set_transfer(CURL* handle, const Request& request) {
    set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    set(handle, CURLOPT_FOLLOWLOCATION, 0L);
    set(handle, CURLOPT_NOSIGNAL, 1L);
    set(handle, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(handle, CURLOPT_UNRESTRICTED_AUTH, 0L);
    set(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(handle, CURLOPT_USERAGENT, "kmm-tools/" KMM_VERSION);
    if (request.encoding == Encoding::gzip) {
        set(handle, CURLOPT_ACCEPT_ENCODING, "gzip");
    }
    // Refused while the handle still holds the buffer of a request that failed before it connected: then it has this
    // size.
    (void)curl().easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L * 1024L);
    set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
    set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(request.stall_bytes_per_second));
    set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_window.count()));
    set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    set(handle, CURLOPT_TCP_KEEPIDLE, 20L);
    set(handle, CURLOPT_TCP_KEEPINTVL, 10L);
    if (request.method == "HEAD") {
        set(handle, CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
        set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
        set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
        set(handle, CURLOPT_POSTFIELDS, request.body.c_str());
    }
}

void set_tls(CURL* handle, const TlsSettings& tls, const TlsFiles& files) {
    set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(handle, CURLOPT_SSL_VERIFYPEER, tls.insecure ? 0L : 1L);
    set(handle, CURLOPT_SSL_VERIFYHOST, tls.insecure ? 0L : 2L);
    set(handle, CURLOPT_KEYPASSWD, "");  // without one OpenSSL asks on the terminal for that of an encrypted key
    set_certificates(handle, tls, files);
    if (!tls.pinned_key.empty()) {
        set(handle, CURLOPT_PINNEDPUBLICKEY, tls.pinned_key.c_str());
    }
}

void set_proxy(CURL* handle, const Exchange& exchange) {
    const Request& request = exchange.request;
    if (!request.proxy.empty()) {
        set(handle, CURLOPT_PROXY, request.proxy.c_str());
        set(handle, CURLOPT_NOPROXY, "");
    } else if (!exchange.proxy.empty()) {
        set(handle, CURLOPT_NOPROXY, "");  // no_proxy has been heard already
    } else {
        set(handle, CURLOPT_PROXY, "");
    }
}

void set_callbacks(CURL* handle, Exchange& exchange) {
    if (exchange.request.cancelled) {
        set(handle, CURLOPT_NOPROGRESS, 0L);
        set(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
        set(handle, CURLOPT_XFERINFODATA, &exchange);
    }
    if (!exchange.files.authorities.empty()) {
        set(handle, CURLOPT_CA_CACHE_TIMEOUT, 0L);
        set(handle, CURLOPT_SSL_CTX_FUNCTION, on_ssl_context);
        set(handle, CURLOPT_SSL_CTX_DATA, &exchange);
    }
    set(handle, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    set(handle, CURLOPT_OPENSOCKETDATA, &exchange);
    set(handle, CURLOPT_HEADERFUNCTION, on_header);
    set(handle, CURLOPT_HEADERDATA, &exchange);
    set(handle, CURLOPT_WRITEFUNCTION, on_body);
    set(handle, CURLOPT_WRITEDATA, &exchange);
}

}  // namespace

struct CurlHttpClient::Impl {
    EasyHandle handle;
    TlsSettings tls;  ///< the handle's connections were made with
    TlsFiles files;   ///< of these
    AddressScope widest = AddressScope::global;
};

CurlHttpClient::CurlHttpClient() : impl_(new Impl) {}

CurlHttpClient::~CurlHttpClient() { delete impl_; }

Response CurlHttpClient::send(const Request& request, const BodySink& sink) {
    const auto url = parse_url(request.url);
    if (!url || !url->user_info.empty()) {
        throw Error(Exit::data, "bad-url", "expected an http or https URL without user name, found \"" +
                                               redact_url(request.url) + "\"");
    }
    // Connections are only reused under the same trust settings.
    if (!impl_->handle || impl_->tls != request.tls) {
        impl_->files = read_tls_files(request.tls);
        impl_->handle.reset(curl().easy_init());
        impl_->tls = request.tls;
        impl_->widest = AddressScope::global;
        if (!impl_->handle) {
            throw bug("libcurl gave no handle");
        }
    }
    CURL* handle = impl_->handle.get();
    curl().easy_reset(handle);
    const Way way = way_of(request, *url);
    Exchange exchange{request,           sink,           handle,    impl_->files, {}, 0,       false,
                      way.check_address, impl_->widest, way.proxy, way.answerer, {}, nullptr, {}, false};
    std::array<char, CURL_ERROR_SIZE> text{};
    Url target = *url;
    HeaderList connect_to;
    const bool is_renamed = !request.tls.server_name.empty() && request.tls.server_name != url->host;
    if (is_renamed) {
        // The certificate is asked for and checked under another name, the connection goes where it went.
        target.host = request.tls.server_name;
        connect_to = list_of({fmt::format("{}:{}", host_and_port(target), host_and_port(*url))});
        set(handle, CURLOPT_CONNECT_TO, connect_to.get());
    }
    const HeaderList headers = list_of(header_lines(request, is_renamed ? host_and_port(*url) : ""));
    set(handle, CURLOPT_HTTPHEADER, headers.get());
    set(handle, CURLOPT_URL, is_renamed ? target.to_string().c_str() : request.url.c_str());
    set(handle, CURLOPT_ERRORBUFFER, text.data());
    set_transfer(handle, request);
    set_tls(handle, request.tls, impl_->files);
    set_proxy(handle, exchange);
    set_callbacks(handle, exchange);
    if (exchange.check_address && impl_->widest > request.scope_max) {
        // A connection made for another request may go further inwards than this one may.
        set(handle, CURLOPT_FRESH_CONNECT, 1L);
    }
    const CURLcode code = curl().easy_perform(handle);
    read_peer(exchange);
    if (exchange.failure) {
        std::rethrow_exception(exchange.failure);
    }
    if (exchange.cancelled) {
        throw Error(Exit::interrupted, "interrupted", "the request was interrupted")
            .detail("url", redact_url(request.url));
    }
    if (code != CURLE_OK && !exchange.stopped) {
        Error error = classify(code, text.data(), exchange);
        if (!exchange.proxy.empty()) {
            error.detail("proxy", proxy_name(exchange.proxy));
        }
        throw error;
    }
    return exchange.response;
}

void load_curl() {
    static_cast<void>(curl());
}

}  // namespace kmm::net
