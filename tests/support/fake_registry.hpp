// SPDX-License-Identifier: Apache-2.0
// A registry in the test's own process: stores what a test pushes, answers as the distribution specification says, and
// lets the test step in before any answer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "registry/layer/hash.hpp"
#include "support/fake_server.hpp"

namespace kmm::test {

struct TestLayer {
    std::string bytes;       ///< as pushed
    std::string diff_id;     ///< "sha256:…" of the plain tar
    std::string media_type;
};

/// A layer of each kind out of a plain tar.
[[nodiscard]] TestLayer gzip_layer(const std::string& tar);
[[nodiscard]] TestLayer zstd_layer(const std::string& tar);
[[nodiscard]] TestLayer plain_layer(const std::string& tar);

/// "sha256:…" of `bytes`.
[[nodiscard]] std::string sha256(const std::string& bytes);
/// {"mediaType":…,"digest":…,"size":…}.
[[nodiscard]] std::string descriptor(const std::string& media_type, const std::string& bytes,
                                     const std::string& more = {});

class FakeRegistry {
public:
    explicit FakeRegistry(std::optional<Identity> identity = std::nullopt);

    /// Puts a blob into the store; returns its digest.
    std::string add_blob(const std::string& bytes);
    /// Puts a manifest under `name` and under its digest; returns the digest.
    std::string add_manifest(const std::string& name, const std::string& media_type, const std::string& bytes);
    /// Pushes a whole OCI image under `name`; returns the manifest's digest.
    std::string add_image(const std::string& name, const std::vector<TestLayer>& layers,
                          const std::string& architecture = "amd64");
    /// The text of such a manifest; its blobs are in the store afterwards.
    std::string image_manifest(const std::vector<TestLayer>& layers, const std::string& architecture = "amd64");

    /// Asked before the store; nullopt for the usual answer.
    std::function<std::optional<FakeReply>(const FakeRequest&)> intercept;
    /// What the store answers, ranges included.
    [[nodiscard]] FakeReply usual(const FakeRequest& request) const;

    [[nodiscard]] FakeServer& server() noexcept { return *server_; }
    /// "127.0.0.1:PORT".
    [[nodiscard]] std::string host() const;
    /// "127.0.0.1:PORT/team/driver:v1".
    [[nodiscard]] std::string reference(const std::string& tail = ":v1") const;

private:
    struct Manifest {
        std::string media_type, bytes;
    };
    std::map<std::string, std::string> blobs_;
    std::map<std::string, Manifest> manifests_;
    std::unique_ptr<FakeServer> server_;  ///< last: its thread uses the rest
};

}  // namespace kmm::test
