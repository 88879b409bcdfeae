// SPDX-License-Identifier: Apache-2.0
#include "api/other_documents.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace kmm::api {

std::string hint_of_no_object(std::string_view file, const value::Node& root) {
    const std::string_view name = file.substr(file.find_last_of('/') + 1);
    if (name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization") {
        return k_kustomize_hint;
    }
    const bool is_chart = name == "Chart.yaml" && root.find("name") != nullptr;
    const bool is_values = name.starts_with("values") && (name.ends_with(".yaml") || name.ends_with(".yml"));
    if (!is_chart && !is_values) { return ""; }
    return fmt::format("this {} of a Helm chart: helm template DIR | kmm-plan validate -f -",
                       is_chart ? "is the description" : "looks like a file of values");
}

std::string hint_of_no_mapping(const value::Node& root) {
    if (root.is_sequence()) {
        return "write several objects as documents with --- between them, or as items of a List";
    }
    return root.is_string() && root.text().starts_with("NAME ")
               ? "this looks like a table: kubectl get -o json writes the objects"
               : "";
}

bool is_operator_config(const value::Node& root) {
    constexpr std::array<std::string_view, 7> keys{
        "healthProbeBindAddress", "job", "leaderElection", "metrics", "webhook", "webhookPort", "worker"};
    constexpr std::array<std::string_view, 3> telling{"healthProbeBindAddress", "leaderElection", "webhookPort"};
    if (root.find("kind") != nullptr || root.find("apiVersion") != nullptr || root.members().empty()) { return false; }
    const auto is_key = [](const auto& list, const value::Member& member) {
        return std::find(list.begin(), list.end(), member.key) != list.end();
    };
    const auto& members = root.members();
    // Other operators made with Kubebuilder have such a file, too.
    const bool has_others_key =
        std::any_of(members.begin(), members.end(), [&](const auto& member) { return !is_key(keys, member); });
    const std::string elected = root.get_string({"leaderElection", "resourceID"});
    if (has_others_key && !elected.empty() && elected.find("kmm") == std::string::npos) { return false; }
    const value::Node* worker = root.find("worker");
    const bool has_worker =
        worker != nullptr &&
        (worker->find("firmwareHostPath") != nullptr || worker->find("setFirmwareClassPath") != nullptr ||
         worker->find("runAsUser") != nullptr || worker->find("seLinuxType") != nullptr);
    const bool tells =
        std::any_of(members.begin(), members.end(), [&](const auto& member) { return is_key(telling, member); });
    return (has_worker || tells || root.find_path({"job", "gcDelay"}) != nullptr) &&
           std::any_of(members.begin(), members.end(), [&](const auto& member) { return is_key(keys, member); });
}

}  // namespace kmm::api
