// SPDX-License-Identifier: Apache-2.0
#include "support/fake_registry.hpp"

#include "image/manifest.hpp"
#include "support/tar_builder.hpp"

namespace kmm::test {

std::string sha256(const std::string& bytes) { return registry::digest_of(bytes).to_string(); }

TestLayer gzip_layer(const std::string& tar) {
    return {gzip(tar), sha256(tar), "application/vnd.oci.image.layer.v1.tar+gzip"};
}
TestLayer zstd_layer(const std::string& tar) {
    return {zstd(tar), sha256(tar), "application/vnd.oci.image.layer.v1.tar+zstd"};
}
TestLayer plain_layer(const std::string& tar) { return {tar, sha256(tar), "application/vnd.oci.image.layer.v1.tar"}; }

std::string descriptor(const std::string& media_type, const std::string& bytes, const std::string& more) {
    return R"({"mediaType":")" + media_type + R"(","digest":")" + sha256(bytes) + R"(","size":)" +
           std::to_string(bytes.size()) + more + "}";
}

FakeRegistry::FakeRegistry(std::optional<Identity> identity)
    : server_(std::make_unique<FakeServer>(
          [this](const FakeRequest& request) {
              if (intercept) {
                  if (auto reply = intercept(request)) {
                      return std::move(*reply);
                  }
              }
              return usual(request);
          },
          std::move(identity))) {}

std::string FakeRegistry::add_blob(const std::string& bytes) {
    const std::string digest = sha256(bytes);
    blobs_[digest] = bytes;
    return digest;
}

std::string FakeRegistry::add_manifest(const std::string& name, const std::string& media_type,
                                       const std::string& bytes) {
    const std::string digest = sha256(bytes);
    manifests_[name] = Manifest{media_type, bytes};
    manifests_[digest] = Manifest{media_type, bytes};
    return digest;
}

std::string FakeRegistry::image_manifest(const std::vector<TestLayer>& layers, const std::string& architecture) {
    std::string ids;
    std::string list;
    for (const TestLayer& layer : layers) {
        ids += (ids.empty() ? "\"" : ",\"") + layer.diff_id + "\"";
        list += (list.empty() ? "" : ",") + descriptor(layer.media_type, layer.bytes);
        add_blob(layer.bytes);
    }
    const std::string config = R"({"architecture":")" + architecture +
                               R"(","os":"linux","rootfs":{"type":"layers","diff_ids":[)" + ids + "]}}";
    add_blob(config);
    return R"({"schemaVersion":2,"mediaType":")" + std::string(image::k_oci_manifest) + R"(","config":)" +
           descriptor(std::string(image::k_oci_config), config) + R"(,"layers":[)" + list + "]}";
}

std::string FakeRegistry::add_image(const std::string& name, const std::vector<TestLayer>& layers,
                                    const std::string& architecture) {
    return add_manifest(name, std::string(image::k_oci_manifest), image_manifest(layers, architecture));
}

std::string FakeRegistry::host() const { return "127.0.0.1:" + std::to_string(server_->port()); }

std::string FakeRegistry::reference(const std::string& tail) const { return host() + "/team/driver" + tail; }

FakeReply FakeRegistry::usual(const FakeRequest& request) const {
    FakeReply reply;
    if (request.target == "/v2/") {
        return reply;
    }
    const std::string name = request.target.substr(request.target.rfind('/') + 1);
    if (request.target.find("/manifests/") != std::string::npos) {
        if (const auto found = manifests_.find(name); found != manifests_.end()) {
            reply.headers.emplace_back("Content-Type", found->second.media_type);
            reply.headers.emplace_back("Docker-Content-Digest", sha256(found->second.bytes));
            reply.body = found->second.bytes;
            return reply;
        }
    } else if (const auto found = blobs_.find(name); found != blobs_.end()) {
        const std::string range = request.header("range");
        if (range.empty()) {
            reply.body = found->second;
            return reply;
        }
        const std::size_t first = std::stoul(range.substr(6));
        const std::size_t size = found->second.size();
        if (first >= size) {
            reply.status = 416;
            return reply;
        }
        reply.status = 206;
        reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                        std::to_string(size - 1) + "/" + std::to_string(size));
        reply.body = found->second.substr(first);
        return reply;
    }
    reply.status = 404;
    reply.body = R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})";
    return reply;
}

}  // namespace kmm::test
