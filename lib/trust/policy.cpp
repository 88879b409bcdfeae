// SPDX-License-Identifier: Apache-2.0
#include "trust/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "value/kind_phrase.hpp"
#include "value/reader.hpp"

namespace kmm::trust {

namespace {

using value::Node;

constexpr std::size_t k_policy_bytes = 4U << 20U;
constexpr std::string_view k_path_transports[] = {"oci", "oci-archive", "dir"};

/// Those that skopeo and podman have.
const std::vector<std::string>& known_transports() {
    static const std::vector<std::string> k_names{"docker", "oci", "oci-archive", "dir", "docker-archive",
                                                  "docker-daemon", "containers-storage", "atomic", "ostree", "sif",
                                                  "tarball"};
    return k_names;
}

class PolicyReader {
public:
    explicit PolicyReader(const value::Document& document) : document_(document) {}

    Policy run() {
        Policy policy;
        const Node& root = document_.root;
        if (!is_object(root, "the policy")) {
            throw Error::from_diagnostics(std::move(faults));
        }
        refuse_others(root, "the policy", {"default", "transports"});
        if (const Node* found = root.find("default")) {
            policy.fallback = requirements(*found, "default");
        } else {
            fault("missing-field", "the policy: expected default, found none", root.mark(),
                  R"("default": [{"type": "reject"}] refuses what nothing else allows)");
        }
        if (const Node* found = root.find("transports"); found != nullptr && is_object(*found, "transports")) {
            for (const value::Member& transport : found->members()) {
                read_transport(transport, policy);
            }
        }
        if (!faults.empty()) {
            throw Error::from_diagnostics(std::move(faults));
        }
        return policy;
    }

    Diagnostics faults;

private:
    void fault(std::string code, std::string message, value::Mark mark, std::string hint = {}) {
        faults.push_back({Severity::error, std::move(code), std::move(message), document_.position(mark),
                          std::move(hint), Exit::data});
    }

    static std::string shown(const Node& node) {
        if (node.is_string() || !node.text().empty()) {
            return "\"" + base::escape(node.text()) + "\"";
        }
        const bool empty = node.is_sequence() && node.items().empty();
        return empty ? "an empty list" : value::a_kind(node.kind());
    }

    void wrong(const std::string& what, const std::string& expected, const Node& found, std::string hint = {}) {
        fault("bad-value", fmt::format("{}: expected {}, found {}", what, expected, shown(found)), found.mark(),
              std::move(hint));
    }

    bool is_object(const Node& node, const std::string& what) {
        if (!node.is_mapping()) {
            wrong(what, "an object", node);
        }
        return node.is_mapping();
    }

    void refuse_others(const Node& node, const std::string& what, const std::vector<std::string>& known) {
        for (const value::Member& member : node.members()) {
            if (std::find(known.begin(), known.end(), member.key) == known.end()) {
                const auto near = base::nearest(member.key, known);
                fault("unknown-field", fmt::format("{}: unknown key {}", what, base::escape(member.key)),
                      member.key_mark,
                      near ? fmt::format("did you mean {}?", *near) : "known are " + base::join(known, ", "));
            }
        }
    }

    /// A string that is not empty; "" after a fault.
    std::string text(const Node& node, const std::string& what) {
        if (node.is_string() && !node.text().empty()) {
            return node.text();
        }
        wrong(what, "a string that is not empty", node);
        return {};
    }

    std::vector<std::string> texts(const Node& node, const std::string& what) {
        std::vector<std::string> result;
        if (!node.is_sequence() || node.items().empty()) {
            wrong(what, "a list that is not empty", node);
        }
        for (const Node& item : node.items()) {
            result.push_back(text(item, what));
        }
        return result;
    }

    /// As containers/image, which says nothing of transports that it does not know: a later one is not refused here,
    /// a misspelt one is, as what it forbids would be allowed.
    void check_transport(const value::Member& transport) {
        const auto& known = known_transports();
        const std::string& name = transport.key;
        if (std::find(known.begin(), known.end(), name) != known.end()) {
            return;
        }
        const auto near = base::nearest(base::to_lower(name), known);
        if (near || name.empty()) {
            fault("unknown-field", fmt::format("transports: unknown transport \"{}\"", base::escape(name)),
                  transport.key_mark,
                  near ? fmt::format("did you mean {}?", *near) : "known are " + base::join(known, ", "));
        }
    }

    void read_transport(const value::Member& transport, Policy& policy) {
        check_transport(transport);
        auto& scopes = policy.transports[transport.key];
        if (!is_object(transport.value, transport.key)) {
            return;
        }
        for (const value::Member& member : transport.value.members()) {
            const std::string what =
                fmt::format("{} scope \"{}\"", base::escape(transport.key), base::escape(member.key));
            check_scope(transport.key, member, what);
            const std::string scope = transport.key == "docker" ? lower_host(member.key) : member.key;
            if (!scopes.emplace(scope, requirements(member.value, what)).second) {
                fault("duplicate-key", what + ": the same host stands in the policy in another case", member.key_mark);
            }
        }
    }

    /// Hosts have no case: a reject for "Registry.example" also counts for registry.example.
    static std::string lower_host(const std::string& scope) {
        const std::size_t slash = std::min(scope.find('/'), scope.size());
        return base::to_lower(scope.substr(0, slash)) + scope.substr(slash);
    }

    /// A scope that no image can fall under is a mistake which nobody would notice.
    void check_scope(const std::string& transport, const value::Member& member, const std::string& what) {
        const std::string& scope = member.key;
        if (scope.empty()) {
            return;
        }
        const bool by_path = std::find(std::begin(k_path_transports), std::end(k_path_transports), transport) !=
                             std::end(k_path_transports);
        if (by_path &&
            (!scope.starts_with('/') || scope == "/" || scope.ends_with('/') || scope.find("//") != std::string::npos ||
             (scope + "/").find("/./") != std::string::npos || (scope + "/").find("/../") != std::string::npos)) {
            fault("bad-value", what + ": expected an absolute path without . and .. and without / at the end",
                  member.key_mark, "the empty scope \"\" is for every image of the transport");
        } else if (by_path && transport != "dir" && scope.find(':') != std::string::npos) {
            fault("bad-value", what + ": expected a path without a tag; no image falls under this", member.key_mark,
                  fmt::format("did you mean {}? it stands for all images of that place",
                              base::escape(scope.substr(0, scope.find(':')))));
        }
        if (transport == "docker" && !is_image_scope(lower_host(scope))) {
            const auto meant = probable_image_scope(scope);
            fault("bad-value",
                  what + ": expected HOST[:PORT][/NAMESPACE], a full image name with a tag or a digest, or *.DOMAIN; "
                         "no image falls under this",
                  member.key_mark,
                  meant ? fmt::format("did you mean {}?", *meant)
                        : "the empty scope \"\" is for every image of the transport");
        }
        if (transport == "docker-archive") {
            fault("bad-value", what + ": expected the empty scope, the only one of this transport", member.key_mark);
        }
    }

    Requirements requirements(const Node& list, const std::string& what) {
        Requirements result;
        if (!list.is_sequence() || list.items().empty()) {
            wrong(what, "a list of requirements that is not empty", list,
                  R"({"type": "insecureAcceptAnything"} requires nothing)");
            return result;
        }
        for (const Node& item : list.items()) {
            if (is_object(item, what)) {
                result.push_back(requirement(item));
            }
        }
        return result;
    }

    Requirement requirement(const Node& node) {
        static const std::vector<std::string> k_types{"insecureAcceptAnything", "reject", "signedBy", "signedBaseLayer",
                                                      "sigstoreSigned"};
        Requirement made;
        made.position = document_.position(node.mark());
        const Node* type = node.find("type");
        if (type == nullptr) {
            fault("missing-field", "requirement: expected type, found none", node.mark(),
                  "known are " + base::join(k_types, ", "));
            return made;
        }
        made.type = type->text();
        if (made.type == "sigstoreSigned") {
            read_sigstore(node, made);
        } else if (made.type == "signedBy") {
            made.kind = Requirement::Kind::unsupported;
            read_signed_by(node);
        } else if (made.type == "signedBaseLayer") {
            made.kind = Requirement::Kind::unsupported;
            refuse_others(node, made.type, {"type", "baseLayerIdentity"});
            if (node.find("baseLayerIdentity") == nullptr) {
                fault("missing-field", "signedBaseLayer: expected baseLayerIdentity, found none", node.mark());
            }
            read_identity(node, "baseLayerIdentity");
        } else if (made.type == "insecureAcceptAnything" || made.type == "reject") {
            made.kind = made.type == "reject" ? Requirement::Kind::reject : Requirement::Kind::accept;
            refuse_others(node, made.type, {"type"});
        } else {
            const auto near = base::nearest(made.type, k_types);
            wrong("type", "one of " + base::join(k_types, ", "), *type,
                  near ? fmt::format("did you mean {}?", *near) : "");
        }
        return made;
    }

    /// How many of the members `names` are there; a fault unless there are as many as `least` to one.
    std::vector<std::string> present(const Node& node, const std::string& what, const std::vector<std::string>& names,
                                     std::size_t least) {
        std::vector<std::string> found;
        std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                     [&](const std::string& name) { return node.find(name) != nullptr; });
        if (found.size() > 1 || found.size() < least) {
            fault(found.empty() ? "missing-field" : "bad-value",
                  fmt::format("{}: expected {} one of {}, found {}", what, least == 0 ? "at most" : "exactly",
                              base::join(names, ", "), found.empty() ? "none" : base::join(found, " and ")),
                  node.mark());
        }
        return found;
    }

    void read_signed_by(const Node& node) {
        refuse_others(node, "signedBy", {"type", "keyType", "keyPath", "keyPaths", "keyData", "signedIdentity"});
        static const std::vector<std::string> k_key_types{"GPGKeys", "signedByGPGKeys", "X509Certificates",
                                                          "signedByX509CAs"};
        const Node* kind = node.find("keyType");
        if (kind == nullptr || std::find(k_key_types.begin(), k_key_types.end(), kind->text()) == k_key_types.end()) {
            const Node& found = kind == nullptr ? node : *kind;
            fault(kind == nullptr ? "missing-field" : "bad-value",
                  fmt::format("signedBy: expected keyType GPGKeys, found {}", kind == nullptr ? "none" : shown(found)),
                  found.mark());
        }
        for (const std::string& key : present(node, "signedBy", {"keyPath", "keyPaths", "keyData"}, 1)) {
            const Node& value = *node.find(key);
            static_cast<void>(key == "keyPaths" ? texts(value, key) : std::vector<std::string>{text(value, key)});
        }
        read_identity(node, "signedIdentity");
    }

    void add_key(const Node& node, const std::string& what, Requirement& made) {
        const std::string encoded = text(node, what);
        if (encoded.empty()) {
            return;
        }
        const auto decoded = base::from_base64(encoded);
        if (!decoded) {
            fault("bad-value", what + ": expected a key in base64 form", node.mark(), "base64 -w0 KEY.pub writes it");
            return;
        }
        try {
            made.keys.emplace_back(*decoded, what);
        } catch (const Error& error) {
            fault(error.code(), error.message(), node.mark(), error.hint());
        }
    }

    /// fulcio or pki: who may have signed, by whose certificates.
    void read_authority(const Node& node, const std::string& what) {
        if (!is_object(node, what)) {
            return;
        }
        const bool is_fulcio = what == "fulcio";
        const std::string ca = is_fulcio ? "ca" : "caRoots";
        std::vector<std::string> known{ca + "Path", ca + "Data", "subjectEmail"};
        static_cast<void>(present(node, what, {known[0], known[1]}, 1));
        if (is_fulcio) {
            known.emplace_back("oidcIssuer");
            for (const char* key : {"oidcIssuer", "subjectEmail"}) {
                if (node.find(key) == nullptr) {
                    fault("missing-field", fmt::format("fulcio: expected {}, found none", key), node.mark());
                }
            }
        } else {
            known.insert(known.end(), {"subjectHostname", "caIntermediatesPath", "caIntermediatesData"});
            static_cast<void>(present(node, what, {"caIntermediatesPath", "caIntermediatesData"}, 0));
            if (node.find("subjectEmail") == nullptr && node.find("subjectHostname") == nullptr) {
                fault("missing-field", "pki: expected subjectEmail or subjectHostname, found none", node.mark());
            }
        }
        refuse_others(node, what, known);
        for (const std::string& key : known) {
            if (const Node* value = node.find(key)) {
                static_cast<void>(text(*value, key));
            }
        }
    }

    void read_sigstore(const Node& node, Requirement& made) {
        static const std::vector<std::string> k_sources{"keyPath", "keyPaths", "keyData", "keyDatas", "fulcio", "pki"};
        static const std::vector<std::string> k_rekor{"rekorPublicKeyPath", "rekorPublicKeyPaths", "rekorPublicKeyData",
                                                      "rekorPublicKeyDatas"};
        made.kind = Requirement::Kind::signature;
        std::vector<std::string> known{"type", "signedIdentity"};
        known.insert(known.end(), k_sources.begin(), k_sources.end());
        known.insert(known.end(), k_rekor.begin(), k_rekor.end());
        refuse_others(node, made.type, known);
        for (const std::string& key : present(node, made.type, k_sources, 1)) {
            const Node& value = *node.find(key);
            if (key == "keyPath") {
                made.key_files = {text(value, key)};
            } else if (key == "keyPaths") {
                made.key_files = texts(value, key);
            } else if (key == "keyData") {
                add_key(value, key, made);
            } else if (key == "keyDatas") {
                static_cast<void>(texts(value, key));
                for (const Node& item : value.items()) {
                    add_key(item, key, made);
                }
            } else {
                read_authority(value, key);
                made.kind = Requirement::Kind::unsupported;
                made.type = "sigstoreSigned with " + key;
            }
        }
        const auto logs = present(node, "sigstoreSigned", k_rekor, 0);
        if (const Node* fulcio = node.find("fulcio"); fulcio != nullptr && logs.empty()) {
            fault("missing-field",
                  "sigstoreSigned: expected one of " + base::join(k_rekor, ", ") + " beside fulcio, found none",
                  fulcio->mark());
        } else if (const Node* pki = node.find("pki"); pki != nullptr && !logs.empty()) {
            fault("bad-value", "sigstoreSigned: expected no " + logs.front() + " beside pki, found one", pki->mark());
        }
        for (const std::string& key : logs) {
            made.kind = Requirement::Kind::unsupported;
            made.type = "sigstoreSigned with " + key;
        }
        made.identity = read_identity(node, "signedIdentity");
    }

    SignedIdentity read_identity(const Node& node, const std::string& name) {
        using Match = SignedIdentity::Match;
        static const std::array<std::pair<std::string, Match>, 6> k_matches{
            {{"matchExact", Match::exact},
             {"matchRepoDigestOrExact", Match::repo_digest_or_exact},
             {"matchRepository", Match::repository},
             {"exactReference", Match::exact_reference},
             {"exactRepository", Match::exact_repository},
             {"remapIdentity", Match::remap}}};
        SignedIdentity made;
        const Node* identity = node.find(name);
        if (identity == nullptr || !is_object(*identity, name)) {
            return made;
        }
        const std::string type = identity->get_string({"type"});
        const auto row =
            std::find_if(k_matches.begin(), k_matches.end(), [&](const auto& entry) { return entry.first == type; });
        if (row == k_matches.end()) {
            std::vector<std::string> names;
            for (const auto& entry : k_matches) {
                names.push_back(entry.first);
            }
            const auto near = base::nearest(type, names);
            fault("bad-value",
                  fmt::format("{}: expected a type of {}, found \"{}\"", name, base::join(names, ", "),
                              base::escape(type)),
                  identity->mark(), near ? fmt::format("did you mean {}?", *near) : "");
            return made;
        }
        made.match = row->second;
        switch (made.match) {
            case Match::exact_reference: made.reference = image_name(*identity, type, "dockerReference", true); break;
            case Match::exact_repository:
                made.reference = image_name(*identity, type, "dockerRepository", false);
                break;
            case Match::remap:
                refuse_others(*identity, type, {"type", "prefix", "signedPrefix"});
                made.prefix = prefix(*identity, "prefix");
                made.signed_prefix = prefix(*identity, "signedPrefix");
                break;
            default: refuse_others(*identity, type, {"type"});
        }
        return made;
    }

    /// The member `key` of `node`; "" after a fault.
    std::string member(const Node& node, const std::string& what, const std::string& key) {
        const Node* found = node.find(key);
        if (found == nullptr) {
            fault("missing-field", fmt::format("{}: expected {}, found none", what, key), node.mark());
            return {};
        }
        return text(*found, key);
    }

    std::string image_name(const Node& node, const std::string& what, const std::string& key, bool whole) {
        refuse_others(node, what, {"type", key});
        std::string name = member(node, what, key);
        const auto parsed = named_image(name);
        if (!name.empty() && !parsed) {
            wrong(key, "an image name", *node.find(key));
        } else if (!name.empty() && whole && parsed->tag.empty() && parsed->digest.empty()) {
            wrong(key, "an image name with a tag or a digest", *node.find(key));
        }
        return name;
    }

    std::string prefix(const Node& node, const std::string& key) {
        std::string text = member(node, "remapIdentity", key);
        if (!text.empty() && !is_identity_prefix(text)) {
            wrong(key, "HOST[:PORT][/PATH] without a tag or digest", *node.find(key));
        }
        return text;
    }

    const value::Document& document_;
};

}  // namespace

Policy read_policy(std::string_view text, std::string_view file) {
    Diagnostics faults;
    value::ReadLimits limits;
    limits.bytes_max = k_policy_bytes;
    const auto documents = value::read_json(text, file, faults, limits);
    if (has_errors(faults)) {
        throw Error::from_diagnostics(std::move(faults));
    }
    if (documents.size() != 1) {
        throw Error(Exit::data, "missing-field", "expected a policy, found an empty file")
            .at(Position{std::string(file), 1, 1});
    }
    return PolicyReader(documents.front()).run();
}

const Requirements& requirements_for(const Policy& policy, const std::string& transport,
                                     const std::vector<std::string>& scopes) {
    const auto found = policy.transports.find(transport);
    if (found == policy.transports.end()) {
        return policy.fallback;
    }
    for (const std::string& scope : scopes) {
        if (const auto row = found->second.find(scope); row != found->second.end()) {
            return row->second;
        }
    }
    const auto row = found->second.find("");
    return row == found->second.end() ? policy.fallback : row->second;
}

Requirements signed_with(std::vector<PublicKey> keys) {
    Requirement made;
    made.kind = Requirement::Kind::signature;
    made.type = "sigstoreSigned";
    made.keys = std::move(keys);
    made.identity.match = SignedIdentity::Match::repository;
    return {std::move(made)};
}

void load_keys(Requirements& requirements, const std::function<std::string(const std::string&)>& read) {
    for (Requirement& requirement : requirements) {
        for (const std::string& file : std::exchange(requirement.key_files, {})) {
            try {
                requirement.keys.emplace_back(read(file), file);
            } catch (Error& error) {
                error.detail("policy", requirement.position.to_string());
                throw;
            }
        }
    }
}

}  // namespace kmm::trust
