// SPDX-License-Identifier: Apache-2.0
#include "api/other_documents.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

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

namespace {

/// A key of the operator's file, and the fields below it.
struct Section {
    std::string_view key;
    std::vector<std::string> fields = {};  ///< none: it has a plain value
    bool is_telling = false;               ///< other programs hardly have it
};

const std::vector<Section>& sections() {
    static const std::vector<Section> all{
        {"healthProbeBindAddress", {}, true},
        {"job", {"gcDelay"}},
        {"leaderElection", {"enabled", "resourceID"}, true},
        {"metrics", {"bindAddress", "disableHTTP2", "enableAuthnAuthz", "secureServing"}},
        {"webhook", {"disableHTTP2", "port"}},
        {"webhookPort", {}, true},
        {"worker", {"firmwareHostPath", "runAsUser", "seLinuxType", "setFirmwareClassPath"}},
    };
    return all;
}

/// The section of `key`, nullptr if there is none.
const Section* section_of(std::string_view key) {
    const auto found =
        std::find_if(sections().begin(), sections().end(), [&](const auto& section) { return section.key == key; });
    return found == sections().end() ? nullptr : &*found;
}

/// Whether a member is one of the file's, maybe misspelt, and all that is below it, too.
bool looks_like_its_own(const value::Member& member) {
    std::vector<std::string> keys;
    for (const auto& section : sections()) { keys.emplace_back(section.key); }
    const auto key = section_of(member.key) != nullptr ? member.key : base::nearest(member.key, keys).value_or("");
    const Section* section = section_of(key);
    if (section == nullptr) { return false; }
    if (section->fields.empty()) { return !member.value.is_mapping() && !member.value.is_sequence(); }
    if (!member.value.is_mapping()) { return false; }
    const auto& below = member.value.members();
    const auto is_known = [&](const value::Member& one) {
        return std::find(section->fields.begin(), section->fields.end(), one.key) != section->fields.end() ||
               base::nearest(one.key, section->fields).has_value();
    };
    return !below.empty() && std::all_of(below.begin(), below.end(), is_known);
}

}  // namespace

bool is_operator_config(const value::Node& root) {
    if (root.find("kind") != nullptr || root.find("apiVersion") != nullptr || root.members().empty()) { return false; }
    const auto& members = root.members();
    if (std::all_of(members.begin(), members.end(), looks_like_its_own)) { return true; }
    // Other operators made with Kubebuilder have such a file, too.
    const bool has_others_key = std::any_of(members.begin(), members.end(),
                                            [](const auto& member) { return section_of(member.key) == nullptr; });
    const std::string elected = root.get_string({"leaderElection", "resourceID"});
    if (has_others_key && !elected.empty() && elected.find("kmm") == std::string::npos) { return false; }
    const value::Node* worker = root.find("worker");
    const auto& fields = section_of("worker")->fields;
    const bool has_worker =
        worker != nullptr &&
        std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return worker->find(field) != nullptr; });
    const bool is_told = std::any_of(members.begin(), members.end(), [](const auto& member) {
        const Section* section = section_of(member.key);
        return section != nullptr && section->is_telling;
    });
    return has_worker || is_told || root.find_path({"job", "gcDelay"}) != nullptr;
}

}  // namespace kmm::api
