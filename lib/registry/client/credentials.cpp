// SPDX-License-Identifier: Apache-2.0
#include "registry/client/credentials.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/missing_file.hpp"
#include "sys/trust.hpp"
#include "value/kind_phrase.hpp"
#include "value/reader.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_file_max = 1U << 20U;
constexpr int k_mount_depth_max = 3;
constexpr std::chrono::milliseconds k_unasked{1000};  // how long a pipe is waited for that nobody named

Error bad_file(const std::string& file, const std::string& what) {
    return Error(Exit::data, "bad-auth-file", what)
        .at(Position{file, 0, 0})
        .hint("expected Docker's config.json, a .dockerconfigjson or a .dockercfg");
}

/// "https://index.docker.io/v1/" -> "index.docker.io", "reg.example.com/v2/team/" -> "reg.example.com/team", but
/// "reg.example.com/team/v2" is that repository.
std::string normalise_key(std::string_view key) {
    if (const std::size_t scheme = key.find("://"); scheme != std::string_view::npos) {
        key.remove_prefix(scheme + 3);
    }
    const std::size_t slash = std::min(key.find('/'), key.size());
    std::string_view path = key.substr(slash);
    for (const std::string_view version : {"/v1", "/v2"}) {  // of the API, as Docker and the kubelet write keys
        if (path == version || (path.starts_with(version) && path[version.size()] == '/')) {
            path.remove_prefix(version.size());
            break;
        }
    }
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    std::string host = base::to_lower(key.substr(0, slash));
    if (host == "docker.io" || host == "registry-1.docker.io") {
        host = "index.docker.io";
    }
    return host + std::string(path);
}

/// A key as a message names it: nothing before an "@", which would be a user and a password, and no more than a host's
/// name has.
std::string shown_key(std::string_view key) {
    constexpr std::size_t longest = 255;
    key.remove_prefix(key.rfind('@') + 1);  // npos + 1 is 0
    const bool whole = key.size() <= longest;
    return base::escape(key.substr(0, longest)) + (whole ? "" : "...");
}

void add_entry(const value::Member& member, const std::string& file, std::vector<Credential>& result) {
    if (member.value.is_null()) {
        return;  // as an empty one, for readers in Go
    }
    if (!member.value.is_mapping()) {
        throw bad_file(file, "expected a mapping for every registry, found " +
                                 value::a_kind(member.value.kind()));
    }
    for (const std::string_view key : {"username", "password", "identitytoken", "registrytoken", "auth"}) {
        const value::Node* value = member.value.find(key);
        if (value != nullptr && !value->is_string() && !value->is_null()) {
            throw bad_file(file, fmt::format("{}: expected a text, found {}", key, value::a_kind(value->kind())));
        }
    }
    Credential credential;
    credential.key = normalise_key(member.key);
    credential.user = member.value.get_string({"username"});
    credential.password = member.value.get_string({"password"});
    credential.identity_token = member.value.get_string({"identitytoken"});
    if (const std::string coded = member.value.get_string({"auth"}); !coded.empty()) {
        const auto plain = base::from_base64(coded);
        const std::size_t colon = plain ? plain->find(':') : std::string::npos;
        if (!plain || colon == std::string::npos) {
            throw bad_file(file, fmt::format("the auth of registry {} is not base64 of user:password",
                                             shown_key(credential.key)));
        }
        credential.user = plain->substr(0, colon);
        credential.password = plain->substr(colon + 1);
        while (!credential.password.empty() && credential.password.back() == '\0') {
            credential.password.pop_back();
        }
    }
    if (credential.user == "<token>" && credential.identity_token.empty()) {
        credential.identity_token = credential.password;
    }
    if (const std::string token = member.value.get_string({"registrytoken"}); !token.empty()) {
        Credential own;
        own.key = credential.key;
        own.registry_token = token;
        result.push_back(std::move(own));
    }
    if (!credential.user.empty() || !credential.password.empty() || !credential.identity_token.empty()) {
        result.push_back(std::move(credential));
    }
}

/// An entry that cannot be understood is named in `skipped` and passed over, or the error if there is no `skipped`.
void add_entries(const value::Node& auths, const std::string& file, std::vector<Credential>& result,
                 std::vector<std::string>* skipped) {
    for (const value::Member& member : auths.members()) {
        try {
            add_entry(member, file, result);
        } catch (const Error& error) {
            if (skipped == nullptr) {
                throw;
            }
            skipped->push_back(base::escape(file) + ": " + error.message());
        }
    }
}

/// Who would know credentials, by registry: refusals name the program.
void add_helpers(const value::Node& root, std::vector<Credential>& result) {
    const auto add = [&](const std::string& key, const std::string& helper) {
        Credential credential;
        credential.key = normalise_key(key);
        credential.helper = helper;
        if (!helper.empty()) {
            result.push_back(std::move(credential));
        }
    };
    if (const value::Node* helpers = root.find("credHelpers"); helpers != nullptr) {
        for (const value::Member& member : helpers->members()) {
            add(member.key, helpers->get_string({member.key}));
        }
    }
    add("", root.get_string({"credsStore"}));  // for every registry that no other helper is named for
}

std::string variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::string() : std::string(value);
}

value::Node read_config(const std::string& text, const std::string& file) {
    Diagnostics faults;
    auto documents = value::read_json(text, file, faults);
    if (has_errors(faults) || documents.size() != 1 || !documents.front().root.is_mapping()) {
        Error error = bad_file(file, "expected one JSON mapping with registry credentials");
        if (has_errors(faults) && faults.front().position) {
            error.at(*faults.front().position);  // never what stands there
        }
        throw error;
    }
    return std::move(documents.front().root);
}

std::vector<Credential> credentials_in(const value::Node& root, const std::string& file,
                                       std::vector<std::string>* skipped) {
    std::vector<Credential> result;
    if (const value::Node* auths = root.find("auths"); auths != nullptr) {
        if (!auths->is_mapping() && !auths->is_null()) {
            throw bad_file(file, "auths: expected a mapping, found " + value::a_kind(auths->kind()));
        }
        add_entries(*auths, file, result, skipped);
    } else if (root.find("credHelpers") == nullptr && root.find("credsStore") == nullptr &&
               root.find("HttpHeaders") == nullptr) {
        add_entries(root, file, result, skipped);  // the legacy .dockercfg
    }
    add_helpers(root, result);
    return result;
}

void add_file(const std::string& file, std::vector<Credential>& result, std::vector<std::string>& warnings,
              std::vector<std::string>* skipped, std::chrono::milliseconds patience) {
    const value::Node root = read_config(sys::read_trusted_file(file, "credentials", k_file_max, patience), file);
    for (Credential& credential : credentials_in(root, file, skipped)) {
        result.push_back(std::move(credential));
    }
    const value::Node* helpers = root.find("credHelpers");
    if (!root.get_string({"credsStore"}).empty() || (helpers != nullptr && !helpers->members().empty())) {
        warnings.push_back("credential-helper-ignored: " + base::escape(file) +
                           ": programs are never run for credentials");
    }
}

void add_mounted(const std::string& directory, int depth, FoundCredentials& result,
                 std::vector<std::string>& warnings) {
    for (const sys::DirectoryEntry& entry : sys::list_directory(directory)) {
        const std::string path = directory + "/" + entry.name;
        if (entry.type == sys::EntryType::directory && !entry.name.starts_with("..") && depth < k_mount_depth_max) {
            add_mounted(path, depth + 1, result, warnings);
        } else if (entry.type != sys::EntryType::directory &&
                   (entry.name == ".dockerconfigjson" || entry.name == ".dockercfg")) {
            try {
                add_file(path, result.credentials, warnings, &result.skipped,
                         k_unasked);  // the kubelet makes these names links into the directory ..data
            } catch (const Error& error) {
                result.skipped.push_back(base::escape(path) + ": " + error.message());
            }
        }
    }
}

}  // namespace

std::vector<Credential> parse_credentials(const std::string& text, const std::string& file) {
    return credentials_in(read_config(text, file), file, nullptr);
}

std::vector<Credential> secret_credentials(const std::map<std::string, std::string>& data, const std::string& shown) {
    std::vector<Credential> found;
    for (const char* key : {".dockerconfigjson", ".dockercfg"}) {
        const auto it = data.find(key);
        if (it == data.end()) continue;
        for (auto& credential : parse_credentials(it->second, shown)) found.push_back(std::move(credential));
    }
    return found;
}

FoundCredentials mounted_credentials(const std::string& directory, std::vector<std::string>& warnings) {
    FoundCredentials result;
    if (::access(directory.c_str(), F_OK) != 0) {
        const int saved = errno;
        throw sys::open_error(saved, directory);
    }
    add_mounted(directory, 0, result, warnings);
    for (const std::string& skipped : result.skipped) {
        warnings.push_back("pull-secret-skipped: " + skipped);
    }
    return result;
}

std::vector<std::string> credential_places(const std::function<std::string(const std::string&)>& variable,
                                           unsigned user) {
    std::vector<std::string> places;
    const auto add = [&](const std::string& start, const char* rest) {
        if (!start.empty()) {
            places.push_back(start + rest);
        }
    };
    const std::string home = variable("HOME");
    const std::string runtime = variable("XDG_RUNTIME_DIR");
    add(variable("REGISTRY_AUTH_FILE"), "");
    add(variable("DOCKER_CONFIG"), "/config.json");
    add(home, "/.docker/config.json");
    add(runtime.empty() ? fmt::format("/run/containers/{}", user) : runtime + "/containers", "/auth.json");
    const std::string config = variable("XDG_CONFIG_HOME");
    add(config.empty() && !home.empty() ? home + "/.config" : config, "/containers/auth.json");
    return places;
}

FoundCredentials default_credentials(const std::string& authfile, std::vector<std::string>& warnings,
                                     std::chrono::milliseconds patience) {
    FoundCredentials result;
    const auto add = [&](const std::string& file, std::chrono::milliseconds wait) {
        add_file(file, result.credentials, warnings, &result.skipped, wait);
    };
    if (!authfile.empty()) {
        add(authfile, patience);
    } else {
        for (const std::string& place : credential_places(variable, ::geteuid())) {
            std::error_code fault;
            if (std::filesystem::exists(place, fault)) {
                add(place, place == variable("REGISTRY_AUTH_FILE") ? patience : k_unasked);
            }
        }
    }
    for (const std::string& skipped : result.skipped) {
        warnings.push_back("login-skipped: " + skipped);
    }
    return result;
}

}  // namespace kmm::registry
