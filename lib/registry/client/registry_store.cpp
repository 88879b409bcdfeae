// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <type_traits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/client/blob.hpp"
#include "registry/client/certs.hpp"
#include "registry/client/document_service.hpp"
#include "registry/client/session.hpp"
#include "registry/client/store.hpp"
#include "registry/layer/hash.hpp"

namespace kmm::registry {

namespace {

/// True for faults of the one who was asked: somebody else may do better. What our own disk or user says is none.
bool is_theirs(const Error& error) {
    return error.exit() != Exit::io && !is_interruption(error.exit()) && error.code() != "pull-timeout";
}

/// True for a host that no other machine can answer for.
bool is_this_machine(const std::string& registry) {
    const auto url = net::parse_url("https://" + registry + "/");
    return url && (url->host == "localhost" || net::literal_scope(url->host) == net::AddressScope::loopback);
}

class RegistryStore final : public ImageStore {
public:
    RegistryStore(const image::Reference& reference, const PullRequest& request, net::HttpClient& http,
                  sys::Clock& clock, std::vector<std::string>& warnings)
        : reference_(reference), warnings_(warnings), parser_(request.parser) {
        for (const image::Endpoint& endpoint : image::endpoints_of(reference, request.mirrors)) {
            PullRequest own = request;
            // --insecure is about the registry; what mirror documents cannot say it says for mirrors on this very
            // machine, too.
            const bool meant = !endpoint.mirror || is_this_machine(endpoint.reference.registry);
            own.tls.insecure = endpoint.insecure || (meant && request.tls.insecure);
            if (endpoint.mirror) {
                own.tls.pinned_key.clear();
            }
            add_certificates(own.tls, request.certs_dirs, endpoint.reference.registry);
            places_.emplace_back(endpoint.reference.name(), Session(http, clock, endpoint.reference, own));
        }
        blocked_ = image::blocked_source(reference, request.mirrors);
        if (places_.empty()) {
            image::Reference by_digest = reference;
            by_digest.digest = image::Digest{};
            const bool digest_helps = !reference.digest && !image::endpoints_of(by_digest, request.mirrors).empty();
            Error error(Exit::no_permission, "registry-blocked",
                        fmt::format("the mirror configuration blocks {} and names no mirror for {}",
                                    blocked_->registry, reference.digest ? "digests" : "tags"));
            error.detail("image", reference.to_string());
            if (blocked_->name() != reference.name()) {
                error.detail("location", blocked_->name());
            }
            throw std::move(error).hint(
                digest_helps ? "refer to the image by digest, or correct the file of --mirror-config"
                             : "correct the file of --mirror-config");
        }
    }

    std::string first_name() const override { return reference_.manifest_name(); }
    std::optional<image::Digest> first_digest() const override { return reference_.digest; }
    void check_deadline() const override { places_.front().session.check_deadline(); }

    ManifestText manifest(const std::string& name, const std::optional<image::Digest>& expected,
                          std::uint64_t cap) override {
        return from_somewhere([&](Session& session) {
            ManifestText text = manifest_of(session, name, cap);
            if (text.body.size() <= cap) {
                static_cast<void>(verified_manifest(text.body, expected));
                if (!expected && places_.size() > 1) {  // a tag's may be anything, as the page of a login
                    begin_other_bytes(parser_);
                    static_cast<void>(read_image_document(parser_, text.body, "manifest", "bad-manifest"));
                }
            }
            warn_of_login(session);
            return text;
        });
    }

    std::string referrers(const image::Digest& digest, std::uint64_t cap) override {
        std::string body;
        static_cast<void>(places_.back().session.get("referrers/" + digest.to_string(),
                                                     {{"Accept", "application/vnd.oci.image.index.v1+json"}},
                                                     [&](const net::Response&, std::string_view piece) {
                                                         body += piece.substr(0, cap + 1 - body.size());
                                                         return body.size() <= cap;
                                                     }));
        return body.size() <= cap ? body : std::string();
    }

    void blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& warnings,
              const ByteCount& on_bytes) override {
        bool again = false;
        from_somewhere([&](Session& session) {
            if (again) {
                target.restart();
            }
            again = true;
            fetch_blob(session, wanted, target, warnings, on_bytes);
            return 0;
        });
    }

private:
    struct Place {
        Place(std::string its_name, Session its_session) : name(std::move(its_name)), session(std::move(its_session)) {}
        std::string name;
        Session session;
        bool given_up = false;
    };

    /// An old login must not stay unnoticed where nobody needs one: registries serve fewer pulls without.
    void warn_of_login(const Session& session) {
        const std::string login = session.refused_login();
        const std::string warning = "login-refused: " + login + ", the image is pulled without a login";
        if (!login.empty() && std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) {
            warnings_.push_back(warning);
        }
    }

    /// What is plainly no manifest is the doing of a proxy, and not a fault of the image.
    static void expect_plain(const net::Response& response, std::string_view body) {
        const std::string_view text = base::trim(body);
        if (text.starts_with('{')) {
            return;
        }
        if (const std::string coding = content_coding(response); !coding.empty()) {
            throw coded_error("manifest", coding);
        }
        if (text.empty() || text.starts_with('<')) {
            throw Error(Exit::data, "bad-manifest",
                        fmt::format("expected a manifest, found {}", text.empty() ? "an empty answer" : "an HTML page"))
                .hint(image::k_other_server_hint);
        }
    }

    static ManifestText manifest_of(Session& session, const std::string& name, std::uint64_t cap) {
        const Headers headers{{"Accept", image::manifest_accept_header()}};
        for (int failures = 1;; ++failures) {
            ManifestText text;
            try {
                const net::Response response =
                    session.get("manifests/" + name, headers, [&](const net::Response&, std::string_view piece) {
                        text.body += piece.substr(0, cap + 1 - text.body.size());
                        return text.body.size() <= cap;
                    });
                expect_plain(response, text.body);
                text.content_type = response.header("content-type").value_or("");
                text.announced_digest = response.header("docker-content-digest").value_or("");
                return text;
            } catch (const Error& error) {
                if (!error.is_retryable()) {
                    throw;
                }
                session.wait_before_retry(failures, error);
            }
        }
    }

    /// Asks one after the other. A place that failed otherwise than by not having the thing is not asked again. If it
    /// is the one that has the image, its failure is also the result where all others have nothing of it.
    template <typename Ask>
    std::invoke_result_t<Ask, Session&> from_somewhere(const Ask& ask) {
        std::optional<Error> of_holder;
        for (Place& place : places_) {
            const bool last = &place == &places_.back();
            if (place.given_up && !last) {
                continue;
            }
            try {
                return ask(place.session);
            } catch (Error& error) {
                if (last && of_holder && error.code() == "image-not-found" && !place.session.gave_manifest()) {
                    said_.push_back(place.name + ": " + error.message());
                    of_holder->detail("mirrors", base::join(said_, "; "));
                    throw *of_holder;
                }
                if (last || !is_theirs(error)) {
                    if (!said_.empty()) {
                        error.detail("mirrors", base::join(said_, "; "));
                    }
                    if (last && blocked_) {
                        error.detail("source",
                                     blocked_->registry + " was not asked: the mirror configuration blocks it");
                    }
                    throw;
                }
                place.given_up = error.code() != "image-not-found";
                if (place.given_up && place.session.gave_manifest()) {
                    of_holder = error;
                }
                said_.push_back(place.name + ": " + error.message());
                warnings_.push_back("mirror-failed: " + said_.back());
            }
        }
        throw bug("no registry was asked");
    }

    image::Reference reference_;
    std::vector<std::string>& warnings_;
    sandbox::Confined* parser_;
    std::vector<std::string> said_;  ///< by the mirrors that failed
    std::optional<image::Reference> blocked_;  ///< the source, if the last place is a mirror
    std::list<Place> places_;        ///< mirrors in their order, then the source
};

}  // namespace

image::Digest verified_manifest(std::string_view body, const std::optional<image::Digest>& expected) {
    const image::Digest found = digest_of(body, expected ? expected->algorithm : image::DigestAlgorithm::sha256);
    if (expected && found != *expected) {
        throw Error(Exit::integrity, "digest-mismatch", "the manifest is another than asked for")
            .detail("expected", expected->to_string())
            .detail("found", found.to_string())
            .hint("the stored image is damaged or was tampered with: push or copy it again");
    }
    return found;
}

std::unique_ptr<ImageStore> open_registry(const image::Reference& reference, const PullRequest& request,
                                          net::HttpClient& http, sys::Clock& clock,
                                          std::vector<std::string>& warnings) {
    return std::make_unique<RegistryStore>(reference, request, http, clock, warnings);
}

}  // namespace kmm::registry
