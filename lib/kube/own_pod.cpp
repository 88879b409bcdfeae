// SPDX-License-Identifier: Apache-2.0
#include "kube/own_pod.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "sys/file_ops.hpp"
#include "value/reader.hpp"

namespace kmm::kube {
namespace {

/// What a token claims, null if it is none that claims anything. It is our own: its signature is the API server's
/// business.
value::Node claims_of(std::string_view token) {
    const auto parts = base::split(token, '.');
    if (parts.size() != 3) { return {}; }
    std::string text(parts[1]);
    std::replace(text.begin(), text.end(), '-', '+');
    std::replace(text.begin(), text.end(), '_', '/');
    while (text.size() % 4 != 0) { text.push_back('='); }
    const auto json = base::from_base64(text);
    if (!json) { return {}; }
    Diagnostics faults;
    const auto documents = value::read_json(*json, "token", faults);
    return has_errors(faults) || documents.empty() ? value::Node() : documents.front().root;
}

std::string text_of_file(const std::string& path) {
    return ::access(path.c_str(), R_OK) == 0 ? std::string(base::trim(sys::read_file(path))) : "";
}

}  // namespace

std::optional<OwnPod> own_pod(const ConfigRequest& request, const std::string& host_name) {
    const auto token = text_of_file(request.account_directory + "/token");
    if (request.service_host.empty() || token.empty()) { return std::nullopt; }
    const auto claims = claims_of(token);
    OwnPod pod;
    pod.namespace_ = claims.get_string({"kubernetes.io", "namespace"});
    pod.name = claims.get_string({"kubernetes.io", "pod", "name"});
    pod.uid = claims.get_string({"kubernetes.io", "pod", "uid"});
    pod.node = claims.get_string({"kubernetes.io", "node", "name"});
    if (pod.namespace_.empty()) { pod.namespace_ = text_of_file(request.account_directory + "/namespace"); }
    if (pod.name.empty()) { pod.name = host_name; }
    return pod;
}

}  // namespace kmm::kube
