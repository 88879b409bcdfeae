// SPDX-License-Identifier: Apache-2.0
#include "registry/client/blob.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "image/manifest.hpp"
#include "registry/layer/hash.hpp"

namespace kmm::registry {

namespace {

constexpr std::uint64_t k_progress = 1U << 20U;

struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::optional<std::uint64_t> total;
};

/// "bytes 500-1499/2000" or "bytes 500-1499/*", nothing else (RFC 9110 14.4).
std::optional<ContentRange> parse_content_range(std::string_view text) {
    const auto number = [&](std::uint64_t& value) {
        const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool ok = fault == std::errc() && end != text.data();
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return ok;
    };
    const auto literal = [&](std::string_view wanted) {
        const bool ok = text.starts_with(wanted);
        text.remove_prefix(ok ? wanted.size() : 0);
        return ok;
    };
    ContentRange range;
    if (!literal("bytes ") || !number(range.first) || !literal("-") || !number(range.last) || !literal("/")) {
        return std::nullopt;
    }
    if (text == "*") {
        return range.last >= range.first ? std::optional(range) : std::nullopt;
    }
    std::uint64_t total = 0;
    if (!number(total) || !text.empty() || range.last < range.first || total <= range.last) {
        return std::nullopt;
    }
    range.total = total;
    return range;
}

/// Raised inside the sink; the download starts over without a range.
struct BadRange {};

/// One blob on its way: what has come, its digest, and what went wrong so far.
class Download {
public:
    Download(Session& session, const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& warnings,
             const std::function<void(std::uint64_t)>& on_bytes)
        : session_(session), wanted_(wanted), target_(target), warnings_(warnings), on_bytes_(on_bytes),
          hasher_(wanted.digest.algorithm) {}

    void run() {
        while (true) {
            const std::uint64_t before = have_;
            bool ended = false;
            try {
                ended = exchange();
            } catch (const Error& error) {
                if (!error.is_retryable()) {
                    throw;
                }
                if (have_ != wanted_.size) {
                    static_cast<void>(may_retry(before));
                    session_.wait_before_retry(failures_, error);
                    continue;
                }
            }
            if (have_ == wanted_.size) {
                if (verified()) {
                    return;
                }
                restart();
                continue;
            }
            // A clean end too early. Asking for the rest helps only if there is more.
            if (ended && have_ == before && before != 0) {
                throw short_error();
            }
            if (!may_retry(before)) {
                throw short_error();
            }
        }
    }

private:
    /// One request for what is missing; true if it ended without a network failure.
    bool exchange() {
        Headers headers;
        const std::uint64_t start = have_;
        if (start != 0) {
            headers.emplace_back("Range", fmt::format("bytes={}-", start));
        }
        bool first = true;
        try {
            const net::Response response =
                session_.get("blobs/" + wanted_.digest.to_string(), headers,
                             [&](const net::Response& head, std::string_view piece) {
                                 if (first) {
                                     first = false;
                                     check_start(head, start);
                                 }
                                 take(piece);
                                 return true;
                             });
            if (response.status == 416 && start != 0) {
                restart();
                if (++bad_ranges_ > 1) {
                    throw short_error();
                }
                return false;
            }
        } catch (const BadRange&) {
            restart();
            if (++bad_ranges_ > 1) {
                throw Error(Exit::integrity, "size-mismatch",
                            "the registry answers range requests with other ranges than asked for")
                    .detail("blob", wanted_.digest.to_string())
                    .hint("look at the registry, or at a proxy or cache in front of it");
            }
            return false;
        }
        return true;
    }

    void check_start(const net::Response& head, std::uint64_t start) {
        coding_ = content_coding(head);
        if (head.status == 206) {
            const auto range = parse_content_range(head.header("content-range").value_or(""));
            if (!range || range->first != start || range->total.value_or(wanted_.size) != wanted_.size) {
                throw BadRange{};
            }
            return;
        }
        if (start != 0) {
            restart();  // the server ignored the range and sends everything
        }
        const auto length = head.header("content-length");
        if (length && *length != std::to_string(wanted_.size)) {
            warnings_.push_back(fmt::format("content-length: the registry announced {} bytes for {}, expected {}",
                                            length->substr(0, 20), wanted_.digest.short_text(), wanted_.size));
        }
    }

    void take(std::string_view piece) {
        session_.check_deadline();
        if (have_ == 0) is_page_ = base::trim(piece).starts_with('<');
        if (piece.size() > wanted_.size - have_) {
            throw other_bytes(Error(Exit::integrity, "size-mismatch",
                                    fmt::format("expected {} bytes, found more", wanted_.size)))
                .detail("blob", wanted_.digest.to_string());
        }
        hasher_.update(piece);
        target_.put(piece);
        have_ += piece.size();
        if (on_bytes_) {
            on_bytes_(have_);
        }
    }

    [[nodiscard]] bool may_retry(std::uint64_t before) {
        failures_ = have_ >= before + k_progress ? 1 : failures_ + 1;
        return failures_ < session_.policy().attempts;
    }

    /// True if the digest is right; false if it is wrong for the first time.
    bool verified() {
        const image::Digest found = hasher_.finish();
        if (found == wanted_.digest) {
            return true;
        }
        if (++wrong_digests_ > 1) {
            throw other_bytes(
                Error(Exit::integrity, "digest-mismatch", "the registry sent other bytes than the image names")
                    .detail("expected", wanted_.digest.to_string())
                    .detail("found", found.to_string())
                    .hint("the registry's storage is damaged or the image was tampered with: push the image again"));
        }
        return false;
    }

    void restart() {
        most_ = std::max(most_, have_);
        have_ = 0;
        hasher_.reset();
        target_.restart();
    }

    [[nodiscard]] Error short_error() const {
        return other_bytes(Error(Exit::integrity, "size-mismatch",
                                 fmt::format("expected {} bytes, found only {}", wanted_.size, std::max(most_, have_))))
            .detail("blob", wanted_.digest.to_string());
    }

    /// `error`, unless the bytes came in a coding or are a page: then that is what is wrong with them.
    [[nodiscard]] Error other_bytes(Error error) const {
        if (!coding_.empty()) {
            return coded_error("blob", coding_);
        }
        if (!is_page_) {
            return error;
        }
        return Error(Exit::unavailable, "registry-error", "expected the blob as it is stored, found an HTML page")
            .hint(image::k_other_server_hint);
    }

    std::string coding_;  ///< of the last answer, "" for none
    bool is_page_ = false;  ///< the last answer begins as a page for people does, and no blob of an image
    Session& session_;
    const image::Descriptor& wanted_;
    BlobTarget& target_;
    std::vector<std::string>& warnings_;
    const std::function<void(std::uint64_t)>& on_bytes_;
    Hasher hasher_;
    std::uint64_t have_ = 0;
    std::uint64_t most_ = 0;  ///< of what earlier tries had
    int failures_ = 0;
    int bad_ranges_ = 0;
    int wrong_digests_ = 0;
};

}  // namespace

void fetch_blob(Session& session, const image::Descriptor& wanted, BlobTarget& target,
                std::vector<std::string>& warnings, const std::function<void(std::uint64_t)>& on_bytes) {
    Download(session, wanted, target, warnings, on_bytes).run();
}

}  // namespace kmm::registry
