// SPDX-License-Identifier: Apache-2.0
// The values that the operator adds to a chart's own: what runs in the cluster.
#pragma once

#include <string>
#include <vector>

#include "recipe/govalue/value.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/resource/resource.hpp"

namespace kmm::recipe::plan {

/// A kernel that runs on nodes of a recipe.
struct RecipeKernel {
    std::string kernel;
    SystemVersion system;
    std::string os_image;
    std::optional<DriverToolkit> toolkit;
};

/// The kernels of the nodes that `selector` selects, in byte order, each once; of several nodes with one kernel the
/// last counts, as in the operator. `last` is that of the last node. Errors: data "no-kernels" if there is none;
/// "bad-os-image" if `operator_only` and a node's system cannot be read.
struct RecipeKernels {
    std::vector<RecipeKernel> all;
    std::string last;
    tmpl::Value upgrade_info;  ///< clusterUpgradeInfo: the same for each of them
    [[nodiscard]] const RecipeKernel& at(const std::string& kernel) const;
};
[[nodiscard]] RecipeKernels select_kernels(const Facts& facts, const SpecialResource& resource, bool operator_only);

enum class Root {
    charts,    ///< .Values of charts
    resource,  ///< .Values of templates in the resource itself: the operator names the members of `proxy` in another
               ///< way there
};
/// What to do where the version of a node's system is not known.
[[nodiscard]] std::string system_hint(const std::string& os_image);

/// The resource as templates of the operator see it. A `set` that is absent is null to the first pass, the number 0 to
/// charts: the converter reads what the empty object writes, "null" with a line feed, as a number.
[[nodiscard]] tmpl::Value as_operator_sees(const SpecialResource& resource, Root root);
/// What templates see as .Values. Facts that nobody has given are tmpl::unknown_value.
[[nodiscard]] tmpl::Value runtime_values(const Facts& facts, const SpecialResource& resource,
                                         const RecipeKernels& kernels, const RecipeKernel& kernel, Root root,
                                         bool operator_only);

/// .Values.groupName.
[[nodiscard]] tmpl::Value group_names();

/// "4.18.0-305" of "4.18.0-305.40.2.el8_4.x86_64".
[[nodiscard]] std::string kernel_patch_version(std::string_view kernel);

/// What the operator appends to the name of a copy for one kernel: FNV-1a of "8.4-4.18.0-305.40.2.el8-4.x86_64", as
/// hexadecimal digits.
[[nodiscard]] std::string kernel_suffix(std::string_view os, std::string_view kernel);

}  // namespace kmm::recipe::plan
