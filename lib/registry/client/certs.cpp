// SPDX-License-Identifier: Apache-2.0
#include "registry/client/certs.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "sys/directory.hpp"

namespace kmm::registry {

namespace {

/// "reg.example.com:5000" as containerd calls its directory where a name may have no colon: "reg.example.com_5000_".
std::string without_colon(std::string registry) {
    const std::size_t colon = registry.rfind(':');
    if (colon != std::string::npos) {
        registry[colon] = '_';
        registry += '_';
    }
    return registry;
}

}  // namespace

std::vector<std::string> certificate_directories(const std::string& etc) {
    return {etc + "/containers/certs.d", etc + "/docker/certs.d", etc + "/containerd/certs.d"};
}

void add_certificates(net::TlsSettings& tls, const std::vector<std::string>& directories, const std::string& registry) {
    for (const std::string& directory : directories) {
        std::string own = directory + "/" + registry;
        if (registry.find('/') != std::string::npos) {
            continue;
        }
        if (::access(own.c_str(), R_OK | X_OK) != 0) {
            own = directory + "/" + without_colon(registry);
        }
        if (::access(own.c_str(), R_OK | X_OK) != 0) {
            continue;
        }
        for (const sys::DirectoryEntry& entry : sys::list_directory(own)) {
            const std::string path = own + "/" + entry.name;
            if (entry.name.ends_with(".crt")) {
                tls.more_ca_files.push_back(path);
            } else if (entry.name.ends_with(".cert") && tls.client_certificate.empty()) {
                const std::string key = path.substr(0, path.size() - 5) + ".key";
                if (::access(key.c_str(), R_OK) != 0) {
                    throw Error(Exit::not_found, "ca-file",
                                "expected a readable key " + key + " for the client certificate " + path);
                }
                tls.client_certificate = path;
                tls.client_key = key;
            }
        }
        return;
    }
}

}  // namespace kmm::registry
