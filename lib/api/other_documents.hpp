// SPDX-License-Identifier: Apache-2.0
// Documents without kind and apiVersion that people have beside their manifests.
#pragma once

#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::api {

inline constexpr const char* k_kustomize_hint = "this is for kustomize: kubectl kustomize DIR | kmm-plan validate -f -";

/// What a document without kind is, if its file name says so, for people; else "".
[[nodiscard]] std::string hint_of_no_object(std::string_view file, const value::Node& root);

/// What a document is that is no mapping, if people have reason to give it; else "".
[[nodiscard]] std::string hint_of_no_mapping(const value::Node& root);

/// Whether a document without kind and apiVersion is the operator's controller_config.yaml.
[[nodiscard]] bool is_operator_config(const value::Node& root);

}  // namespace kmm::api
