// SPDX-License-Identifier: Apache-2.0
#include "net/proxy.hpp"

#include <cstdlib>
#include <string>

#include "base/text.hpp"

namespace kmm::net {

namespace {

std::string variable(const char* lower, const char* upper) {
    const char* value = std::getenv(lower);
    if (value == nullptr && upper != nullptr) {
        value = std::getenv(upper);
    }
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

bool goes_through_proxy(const Url& url) {
    std::string proxy = url.scheme == "https" ? variable("https_proxy", "HTTPS_PROXY") : variable("http_proxy", nullptr);
    if (proxy.empty()) {
        proxy = variable("all_proxy", "ALL_PROXY");
    }
    if (proxy.empty()) {
        return false;
    }
    const std::string exceptions = base::to_lower(variable("no_proxy", "NO_PROXY"));
    for (std::string_view entry : base::split(exceptions, ',')) {
        entry = base::trim(entry);
        if (entry == "*") {
            return false;
        }
        if (entry.starts_with('.')) {
            entry.remove_prefix(1);
        }
        if (!entry.empty() && (url.host == entry || url.host.ends_with("." + std::string(entry)))) {
            return false;
        }
    }
    return true;
}

}  // namespace kmm::net
