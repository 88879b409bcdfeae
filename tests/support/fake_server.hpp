// SPDX-License-Identifier: Apache-2.0
// An HTTP server on a loopback port that does exactly what a test says, also what no decent server would do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kmm::test {

struct FakeRequest {
    std::string method, target, body;
    std::map<std::string, std::string> headers;  ///< names lower case
    [[nodiscard]] std::string header(const std::string& name) const;
};

struct FakeReply {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    std::optional<std::uint64_t> announced_length;  ///< Content-Length if it is to lie
    std::optional<std::size_t> reset_after;         ///< bytes of the body, then the connection is reset
    unsigned drip_ms = 0;                           ///< the body byte by byte, this long apart
    std::vector<std::string> chunks;                ///< instead of the body: chunked encoding, one piece each
    unsigned chunk_ms = 0;                          ///< pause after each chunk
    unsigned hang_ms = 0;                           ///< after the last chunk: nothing, and no end
    bool keep_alive = false;                        ///< the connection takes further requests
    bool no_answer = false;                         ///< the connection is closed without a word
};

/// Key and certificate of a server, made for one test.
struct Identity {
    std::string certificate_pem, key_pem;
    bool old_tls = false;      ///< the server speaks nothing newer than TLS 1.1
    std::string pin;           ///< of the public key: "sha256//BASE64"
    std::string client_ca_pem; ///< clients must show a certificate of this authority
};
struct IdentityOptions {
    std::string name = "localhost";  ///< DNS name; 127.0.0.1 is always added unless `wrong_host`
    bool wrong_host = false;
    bool expired = false;
};
/// A self-signed certificate: the certificate itself serves as the authority's.
[[nodiscard]] Identity make_identity(const IdentityOptions& options = {});

class FakeServer {
public:
    using Handler = std::function<FakeReply(const FakeRequest&)>;
    enum class Family { v4, v6 };
    explicit FakeServer(Handler handler, std::optional<Identity> identity = std::nullopt, Family family = Family::v4);
    ~FakeServer();
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// Everything asked for so far.
    [[nodiscard]] std::vector<FakeRequest> requests() const;
    /// Number of requests whose target contains `text`.
    [[nodiscard]] std::size_t count(const std::string& text) const;
    /// Number of connections accepted so far.
    [[nodiscard]] std::size_t connections() const noexcept { return connections_; }

private:
    void serve();
    void answer(int fd);

    Handler handler_;
    struct Tls;
    std::unique_ptr<Tls> tls_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> connections_{0};
    mutable std::mutex mutex_;
    std::vector<FakeRequest> requests_;
    std::thread thread_;
};

}  // namespace kmm::test
