// SPDX-License-Identifier: Apache-2.0
#include "registry/local/policy_files.hpp"

#include <cstddef>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/local/local.hpp"
#include "sys/trust.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_policy_file_bytes = 4U << 20U;
constexpr std::size_t k_key_file_bytes = 1U << 20U;

std::string read_key(const std::string& file) { return sys::read_trusted_file(file, "public key", k_key_file_bytes); }

/// As policies name it: absolute and without links. What is not there is told of when it is opened.
std::string plain_path(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::path found = std::filesystem::canonical(path, ignored);
    return found.empty() ? path : found.native();
}

const trust::Requirements& of_policy(const trust::Policy& policy, const std::string& reference) {
    const auto local = parse_local_reference(reference);
    if (!local) {
        return trust::requirements_for(policy, "docker",
                                       trust::scopes_of(trust::named_image(image::parse_reference(reference))));
    }
    switch (local->transport) {
        case Transport::oci:
            return trust::requirements_for(policy, "oci", trust::scopes_of_path(plain_path(local->path)));
        case Transport::oci_archive:
            return trust::requirements_for(policy, "oci-archive", trust::scopes_of_path(plain_path(local->path)));
        case Transport::directory:
            return trust::requirements_for(policy, "dir", trust::scopes_of_path(plain_path(local->path)));
        case Transport::docker_archive: break;
    }
    return trust::requirements_for(policy, "docker-archive", {});
}

}  // namespace

ImagePolicy::ImagePolicy(const std::string& policy_file, const std::vector<std::string>& key_files) {
    if (!policy_file.empty()) {
        policy_ = trust::read_policy(sys::read_trusted_file(policy_file, "policy", k_policy_file_bytes), policy_file);
    }
    for (const std::string& file : key_files) {
        keys_.emplace_back(read_key(file), file);
    }
}

ImagePolicy ImagePolicy::from_texts(const std::string& policy, const std::vector<std::string>& keys,
                                    const std::string& where) {
    ImagePolicy made;
    if (!policy.empty()) {
        made.policy_ = trust::read_policy(policy, where);
        const auto refuse = [&](const trust::Requirements& list) {
            for (const trust::Requirement& each : list) {
                if (each.key_files.empty()) continue;
                throw Error(Exit::data, "bad-value",
                            fmt::format("expected keyData or keyDatas, found the name of a file, {}",
                                        base::escape(each.key_files.front())))
                    .at(each.position);
            }
        };
        refuse(made.policy_->fallback);
        for (const auto& [transport, scopes] : made.policy_->transports) {
            for (const auto& [scope, list] : scopes) refuse(list);
        }
    }
    for (const std::string& key : keys) made.keys_.emplace_back(key, where + ": key");
    return made;
}

trust::Requirements ImagePolicy::of(const std::string& reference) const {
    trust::Requirements requirements;
    if (policy_) {
        requirements = of_policy(*policy_, reference);
        trust::load_keys(requirements, read_key);
    }
    add_keys(requirements);
    return requirements;
}

trust::Requirements ImagePolicy::of_store(const std::string& transport) const {
    trust::Requirements requirements;
    if (policy_) {
        requirements = trust::requirements_for(*policy_, transport, {});
        if (const auto store = policy_->transports.find(transport); store != policy_->transports.end()) {
            for (const auto& [scope, list] : store->second) {
                if (!scope.empty()) requirements.insert(requirements.end(), list.begin(), list.end());
            }
        }
    }
    add_keys(requirements);
    return requirements;
}

void ImagePolicy::add_keys(trust::Requirements& requirements) const {
    if (keys_.empty()) return;
    trust::Requirements more = trust::signed_with(keys_);
    requirements.insert(requirements.end(), std::make_move_iterator(more.begin()),
                        std::make_move_iterator(more.end()));
}

}  // namespace kmm::registry
