// SPDX-License-Identifier: Apache-2.0
#include "registry/client/learnt.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/mirrors.hpp"
#include "registry/client/auth.hpp"
#include "registry/layer/hash.hpp"

namespace kmm::registry {

namespace {

/// Who logs in, and where; the secret is no part of it, since it would be guessed from its hash.
std::string fingerprint(const Credential& credential) {
    Hasher hasher(image::DigestAlgorithm::sha256);
    hasher.update(credential.key);
    hasher.update("\n");
    hasher.update(credential.user);
    return hasher.finish().to_string();
}

/// What of `part` is not in `whole`. Both are sorted.
std::vector<std::string> lacking(const std::vector<std::string>& whole, const std::vector<std::string>& part) {
    std::vector<std::string> others;
    std::set_difference(part.begin(), part.end(), whole.begin(), whole.end(), std::back_inserter(others));
    return others;
}

std::optional<std::vector<std::string>> texts_of(const value::Node* list) {
    if (list == nullptr || !list->is_sequence()) {
        return std::nullopt;
    }
    std::vector<std::string> texts;
    for (const value::Node& item : list->items()) {
        if (!item.is_string()) {
            return std::nullopt;
        }
        texts.push_back(item.text());
    }
    std::sort(texts.begin(), texts.end());
    return texts;
}

}  // namespace

std::string Learnt::shortcoming(const Learnt& wanted) const {
    if (!wanted.pinned_key.empty() && pinned_key != wanted.pinned_key) {
        return pinned_key.empty() ? "pulled without the pinned key" : "pulled with another pinned key";
    }
    if (!verified && wanted.verified) {
        return "pulled with --insecure or from an insecure mirror, and this command verifies certificates";
    }
    if (const auto others = lacking(wanted.places, places); !others.empty()) {
        return fmt::format("pulled by way of {}, which this command does not ask", base::escape(others.front()));
    }
    return lacking(wanted.credentials, credentials).empty() ? "" : "pulled with a login that this command does not use";
}

Learnt learnt_by(const image::Reference& reference, const PullRequest& request) {
    Learnt learnt;
    learnt.verified = true;
    learnt.pinned_key = request.tls.pinned_key;
    std::set<std::string> places;
    std::set<std::string> logins;
    for (const image::Endpoint& endpoint : image::endpoints_of(reference, request.mirrors)) {
        learnt.verified = learnt.verified && !endpoint.insecure && !request.tls.insecure;
        if (endpoint.mirror) {
            learnt.pinned_key.clear();  // the key is the registry's
        }
        places.insert(endpoint.reference.name());
        for (const Credential& credential : matching_credentials(request.credentials, endpoint.reference)) {
            if (credential.helper.empty()) {
                logins.insert(fingerprint(credential));
            }
        }
    }
    learnt.places.assign(places.begin(), places.end());
    learnt.credentials.assign(logins.begin(), logins.end());
    return learnt;
}

value::Node to_node(const Learnt& learnt) {
    return value::Node::mapping({{"verified", learnt.verified},
                                 {"pinnedKey", learnt.pinned_key},
                                 {"places", value::Node::strings(learnt.places)},
                                 {"credentials", value::Node::strings(learnt.credentials)}});
}

std::optional<Learnt> learnt_of(const value::Node* node) {
    const value::Node* verified = node == nullptr ? nullptr : node->find("verified");
    if (verified == nullptr || !verified->as_bool()) {
        return std::nullopt;
    }
    auto places = texts_of(node->find("places"));
    auto credentials = texts_of(node->find("credentials"));
    if (!places || !credentials) {
        return std::nullopt;
    }
    return Learnt{*verified->as_bool(), node->get_string({"pinnedKey"}), std::move(*places), std::move(*credentials)};
}

}  // namespace kmm::registry
