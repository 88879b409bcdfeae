// SPDX-License-Identifier: Apache-2.0
// What becomes of a rendered object before it goes to the API server.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "recipe/chart/manifests.hpp"
#include "recipe/govalue/value.hpp"
#include "recipe/resource/expand.hpp"
#include "recipe/resource/facts.hpp"

namespace kmm::recipe::plan {

/// What an object is made for.
struct ObjectContext {
    const SpecialResource* owner = nullptr;
    const Expanded* expanded = nullptr;
    const Facts* facts = nullptr;
    std::string kernel, os;        ///< "" where the copy is of no kernel: hooks, definitions, the namespace
    std::string owner_kind = "SpecialResource";
    std::string owner_uid;         ///< "": ownerReferences are left out
    bool all_builds = false;       ///< see RenderOptions
    bool is_hook = false;          ///< hooks and definitions: no node selector, Pods are made
    bool operator_only = false;    ///< with the operator's faults
};

/// Whether the annotation kernel-affine says that each kernel gets a copy. The operator sees texts only; an unquoted
/// boolean counts otherwise.
[[nodiscard]] bool is_kernel_affine(const tmpl::Value& object, bool operator_only);

/// Where kinds stand in the operator's install order: Helm's with kinds of OpenShift before Service. Unknown kinds are
/// last.
[[nodiscard]] bool operator_installs_before(std::string_view kind, std::string_view other, bool operator_only);

/// Adds labels, namespace, owner, kernel and node selector as the operator does. nullopt: the object is not made (a
/// build that is not needed, a Pod that the operator never makes). What differs from the operator goes to `notice` as
/// notes "sro-differs", traps as warnings. Errors: data "bad-manifest" at `place`.
[[nodiscard]] std::optional<tmpl::Value> adapt_object(tmpl::Value object, const ObjectContext& context,
                                                      const Position& place,
                                                      const std::function<void(Diagnostic)>& notice);

/// Warns of labels, annotations, variables and other members that must be texts and are not, "not-a-text".
void check_texts(const chart::Manifest& manifest, const std::function<void(Diagnostic)>& notice);

}  // namespace kmm::recipe::plan
