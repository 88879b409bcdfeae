// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/upload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "net/url.hpp"
#include "registry/client/certs.hpp"
#include "registry/client/session.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_chunk = 16U << 20U;  ///< larger blobs go in pieces of this size

/// `size` bytes of the file from `offset` on.
std::string file_part(int fd, std::uint64_t offset, std::size_t size) {
    std::string part(size, '\0');
    std::size_t have = 0;
    while (have < size) {
        const ssize_t got = ::pread(fd, part.data() + have, size - have, static_cast<off_t>(offset + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            const int saved = got < 0 ? errno : EIO;
            throw from_errno(saved, "reading a layer that is to be pushed");
        }
        have += static_cast<std::size_t>(got);
    }
    return part;
}

class RegistrySink final : public ImageSink {
public:
    RegistrySink(const image::Reference& reference, const PullRequest& request, std::string mount_from,
                 net::HttpClient& http, sys::Clock& clock)
        : reference_(reference),
          mount_from_(std::move(mount_from)),
          session_(http, clock, reference, request, Access::push, mount_from_) {}

    std::string name() const override { return reference_.to_string(); }

    bool has(const image::Descriptor& blob) override {
        return persist([&] {
            const std::string digest = blob.digest.to_string();
            try {
                static_cast<void>(session_.send({"HEAD", "blobs/" + digest, {}, {}}));
                return true;
            } catch (const Error& error) {
                if (error.http_cause() != 404) {
                    throw;
                }
            }
            if (mount_from_.empty()) {
                return false;
            }
            const net::Response answer = session_.send(
                {"POST",
                 "blobs/uploads/?mount=" + net::percent_encode(digest) + "&from=" + net::percent_encode(mount_from_),
                 {},
                 {}});
            if (answer.status == 201) {
                return true;
            }
            opened_ =
                location_of(answer);  // the registry would rather have the bytes, and has opened an upload for them
            return false;
        });
    }

    void put_blob(const image::Descriptor& blob, int fd) override {
        for (int losses = 1;; ++losses) {
            Progress progress;
            try {
                upload(blob, fd, progress);
                return;
            } catch (const Error& error) {
                // A request that failed may have been heard all the same: what was sent again is then refused, and
                // begins anew. Of several registries at one address, another one may not know the upload at all.
                const auto cause = error.http_cause();
                const bool is_lost = (progress.is_open && cause == 404) ||
                                     (progress.repeated && (cause == 400 || cause == 409 || cause == 416));
                if (!is_lost) {
                    throw;
                }
                session_.wait_before_retry(losses, error);
            }
            if (has(blob)) {
                return;
            }
        }
    }

    void put_manifest(const std::string& media_type, const std::string& text, const image::Digest& digest) override {
        put_named(digest.to_string(), media_type, text, digest);
    }

    void publish(const std::string& media_type, const std::string& text, const image::Digest& digest) override {
        put_named(reference_.tag, media_type, text, digest);
    }

private:
    struct Progress {
        bool is_open = false;   ///< the registry has said where the bytes go
        bool repeated = false;  ///< a request with bytes was sent a second time
    };

    /// One upload from its first request to its last, each tried as often as the policy says.
    void upload(const image::Descriptor& blob, int fd, Progress& progress) {
        std::string place = std::exchange(opened_, {});
        if (place.empty()) {
            place = location_of(persist([&] { return session_.send({"POST", "blobs/uploads/", {}, {}}); }));
        }
        progress.is_open = true;
        const auto send = [&](const Outgoing& part) {
            bool is_first = true;
            return persist([&] {
                progress.repeated = progress.repeated || !std::exchange(is_first, false);
                return session_.send(part);
            });
        };
        std::uint64_t sent = 0;
        while (blob.size > k_chunk && sent < blob.size) {
            const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(k_chunk, blob.size - sent));
            const Headers headers{{"Content-Type", "application/octet-stream"},
                                  {"Content-Range", fmt::format("{}-{}", sent, sent + piece - 1)}};
            place = location_of(send({"PATCH", place, headers, file_part(fd, sent, piece)}));
            sent += piece;
        }
        place += (place.find('?') == std::string::npos ? "?digest=" : "&digest=") +
                 net::percent_encode(blob.digest.to_string());
        static_cast<void>(send({"PUT",
                                place,
                                {{"Content-Type", "application/octet-stream"}},
                                file_part(fd, sent, static_cast<std::size_t>(blob.size - sent))}));
    }

    void put_named(const std::string& name, const std::string& media_type, const std::string& text,
                   const image::Digest& digest) {
        persist([&] {
            const net::Response answer =
                session_.send({"PUT", "manifests/" + name, {{"Content-Type", media_type}}, text});
            const std::string said = base::to_lower(answer.header("docker-content-digest").value_or(""));
            if (said.starts_with("sha256:") && said != digest.to_string()) {
                throw Error(Exit::integrity, "digest-mismatch", "the registry stored another manifest than it was sent")
                    .detail("expected", digest.to_string())
                    .detail("found", base::escape(said.substr(0, 80)));
            }
            return 0;
        });
    }

    std::string location_of(const net::Response& answer) const {
        const auto location = answer.header("location");
        if (!location) {
            throw Error(
                Exit::unavailable, "registry-error",
                fmt::format("expected the registry {} to say where the bytes go (Location), found an answer without it",
                            reference_.registry));
        }
        return session_.resolve_location(*location);
    }

    /// Tries `step` as often as the policy says.
    template <typename Step>
    std::invoke_result_t<Step> persist(const Step& step) {
        for (int failures = 1;; ++failures) {
            try {
                return step();
            } catch (const Error& error) {
                if (!error.is_retryable()) {
                    throw;
                }
                session_.wait_before_retry(failures, error);
            }
        }
    }

    image::Reference reference_;
    std::string mount_from_;
    Session session_;
    std::string opened_;  ///< an upload that the registry has opened and nobody has used yet
};

}  // namespace

void check_destination(const std::string& to) {
    const auto local = parse_local_reference(to);
    if (local && local->transport != Transport::oci && local->transport != Transport::oci_archive) {
        throw Error(Exit::usage, "unsupported",
                    "expected a registry, oci:DIR[:TAG] or oci-archive:FILE[:TAG] to write to, found another transport")
            .hint("write oci:DIR:TAG; skopeo copy makes of it what container engines load");
    }
    const auto digest = local ? local->digest : image::parse_reference(to).digest;
    if (digest) {
        throw Error(Exit::usage, "usage",
                    fmt::format("expected a tag to write to, found the digest {}", digest->short_text()))
            .hint("what is written gets a digest of its own; leave out @sha256:...");
    }
}

std::unique_ptr<ImageSink> open_registry_sink(const image::Reference& reference, const PullRequest& request,
                                              const std::string& mount_from, net::HttpClient& http, sys::Clock& clock) {
    PullRequest own = request;
    add_certificates(own.tls, request.certs_dirs, reference.registry);
    return std::make_unique<RegistrySink>(reference, own, mount_from, http, clock);
}

}  // namespace kmm::registry
