// SPDX-License-Identifier: Apache-2.0
#include "net/http.hpp"

namespace kmm::net {

std::optional<std::string> Response::header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (key == name) {
            return value;
        }
    }
    return std::nullopt;
}

std::vector<std::string> Response::all_headers(std::string_view name) const {
    std::vector<std::string> values;
    for (const auto& [key, value] : headers) {
        if (key == name) {
            values.push_back(value);
        }
    }
    return values;
}

std::string speaker(const Response& response, const std::string& server) {
    return response.proxy.empty() ? server : "the proxy " + response.proxy + ", or " + server + " behind it,";
}

}  // namespace kmm::net
