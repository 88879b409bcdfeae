// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/merge.hpp"

#include <algorithm>

namespace kmm::plan {

namespace {

void replace_if_set(std::string& base, const std::string& over) {
    if (!over.empty()) { base = over; }
}

void override_build_args(std::vector<api::BuildArg>& base, const std::vector<api::BuildArg>& over) {
    std::vector<api::BuildArg> extra;
    for (const auto& argument : over) {
        const auto same_name = [&](const api::BuildArg& candidate) { return candidate.name == argument.name; };
        bool found = false;
        for (auto& own : base) {
            if (!same_name(own)) { continue; }
            own.value = argument.value;
            found = true;
        }
        if (found) { continue; }
        const auto repeated = std::find_if(extra.begin(), extra.end(), same_name);
        if (repeated != extra.end()) {
            repeated->value = argument.value;
        } else {
            extra.push_back(argument);
        }
    }
    std::sort(extra.begin(), extra.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    base.insert(base.end(), extra.begin(), extra.end());
}

}  // namespace

std::optional<api::Build> merge_build(const std::optional<api::Build>& container,
                                      const std::optional<api::Build>& mapping) {
    if (!container) { return mapping; }
    if (!mapping) { return container; }
    api::Build result = *container;
    replace_if_set(result.dockerfile_config_map, mapping->dockerfile_config_map);
    override_build_args(result.build_args, mapping->build_args);
    result.secrets.insert(result.secrets.end(), mapping->secrets.begin(), mapping->secrets.end());
    return result;
}

std::optional<api::Sign> merge_sign(const std::optional<api::Sign>& container,
                                    const std::optional<api::Sign>& mapping) {
    if (!container) { return mapping; }
    if (!mapping) { return container; }
    api::Sign result = *container;
    replace_if_set(result.unsigned_image, mapping->unsigned_image);
    replace_if_set(result.key_secret, mapping->key_secret);
    replace_if_set(result.cert_secret, mapping->cert_secret);
    result.files_to_sign.insert(result.files_to_sign.end(), mapping->files_to_sign.begin(),
                                mapping->files_to_sign.end());
    return result;
}

}  // namespace kmm::plan
