// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/policy.hpp"

#include <array>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_policies{UnloadPolicy::always, UnloadPolicy::on_delete, UnloadPolicy::never};

std::optional<UnloadPolicy> policy_named(const std::string& text) {
    for (const auto policy : k_policies) {
        if (text == to_string(policy)) { return policy; }
    }
    return std::nullopt;
}

const std::string* policy_text(const api::Module& module) {
    const auto found = module.meta.annotations.find(std::string(k_annotation_unload_policy));
    return found == module.meta.annotations.end() ? nullptr : &found->second;
}

}  // namespace

UnloadPolicy unload_policy(const api::Module& module) {
    const std::string* text = policy_text(module);
    return text == nullptr ? UnloadPolicy::always : policy_named(*text).value_or(UnloadPolicy::always);
}

std::string_view to_string(UnloadPolicy policy) noexcept {
    switch (policy) {
        case UnloadPolicy::always: return "always";
        case UnloadPolicy::on_delete: return "on-delete";
        case UnloadPolicy::never: return "never";
    }
    return "always";
}

void check_policy(const api::Module& module, Diagnostics& diagnostics) {
    const std::string* text = policy_text(module);
    if (text == nullptr || policy_named(*text)) { return; }
    Diagnostic diagnostic;
    diagnostic.code = "bad-unload-policy";
    diagnostic.message = fmt::format("Module {}: annotation {} is \"{}\", expected always, on-delete or never",
                                     module.full_name(), k_annotation_unload_policy, base::escape(*text));
    const auto place = module.places.find(fmt::format("metadata.annotations[{}]", k_annotation_unload_policy));
    if (place != module.places.end()) {
        diagnostic.position = place->second;
    } else if (!module.meta.origin.file.empty()) {
        diagnostic.position = module.meta.origin;
    }
    diagnostic.hint = "without it KMM's own way holds: a cordon unloads";
    diagnostics.push_back(std::move(diagnostic));
}

}  // namespace kmm::plan
