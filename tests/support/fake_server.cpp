// SPDX-License-Identifier: Apache-2.0
#include "support/fake_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string_view>

namespace kmm::test {

namespace {

void require(bool ok, const char* what) {
    if (!ok) {
        throw std::runtime_error(what);
    }
}

std::string pem_text(BIO* memory) {
    char* data = nullptr;
    const long length = BIO_get_mem_data(memory, &data);
    std::string text(data, static_cast<std::size_t>(length));
    BIO_free(memory);
    return text;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

}  // namespace

std::string FakeRequest::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
}

Identity make_identity(const IdentityOptions& options) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    require(key != nullptr && certificate != nullptr, "no key");
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate), options.expired ? -3600 : 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    const auto* common = reinterpret_cast<const unsigned char*>("kmm-tools test");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    const std::string names = options.wrong_host ? "DNS:elsewhere.example" : "DNS:" + options.name + ",IP:127.0.0.1";
    for (const auto& [nid, value] : std::vector<std::pair<int, std::string>>{
             {NID_subject_alt_name, names}, {NID_basic_constraints, "critical,CA:TRUE"}}) {
        X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
        require(extension != nullptr, "no extension");
        X509_add_ext(certificate, extension, -1);
        X509_EXTENSION_free(extension);
    }
    require(X509_sign(certificate, key, EVP_sha256()) > 0, "not signed");
    Identity identity;
    BIO* memory = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(memory, certificate);
    identity.certificate_pem = pem_text(memory);
    memory = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(memory, key, nullptr, nullptr, 0, nullptr, nullptr);
    identity.key_pem = pem_text(memory);
    unsigned char* info = nullptr;
    const int info_bytes = i2d_PUBKEY(key, &info);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_bytes = 0;
    require(info_bytes > 0 && EVP_Digest(info, static_cast<std::size_t>(info_bytes), digest, &digest_bytes,
                                         EVP_sha256(), nullptr) == 1,
            "no pin");
    OPENSSL_free(info);
    unsigned char text[64];
    EVP_EncodeBlock(text, digest, static_cast<int>(digest_bytes));
    identity.pin = std::string("sha256//") + reinterpret_cast<const char*>(text);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return identity;
}

struct FakeServer::Tls {
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());

    explicit Tls(const Identity& identity) {
        BIO* memory =
            BIO_new_mem_buf(identity.certificate_pem.data(), static_cast<int>(identity.certificate_pem.size()));
        X509* certificate = PEM_read_bio_X509(memory, nullptr, nullptr, nullptr);
        BIO_free(memory);
        memory = BIO_new_mem_buf(identity.key_pem.data(), static_cast<int>(identity.key_pem.size()));
        EVP_PKEY* key = PEM_read_bio_PrivateKey(memory, nullptr, nullptr, nullptr);
        BIO_free(memory);
        require(SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1,
                "no TLS");
        if (identity.old_tls) {
            SSL_CTX_set_security_level(context, 0);
            SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
            SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
        }
        if (!identity.client_ca_pem.empty()) {
            memory = BIO_new_mem_buf(identity.client_ca_pem.data(), static_cast<int>(identity.client_ca_pem.size()));
            X509* authority = PEM_read_bio_X509(memory, nullptr, nullptr, nullptr);
            BIO_free(memory);
            X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority);
            X509_free(authority);
            SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
            SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
        }
        X509_free(certificate);
        EVP_PKEY_free(key);
    }
    ~Tls() { SSL_CTX_free(context); }
    Tls(const Tls&) = delete;
    Tls& operator=(const Tls&) = delete;
};

namespace {

/// One connection, with or without TLS.
struct Stream {
    int fd;
    SSL* ssl;

    std::string read() const {
        std::string buffer(16384, '\0');
        const auto got = ssl != nullptr ? static_cast<ssize_t>(SSL_read(ssl, buffer.data(), 16384))
                                        : ::read(fd, buffer.data(), buffer.size());
        buffer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return buffer;
    }
    bool write(std::string_view bytes) const {
        while (!bytes.empty()) {
            const std::size_t piece = std::min<std::size_t>(bytes.size(), 1U << 20U);
            const auto put = ssl != nullptr
                                 ? static_cast<ssize_t>(SSL_write(ssl, bytes.data(), static_cast<int>(piece)))
                                 : ::send(fd, bytes.data(), piece, MSG_NOSIGNAL);
            if (put <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(put));
        }
        return true;
    }
};

std::optional<FakeRequest> read_request(const Stream& stream) {
    std::string text;
    std::size_t end = std::string::npos;
    while ((end = text.find("\r\n\r\n")) == std::string::npos) {
        const std::string piece = stream.read();
        if (piece.empty()) {
            return std::nullopt;
        }
        text += piece;
        if (text.front() == '\x16') {
            return std::nullopt;  // a TLS greeting: a plain server hangs up
        }
    }
    FakeRequest request;
    std::size_t at = text.find("\r\n");
    const std::string line = text.substr(0, at);
    request.method = line.substr(0, line.find(' '));
    request.target = line.substr(request.method.size() + 1, line.rfind(' ') - request.method.size() - 1);
    while (at < end) {
        at += 2;
        const std::size_t stop = text.find("\r\n", at);
        const std::string header = text.substr(at, stop - at);
        const std::size_t colon = header.find(": ");
        if (colon != std::string::npos) {
            request.headers[lower(header.substr(0, colon))] = header.substr(colon + 2);
        }
        at = stop;
    }
    request.body = text.substr(end + 4);
    const std::string length = request.header("content-length");
    while (!length.empty() && request.body.size() < std::stoul(length)) {
        const std::string piece = stream.read();
        if (piece.empty()) {
            return std::nullopt;
        }
        request.body += piece;
    }
    return request;
}

void write_chunks(const Stream& stream, const std::string& head, const FakeReply& reply) {
    stream.write(head + "Transfer-Encoding: chunked\r\n\r\n");
    for (const auto& chunk : reply.chunks) {
        char size[32];
        std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
        stream.write(size + chunk + "\r\n");
        ::usleep(reply.chunk_ms * 1000);
    }
    if (reply.hang_ms != 0) {
        ::usleep(reply.hang_ms * 1000);
    } else {
        stream.write("0\r\n\r\n");
    }
}

}  // namespace

FakeServer::FakeServer(Handler handler, std::optional<Identity> identity, Family family)
    : handler_(std::move(handler)) {
    static_cast<void>(std::signal(SIGPIPE, SIG_IGN));  // OpenSSL writes without MSG_NOSIGNAL
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
        ::unsetenv(name);  // tests talk to the loopback, whatever the user's shell says
    }
    if (identity) {
        tls_ = std::make_unique<Tls>(*identity);
    }
    const bool is_v6 = family == Family::v6;
    listener_ = ::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 address6{};
    address6.sin6_family = AF_INET6;
    address6.sin6_addr = in6addr_loopback;
    auto* generic = is_v6 ? reinterpret_cast<sockaddr*>(&address6) : reinterpret_cast<sockaddr*>(&address);
    socklen_t length = is_v6 ? sizeof address6 : sizeof address;
    require(listener_ >= 0 && ::bind(listener_, generic, length) == 0 && ::listen(listener_, 16) == 0 &&
                ::getsockname(listener_, generic, &length) == 0, "no server socket");
    port_ = ntohs(is_v6 ? address6.sin6_port : address.sin_port);
    thread_ = std::thread([this] { serve(); });
}

FakeServer::~FakeServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);  // wakes the thread
    thread_.join();
    ::close(listener_);
}

void FakeServer::serve() {
    while (!stopping_) {
        pollfd wait{listener_, POLLIN, 0};
        if (::poll(&wait, 1, 1000) <= 0) {
            continue;
        }
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) {
            ++connections_;
            answer(fd);
            ::close(fd);
        }
    }
}

namespace {

/// Until the other side has gone: closed with something unread, a connection is reset, and what was written last is
/// lost.
void leave(int fd) {
    ::shutdown(fd, SHUT_WR);
    std::array<char, 4096> unread{};
    while (::read(fd, unread.data(), unread.size()) > 0) {
    }
}

}  // namespace

void FakeServer::answer(int fd) {
    const timeval patience{10, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    Stream stream{fd, nullptr};
    if (tls_) {
        stream.ssl = SSL_new(tls_->context);
        SSL_set_fd(stream.ssl, fd);
        if (SSL_accept(stream.ssl) != 1) {
            SSL_free(stream.ssl);
            leave(fd);
            return;
        }
    }
    bool goes_on = true;
    while (goes_on) {
        const auto request = read_request(stream);
        if (!request) {
            break;
        }
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(*request);
        }
        const FakeReply reply = handler_(*request);
        goes_on = reply.keep_alive && !stopping_;
        if (reply.no_answer) {
            break;
        }
        std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Status\r\n";
        head += goes_on ? "" : "Connection: close\r\n";
        for (const auto& [name, value] : reply.headers) {
            head += name + ": " + value + "\r\n";
        }
        if (!reply.chunks.empty() || reply.hang_ms != 0) {
            write_chunks(stream, head, reply);
            continue;
        }
        head += "Content-Length: " + std::to_string(reply.announced_length.value_or(reply.body.size())) + "\r\n\r\n";
        const bool reset = reply.reset_after.has_value();
        const std::string_view body =
            std::string_view(reply.body).substr(0, reply.reset_after.value_or(reply.body.size()));
        if (reply.drip_ms != 0) {
            stream.write(head);
            for (std::size_t i = 0; i < body.size() && stream.write(body.substr(i, 1)); ++i) {
                ::usleep(reply.drip_ms * 1000);
            }
        } else {
            stream.write(head) && (request->method == "HEAD" || stream.write(body));
        }
        if (reset) {
            ::usleep(30'000);  // let the bytes arrive: a reset discards what is unread
            const linger hard{1, 0};
            ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        } else if (!goes_on) {
            if (stream.ssl != nullptr) {
                SSL_shutdown(stream.ssl);
            }
            ::shutdown(fd, SHUT_WR);
            char rest[256];
            while (::read(fd, rest, sizeof rest) > 0) {
            }
        }
    }
    SSL_free(stream.ssl);
}

std::vector<FakeRequest> FakeServer::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

std::size_t FakeServer::count(const std::string& text) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(requests_.begin(), requests_.end(), [&](const FakeRequest& request) {
        return request.target.find(text) != std::string::npos;
    }));
}

}  // namespace kmm::test
