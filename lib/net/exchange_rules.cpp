// SPDX-License-Identifier: Apache-2.0
#include "net/exchange_rules.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.hpp"
#include "net/address.hpp"

namespace kmm::net {

namespace {

constexpr const char* k_authority_variable = "SSL_CERT_FILE";

}  // namespace

std::vector<std::string> authorities(const TlsSettings& tls) {
    std::vector<std::string> files = tls.more_ca_files;
    const char* file = std::getenv(k_authority_variable);
    if (file != nullptr && ::access(file, R_OK) == 0 && tls.ca_pem.empty() && !tls.insecure) {
        files.emplace_back(file);
    }
    if (!tls.ca_file.empty()) {
        files.push_back(tls.ca_file);
    }
    return files;
}

Error bad_authority(const std::string& file, const TlsSettings& tls) {
    const char* variable = std::getenv(k_authority_variable);
    const bool by_variable =
        variable != nullptr && file == variable && file != tls.ca_file;
    return Error(Exit::data, "bad-certificate",
                 fmt::format("CA file {}{}: expected certificates in PEM form, found none",
                             base::escape(file),
                             by_variable ? fmt::format(", which {} names", k_authority_variable) : ""));
}

Error address_refused(const std::string& address, const std::string& url) {
    return Error(Exit::no_permission, "address-refused",
                 fmt::format("expected an address on the same side of the network as the registry, found {}", address))
        .detail("url", redact_url(url));
}

void check_name(const Request& request, const Url& url) {
    const auto target = look_up(url.host, Pick::least_public);
    if (!target || target->scope <= request.scope_max) {
        return;
    }
    const auto origin = look_up(request.referred_by, Pick::most_public);
    if (!origin || origin->scope < target->scope) {
        throw address_refused(target->address, request.url);
    }
}

std::string host_and_port(const Url& url) {
    const bool numeric_v6 = url.host.find(':') != std::string::npos;
    return fmt::format("{}:{}", numeric_v6 ? "[" + url.host + "]" : url.host, url.port);
}

bool quotes_proxy(const std::string& reason) {
    return reason.find("proxy") < reason.find('\'') && reason.find('\'') != std::string::npos;
}

std::vector<std::string> header_lines(const Request& request, const std::string& host) {
    std::vector<std::string> lines;
    for (const auto& [name, value] : request.headers) {
        if ((name + value).find_first_of("\r\n") != std::string::npos || value.find('\0') != std::string::npos) {
            throw Error(Exit::data, "bad-url", "expected a header without line breaks: " + base::escape(name));
        }
        lines.push_back(name + ": " + value);
    }
    if (!host.empty()) {
        lines.push_back("Host: " + host);
    }
    if (request.encoding != Encoding::gzip) {
        lines.emplace_back("Accept-Encoding: identity");
    }
    lines.emplace_back("Expect:");
    return lines;
}

std::vector<std::string> readable_authorities(const TlsSettings& tls) {
    auto files = authorities(tls);
    for (const std::string& file : files) {
        if (::access(file.c_str(), R_OK) != 0) {
            const int saved = errno;
            throw from_errno(saved, "CA file " + file, "ca-file");
        }
    }
    return files;
}

}  // namespace kmm::net
