// SPDX-License-Identifier: Apache-2.0
#include "registry/certs.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "sys/directory.hpp"

namespace kmm::registry {

void add_certificates(net::TlsSettings& tls, const std::vector<std::string>& directories, const std::string& registry) {
    for (const std::string& directory : directories) {
        const std::string own = directory + "/" + registry;
        if (registry.find('/') != std::string::npos || ::access(own.c_str(), R_OK | X_OK) != 0) {
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
