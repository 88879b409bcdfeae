// SPDX-License-Identifier: Apache-2.0
#include "trust/identity.hpp"

#include <algorithm>
#include <cstddef>

#include "base/error.hpp"
#include "base/text.hpp"
#include "image/address.hpp"

namespace kmm::trust {

namespace {

constexpr std::string_view k_hub = "index.docker.io";

std::string expanded_name(const image::Reference& reference) {
    return (reference.registry == k_hub ? "docker.io" : reference.registry) + "/" + reference.repository;
}

/// True if the tag of `reference` stands in `text` and is not the one that is taken where none stands.
bool has_written_tag(std::string_view text, const image::Reference& reference) {
    const std::string_view before_digest = text.substr(0, text.find('@'));
    return !reference.tag.empty() && before_digest.ends_with(":" + reference.tag);
}

/// As image::other_spelling, of an expanded name.
std::optional<std::string> same_registry(const std::string& host) {
    auto other = image::other_spelling(host);
    if (other && (*other == k_hub || *other == "registry-1.docker.io")) {
        other = "docker.io";
    }
    return other;
}

bool is_name_only(const NamedImage& image) { return image.tag.empty() && image.digest.empty(); }

bool matches_exactly(const NamedImage& intended, const NamedImage& claimed) {
    return !is_name_only(intended) && !is_name_only(claimed) && intended.to_string() == claimed.to_string();
}

bool matches_repo_digest_or_exactly(const NamedImage& intended, const NamedImage& claimed) {
    if (is_name_only(claimed) || is_name_only(intended)) {
        return false;
    }
    return intended.tag.empty() ? intended.name == claimed.name : intended.to_string() == claimed.to_string();
}

/// `image` with the signed prefix in the place of the prefix; nullopt if that is not a fully expanded name.
std::optional<NamedImage> remapped(const NamedImage& image, const std::string& prefix,
                                   const std::string& signed_prefix) {
    const bool matches = image.name == prefix || image.name.starts_with(prefix + "/");
    if (!matches) {
        return image;
    }
    const std::string text = signed_prefix + image.to_string().substr(prefix.size());
    const auto result = named_image(text);
    return result && result->to_string() == text ? result : std::nullopt;
}

}  // namespace

std::string NamedImage::to_string() const {
    return name + (tag.empty() ? "" : ":" + tag) + (digest.empty() ? "" : "@" + digest);
}

std::optional<NamedImage> named_image(std::string_view text) {
    try {
        const image::Reference reference = image::parse_reference(text);
        return NamedImage{expanded_name(reference), has_written_tag(text, reference) ? reference.tag : "",
                          reference.digest ? reference.digest->to_string() : ""};
    } catch (const Error&) {
        return std::nullopt;
    }
}

NamedImage named_image(const image::Reference& reference) {
    if (reference.digest) {
        return {expanded_name(reference), "", reference.digest->to_string()};
    }
    return {expanded_name(reference), reference.tag, ""};
}

bool SignedIdentity::accepts(const std::optional<NamedImage>& intended, std::string_view claimed) const {
    const auto signed_for = named_image(claimed);
    if (!signed_for) {
        return false;
    }
    const auto given = named_image(reference);
    switch (match) {
        case Match::exact_reference: return given && matches_exactly(*given, *signed_for);
        case Match::exact_repository: return given && given->name == signed_for->name;
        case Match::exact: return intended && matches_exactly(*intended, *signed_for);
        case Match::repository: return intended && intended->name == signed_for->name;
        case Match::repo_digest_or_exact: return intended && matches_repo_digest_or_exactly(*intended, *signed_for);
        case Match::remap: {
            const auto moved = intended ? remapped(*intended, prefix, signed_prefix) : std::nullopt;
            return moved && matches_repo_digest_or_exactly(*moved, *signed_for);
        }
    }
    return false;
}

bool is_identity_prefix(std::string_view text) {
    if (text.empty() || text.find('@') != std::string_view::npos) {
        return false;
    }
    const std::size_t slash = text.find('/');
    const std::string host(text.substr(0, slash));
    const std::string path = slash == std::string_view::npos ? "/x" : std::string(text.substr(slash)) + "/x";
    try {  // without a dot or a port, a host must be told from the first component of a repository
        const bool plain = host.find_first_of(".:[") == std::string::npos;
        static_cast<void>(image::parse_reference((plain ? host + ".x" : host) + path));
        return true;
    } catch (const Error&) {
        return false;
    }
}

std::vector<std::string> scopes_of(const NamedImage& image) {
    std::vector<std::string> scopes;
    const std::size_t host_end = image.name.find('/');
    const auto other = same_registry(image.name.substr(0, host_end));
    const auto add = [&](const std::string& scope) {
        scopes.push_back(scope);
        if (other) {
            scopes.push_back(*other + scope.substr(std::min(host_end, scope.size())));
        }
    };
    add(image.to_string());
    std::string name = image.name;
    while (true) {
        add(name);
        const std::size_t slash = name.rfind('/');
        if (slash == std::string::npos) {
            break;
        }
        name.resize(slash);
    }
    std::string domain = name.substr(0, name.find(':'));
    for (std::size_t dot = domain.find('.'); dot != std::string::npos; dot = domain.find('.')) {
        domain.erase(0, dot + 1);
        scopes.push_back("*." + domain);
    }
    return scopes;
}

bool is_image_scope(std::string_view scope) {
    if (scope.starts_with("*.")) {
        const std::string_view domain = scope.substr(2);
        return domain.find_first_of("/:*@[") == std::string_view::npos &&
               is_identity_prefix(std::string(domain) + ".x");  // "*.0.0.1" is no address
    }
    const std::string below = std::string(scope) + "/x/x";  // "docker.io/x" would be "docker.io/library/x"
    if (const auto image = named_image(below)) {
        return image->to_string() == below;
    }
    const auto image = named_image(scope);
    return image && image->tag.empty() != image->digest.empty() && image->to_string() == scope;
}

std::optional<std::string> probable_image_scope(std::string_view scope) {
    if (const std::size_t scheme = scope.find("://"); scheme != std::string_view::npos) {
        scope.remove_prefix(scheme + 3);
    }
    std::string text = base::to_lower(base::trim(scope));
    while (!text.empty() && std::string_view("/*:@").find(text.back()) != std::string_view::npos) {
        text.pop_back();
    }
    if (const auto image = named_image(text); image && !is_image_scope(text)) {
        text = image->name + (image->digest.empty() ? image->to_string().substr(image->name.size())
                                                    : "@" + image->digest);
    }
    return is_image_scope(text) ? std::optional(text) : std::nullopt;
}

std::vector<std::string> scopes_of_path(std::string_view path) {
    std::vector<std::string> scopes;
    while (path.size() > 1 && path.starts_with('/')) {
        scopes.emplace_back(path);
        path = path.substr(0, path.rfind('/'));
    }
    return scopes;
}

}  // namespace kmm::trust
