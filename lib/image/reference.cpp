// SPDX-License-Identifier: Apache-2.0
#include "image/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/error.hpp"
#include "base/text.hpp"
#include "image/address.hpp"

namespace kmm::image {

namespace {

constexpr std::size_t k_repository_max = 255;
constexpr std::size_t k_tag_max = 128;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_alnum(char c) { return is_lower_or_digit(c) || is_upper(c); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Walks one reference; every offset counts from the start of the whole text.
class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Reference run() {
        if (text_.empty()) {
            throw fail(0, "expected an image reference, found an empty text");
        }
        refuse_user_info();
        Reference result;
        std::size_t end = text_.size();
        if (const std::size_t at = text_.find('@'); at != std::string_view::npos) {
            result.digest = digest(at + 1);
            end = at;
        }
        const std::size_t slash = text_.substr(0, end).find('/');
        std::size_t path = 0;
        if (slash != std::string_view::npos && looks_like_registry(text_.substr(0, slash))) {
            check_registry(slash);
            result.registry = base::to_lower(text_.substr(0, slash));
            path = slash + 1;
        } else {
            result.registry = "index.docker.io";
        }
        const std::size_t colon = text_.substr(0, end).find(':', path);
        const std::size_t path_end = colon == std::string_view::npos ? end : colon;
        if (colon != std::string_view::npos) {
            result.tag = tag(colon + 1, end);
        } else if (!result.digest) {
            result.tag = "latest";
        }
        check_repository(path, path_end);
        result.repository = std::string(text_.substr(path, path_end - path));
        if (result.registry == "docker.io" || result.registry == "registry-1.docker.io") {
            result.registry = "index.docker.io";
        }
        if (result.registry == "index.docker.io" && result.repository.find('/') == std::string::npos) {
            result.repository = "library/" + result.repository;
        }
        return result;
    }

private:
    /// "https://user:password@host/..." would be cited in every message: what stands before the "@" is never shown.
    void refuse_user_info() const {
        const std::size_t scheme = text_.find("://");
        const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
        const std::size_t at = scheme == std::string_view::npos ? text_.find('@') : text_.rfind('@');
        if (at == std::string_view::npos || at < begin || text_.substr(at + 1).starts_with("sha") ||
            text_.find('/', at) == std::string_view::npos ||
            (scheme == std::string_view::npos && text_.substr(0, at).find('/') != std::string_view::npos)) {
            return;
        }
        const std::string shown = fmt::format("{}…{}", text_.substr(0, begin), text_.substr(at));
        throw Error(Exit::data, "bad-reference",
                    fmt::format("image reference, column {}: expected no user name and password", begin + 1))
            .detail("text", base::escape(shown))
            .hint("credentials belong into a pull Secret or the file of --authfile");
    }

    static bool looks_like_registry(std::string_view component) {
        return component == "localhost" || component.find_first_of(".:") != std::string_view::npos ||
               component.starts_with('[');
    }

    void check_registry(std::size_t end) const {
        std::size_t host_end = end;
        if (text_.starts_with('[')) {
            host_end = text_.substr(0, end).find(']');
            if (host_end == std::string_view::npos) {
                throw fail(0, "expected ] after the IPv6 address");
            }
            for (std::size_t i = 1; i < host_end; ++i) {
                const bool hex = is_digit(text_[i]) || (text_[i] >= 'a' && text_[i] <= 'f') ||
                                 (text_[i] >= 'A' && text_[i] <= 'F');
                if (!hex && text_[i] != ':' && text_[i] != '.') {
                    throw fail(i, "expected a digit of an IPv6 address" + found(i));
                }
            }
            ++host_end;
            check_ipv6(text_.substr(1, host_end - 2));
        } else {
            host_end = std::min(text_.find(':'), end);
            check_host_name(host_end);
            const std::string_view host = text_.substr(0, host_end);
            if (is_ipv4_like(host) && !is_plain_ipv4(host)) {
                throw fail(0, "expected an IPv4 address of four decimal numbers without leading zeros");
            }
        }
        if (host_end == end) {
            return;
        }
        if (text_[host_end] != ':') {
            throw fail(host_end, "expected : or / after the registry host" + found(host_end));
        }
        unsigned port = 0;
        for (std::size_t i = host_end + 1; i < end; ++i) {
            if (!is_digit(text_[i])) {
                throw fail(i, "expected a port number" + found(i));
            }
            port = port * 10 + static_cast<unsigned>(text_[i] - '0');
            if (port > 65535) {
                throw fail(host_end + 1, "expected a port number up to 65535");
            }
        }
        if (port == 0) {
            throw fail(host_end + 1, "expected a port number from 1 to 65535");
        }
        if (text_[host_end + 1] == '0') {
            throw fail(host_end + 1, "expected a port number without leading zeros");
        }
    }

    void check_ipv6(std::string_view host) const {
        const auto plain = plain_ipv6(host);
        if (!plain) {
            throw fail(1, "expected an IPv6 address between the brackets");
        }
        if (is_ipv4_inside(*plain)) {
            throw fail(1, "expected an IPv6 address that stands for no IPv4 address");
        }
        if (base::to_lower(host) != *plain) {
            throw fail(1, fmt::format("expected the IPv6 address in its short form, {}", *plain));
        }
    }

    void check_host_name(std::size_t end) const {
        if (end == 0) {
            throw fail(0, "expected a registry host" + found(0));
        }
        for (std::size_t i = 0; i < end; ++i) {
            const bool edge = i == 0 || i + 1 == end || text_[i - 1] == '.' || text_[i + 1] == '.';
            const bool inner = text_[i] == '-' || (text_[i] == '.' && i > 0 && i + 1 < end && text_[i - 1] != '.');
            if (!is_alnum(text_[i]) && !(inner && (text_[i] == '.' || !edge))) {
                throw fail(i, "expected a registry host name" + found(i));
            }
        }
    }

    void check_repository(std::size_t begin, std::size_t end) const {
        if (begin == end) {
            throw fail(begin, "expected a repository name" + found(begin));
        }
        if (end - begin > k_repository_max) {
            throw fail(begin + k_repository_max, "expected a repository name of at most 255 characters");
        }
        std::size_t i = begin;
        while (true) {
            i = check_component(i, end);
            if (i == end) {
                return;
            }
            ++i;  // the slash
        }
    }

    /// One component [a-z0-9]+ joined by ".", "_", "__" or dashes; returns the offset of the "/" or the end.
    [[nodiscard]] std::size_t check_component(std::size_t i, std::size_t end) const {
        bool after_word = false;
        while (i < end && text_[i] != '/') {
            if (is_lower_or_digit(text_[i])) {
                after_word = true;
                ++i;
                continue;
            }
            if (is_upper(text_[i])) {
                throw fail(i, "expected a repository name in lower case" + found(i));
            }
            std::size_t stop = i;
            if (text_[i] == '-') {
                stop = std::min(text_.find_first_not_of('-', i), end);
            } else if (text_[i] == '.') {
                stop = i + 1;
            } else if (text_[i] == '_') {
                stop = i + (i + 1 < end && text_[i + 1] == '_' ? 2 : 1);
            } else {
                throw fail(i, "expected a letter, digit or separator of a repository name" + found(i));
            }
            if (!after_word || stop >= end || !is_lower_or_digit(text_[stop])) {
                throw fail(i, "expected a letter or digit on both sides of a separator" + found(i));
            }
            i = stop;
        }
        if (!after_word) {
            throw fail(i, "expected a component of the repository name" + found(i));
        }
        return i;
    }

    [[nodiscard]] std::string tag(std::size_t begin, std::size_t end) const {
        if (begin == end) {
            throw fail(begin, "expected a tag after the colon" + found(begin));
        }
        for (std::size_t i = begin; i < end; ++i) {
            const bool word = is_alnum(text_[i]) || text_[i] == '_';
            if (!word && (i == begin || (text_[i] != '.' && text_[i] != '-'))) {
                throw fail(i, "expected a letter, digit, _, . or - of a tag" + found(i));
            }
        }
        if (end - begin > k_tag_max) {
            throw fail(begin + k_tag_max, "expected a tag of at most 128 characters");
        }
        return std::string(text_.substr(begin, end - begin));
    }

    [[nodiscard]] Digest digest(std::size_t begin) const {
        const auto parsed = parse_digest(text_.substr(begin));
        if (!parsed) {
            throw fail(begin, "expected a digest sha256:… or sha512:… in lower-case hexadecimal");
        }
        return *parsed;
    }

    [[nodiscard]] std::string found(std::size_t offset) const {
        return offset < text_.size() ? fmt::format(", found \"{}\"", base::escape(text_.substr(offset, 1)))
                                     : std::string(", found the end");
    }

    [[nodiscard]] Error fail(std::size_t offset, const std::string& what) const {
        Error error(Exit::data, "bad-reference", fmt::format("image reference, column {}: {}", offset + 1, what));
        error.detail("text", base::escape(text_));
        error.detail("here", std::string(base::escape(text_.substr(0, offset)).size(), ' ') + "^");
        if (text_.substr(offset).starts_with("$") || text_.substr(offset).starts_with("{")) {
            error.hint("a template variable was left in: give the reference of one kernel, for example the output of "
                       "kmm-plan render");
        } else if (text_.starts_with("https://") || text_.starts_with("http://") || text_.starts_with("docker://")) {
            error.hint(fmt::format("leave out {}", text_.substr(0, text_.find("//") + 2)));
        } else if (offset < text_.size() && is_upper(text_[offset])) {
            error.hint("repository names are lower case; upper case is allowed only in the tag");
        }
        return error;
    }

    std::string_view text_;
};

}  // namespace

std::string Reference::name() const { return registry + "/" + repository; }

std::string Reference::to_string() const {
    std::string text = name();
    if (!tag.empty()) {
        text += ":" + tag;
    }
    if (digest) {
        text += "@" + digest->to_string();
    }
    return text;
}

std::string Reference::manifest_name() const { return digest ? digest->to_string() : tag; }

Reference parse_reference(std::string_view text) { return Parser(text).run(); }

}  // namespace kmm::image
