// SPDX-License-Identifier: Apache-2.0
// Which images may be used, as containers-policy.json(5) says it. Source: containers/image, signature/policy_config.go.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "trust/identity.hpp"
#include "trust/public_key.hpp"

namespace kmm::trust {

/// One element of a list of requirements.
struct Requirement {
    enum class Kind {
        accept,       ///< insecureAcceptAnything
        reject,       ///< reject
        signature,    ///< sigstoreSigned with keys: a signature by one of them
        unsupported,  ///< what skopeo and podman can check and this program cannot
    };
    Kind kind = Kind::reject;
    std::string type;  ///< as written, with the member that is not supported: "signedBy", "sigstoreSigned with fulcio"
    Position position;      ///< of the element in the policy
    std::vector<std::string> key_files;  ///< keyPath, keyPaths
    std::vector<PublicKey> keys;         ///< keyData, keyDatas; after load_keys also those of the files
    SignedIdentity identity;
};

using Requirements = std::vector<Requirement>;  ///< all must be met; never empty

struct Policy {
    Requirements fallback;  ///< "default"
    std::map<std::string, std::map<std::string, Requirements>> transports;  ///< by transport and scope
};

/// Reads a policy. As in containers/image, everything that is not known, or there twice, is a fault; so are
/// scopes that no image can fall under and misspelt transports.
/// Errors: all faults with their places: data "unknown-field", "bad-value", "missing-field", "bad-key" and those of the
/// reader.
[[nodiscard]] Policy read_policy(std::string_view text, std::string_view file);

/// What `policy` requires of an image of `transport` ("docker", "oci", …) that falls under `scopes`, the most specific
/// first: the first scope that the policy has, else the transport's "", else the default.
[[nodiscard]] const Requirements& requirements_for(const Policy& policy, const std::string& transport,
                                                   const std::vector<std::string>& scopes);

/// One requirement: a signature by `key` for the image's repository, whatever its tag, as cosign makes them.
[[nodiscard]] Requirements signed_with(std::vector<PublicKey> keys);

/// Reads the files of keys that `requirements` name. Errors: those of `read`; data "bad-key"; with the place in the
/// policy.
void load_keys(Requirements& requirements, const std::function<std::string(const std::string&)>& read);

}  // namespace kmm::trust
