// SPDX-License-Identifier: Apache-2.0
// The first pass: templates in the resource itself.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "recipe/resource/resource.hpp"

namespace kmm::recipe::plan {

/// What the first pass leaves of a resource.
struct Expanded {
    tmpl::Value set;
    std::string name_space;
    std::map<std::string, std::string> node_selector;
    tmpl::Value spec = tmpl::Value::nil();  ///< whole; charts of the operator's time see it unexpanded
};

/// How the operator does it (`operator_only`): on the JSON text, where a quote in a template is a fault and a missing
/// key becomes "<no value>"; else on the tree, where a missing key is empty and goes to `notice`. `values` is .Values.
/// Texts of the whole resource are expanded, those of `set` once more. A resource without a chart may name values as
/// the operator did before it took charts: {{.KernelVersion}}. Errors: those of templates, all at once, at
/// their place in the document.
[[nodiscard]] Expanded expand_resource(const SpecialResource& resource, const tmpl::Value& values, bool operator_only,
                                       const std::function<void(Diagnostic)>& notice);

}  // namespace kmm::recipe::plan
