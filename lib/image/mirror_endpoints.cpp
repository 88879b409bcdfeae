// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <optional>

#include "image/address.hpp"
#include "image/mirrors.hpp"

namespace kmm::image {

namespace {

constexpr std::string_view k_any_below = "*.";
constexpr std::string_view k_https_port = ":443";

/// What of `name` follows `prefix`: "" or "/…"; nullopt if the prefix is not one.
std::optional<std::string> rest_of(const std::string& name, const std::string& prefix) {
    if (prefix.starts_with(k_any_below)) {
        const std::string_view pattern = std::string_view(prefix).substr(1);
        const std::string_view domain = pattern.substr(0, pattern.find('/'));
        const std::size_t slash = std::min(name.find('/'), name.size());
        std::string_view host = std::string_view(name).substr(0, slash);
        if (domain.find(':') == std::string_view::npos) {
            host = host.substr(0, host.find(':'));  // whatever its port, as containers/image reads it
        }
        return host.ends_with(domain) ? rest_of(name.substr(slash), std::string(pattern.substr(domain.size())))
                                      : std::nullopt;
    }
    if (!name.starts_with(prefix) || (name.size() > prefix.size() && name[prefix.size()] != '/')) {
        return std::nullopt;
    }
    return name.substr(prefix.size());
}

/// The same for a whole reference, whose digest counts where it has a tag, too.
std::optional<std::string> rest_of(const Reference& reference, const std::string& prefix) {
    const std::string name = reference.name();
    if (image_mark(prefix).empty()) {
        return rest_of(name, prefix);
    }
    const std::string whole = name + (reference.digest ? "@" + reference.digest->to_string() : ":" + reference.tag);
    return whole == prefix ? std::optional<std::string>("") : std::nullopt;
}

struct Applying {
    const MirrorRule* rule = nullptr;  ///< nullptr if none applies
    std::string rest;                  ///< what of the name follows its prefix
};

/// The one with the longest prefix as it is written, the first of equals, as findRegistryWithParsedConfig() of
/// containers/image has it.
Applying applying(const std::vector<MirrorRule>& rules, const Reference& reference) {
    Applying best;
    for (const MirrorRule& candidate : rules) {
        const auto tail = rest_of(reference, candidate.prefix);
        if (tail && (best.rule == nullptr || candidate.prefix.size() > best.rule->prefix.size())) {
            best = {&candidate, *tail};
        }
    }
    return best;
}

Reference moved(const Reference& reference, const std::string& name) {
    Reference result = reference;
    const std::size_t slash = name.find('/');
    result.registry = name.substr(0, slash);
    result.repository = slash == std::string::npos ? std::string() : name.substr(slash + 1);
    return result;
}

/// "HOST/PATH" for "HOST:443/PATH"; docker.io as references have it.
std::string without_default_port(const std::string& name) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    const std::string host = name.substr(0, slash);
    if (!host.ends_with(k_https_port)) {
        return name;
    }
    const std::string plain = host.substr(0, host.size() - k_https_port.size());
    const bool is_hub = plain == "docker.io" || plain == "registry-1.docker.io";
    return (is_hub ? "index.docker.io" : plain) + name.substr(slash);
}

/// Whether the source itself is never asked. HOST and HOST:443 are one registry here: containers/image compares texts,
/// which lets one pass where the other is blocked.
bool is_blocked(const std::vector<MirrorRule>& rules, const Reference& reference) {
    if (!other_spelling(reference.registry)) {
        const MirrorRule* rule = applying(rules, reference).rule;
        return rule != nullptr && rule->blocked;
    }
    Reference plain = reference;
    plain.registry = without_default_port(reference.registry);
    bool blocked = false;
    std::size_t longest = 0;
    for (const MirrorRule& rule : rules) {
        const std::string prefix = without_default_port(rule.prefix);
        if (prefix.size() < longest || !rest_of(plain, prefix)) {
            continue;
        }
        blocked = rule.blocked || (blocked && prefix.size() == longest);
        longest = prefix.size();
    }
    return blocked;
}

Reference source_of(const Reference& reference, const MirrorRule& rule, const std::string& rest) {
    return rule.location.empty() ? reference : moved(reference, rule.location + rest);
}

}  // namespace

std::string_view image_mark(std::string_view prefix) noexcept {
    const std::size_t slash = prefix.rfind('/');
    const std::size_t mark = slash == std::string_view::npos ? slash : prefix.find_first_of(":@", slash);
    return prefix.substr(std::min(mark, prefix.size()));
}

std::vector<Endpoint> endpoints_of(const Reference& reference, const std::vector<MirrorRule>& rules) {
    const auto [rule, rest] = applying(rules, reference);
    std::vector<Endpoint> result;
    if (rule == nullptr) {
        return is_blocked(rules, reference) ? result : std::vector<Endpoint>{{reference, false, false}};
    }
    for (const Mirror& mirror : rule->mirrors) {
        const bool serves =
            mirror.use == MirrorUse::all || (mirror.use == MirrorUse::digest_only) == reference.digest.has_value();
        const Reference there = moved(reference, mirror.location + rest);
        if (serves && !is_blocked(rules, there)) {
            result.push_back({there, mirror.insecure.value_or(false), true});
        }
    }
    if (!blocked_source(reference, rules)) {
        result.push_back({source_of(reference, *rule, rest), rule->insecure.value_or(false), false});
    }
    return result;
}

std::optional<Reference> blocked_source(const Reference& reference, const std::vector<MirrorRule>& rules) {
    const auto [rule, rest] = applying(rules, reference);
    Reference source = rule == nullptr ? reference : source_of(reference, *rule, rest);
    const bool blocked = is_blocked(rules, reference) || is_blocked(rules, source);
    return blocked ? std::optional(std::move(source)) : std::nullopt;
}

}  // namespace kmm::image
