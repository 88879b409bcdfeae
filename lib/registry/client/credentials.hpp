// SPDX-License-Identifier: Apache-2.0
// Credentials out of Docker's and Podman's files. The content of such a file never reaches a message.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kmm::registry {

/// One credential: for `key` "HOST", "HOST/ns" or "HOST/ns/repo" (longest match wins). A helper's key may be "", for
/// every registry.
struct Credential {
    std::string key, user, password, identity_token;
    std::string registry_token{};  ///< goes to the registry itself, as it is
    std::string helper{};          ///< no credential: the program that would know one
};

/// Reads Docker's config.json / .dockerconfigjson or legacy .dockercfg text. Errors: data "bad-auth-file" with `file`'s
/// name and never its content.
[[nodiscard]] std::vector<Credential> parse_credentials(const std::string& text, const std::string& file);
/// Credentials of a pull Secret's data, decoded: its members .dockerconfigjson and .dockercfg. `shown` names it in
/// errors.
[[nodiscard]] std::vector<Credential> secret_credentials(const std::map<std::string, std::string>& data,
                                                         const std::string& shown);
/// The files in which docker, podman and skopeo keep logins, in order of precedence. `variable` gives environment
/// variables, "" for none; without XDG_RUNTIME_DIR, as in a service of root, podman login writes below /run/containers,
/// under the number of `user`.
[[nodiscard]] std::vector<std::string> credential_places(const std::function<std::string(const std::string&)>& variable,
                                                         unsigned user);
struct FoundCredentials {
    std::vector<Credential> credentials;
    std::vector<std::string> skipped;  ///< as PullRequest::skipped_secrets
};
/// Credentials of `authfile`, or, if it is "", of the usual places in order of precedence (facts: reliability-ux 2.6).
/// An entry that cannot be understood is passed over and named, also in `warnings`, as it costs other programs that
/// entry alone. `warnings` also names files that rely on credential helpers: those are programs, and none is run.
/// Errors: data "bad-auth-file" for a file that is none; io; timeout if `authfile` is a pipe from which nothing comes
/// for `patience`.
[[nodiscard]] FoundCredentials default_credentials(
    const std::string& authfile, std::vector<std::string>& warnings,
    std::chrono::milliseconds patience = std::chrono::milliseconds::max());
/// Credentials of every .dockerconfigjson and .dockercfg below `directory`, as the kubelet mounts Secrets and as KMM's
/// worker read them; other names are passed over. A file that cannot be read or understood, and an entry that cannot,
/// is passed over and named, also in `warnings`. Errors: not_found "file-not-found" if there is no such directory;
/// from_errno.
[[nodiscard]] FoundCredentials mounted_credentials(const std::string& directory, std::vector<std::string>& warnings);

}  // namespace kmm::registry
