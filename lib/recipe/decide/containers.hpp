// SPDX-License-Identifier: Apache-2.0
// The driver containers of rendered recipes, and what builds their images.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/plan/render.hpp"

namespace kmm::recipe::decide {

/// The member at a path of keys; nullptr if one is absent.
[[nodiscard]] const tmpl::Value* member_at(const tmpl::Value& object, std::initializer_list<std::string_view> path);
/// Its text, "" if it is absent.
[[nodiscard]] std::string text_at(const tmpl::Value& object, std::initializer_list<std::string_view> path);
/// The annotation specialresource.openshift.io/NAME.
[[nodiscard]] std::string own_annotation(const tmpl::Value& object, std::string_view name);
/// Whether a rollout waits until the object is ready: it says so, or is a definition of a kind or a hook of Helm.
[[nodiscard]] bool is_waited_for(const tmpl::Value& object);
/// "DaemonSet hello".
[[nodiscard]] std::string name_of(const tmpl::Value& object);

/// An object that loads drivers: it has the annotation state: driver-container, or is the copy of a DaemonSet for one
/// kernel, or another one with Pods that stay, whose image has the kernel in its name.
struct DriverContainer {
    std::string cr, state, kernel;  ///< kernel "" if it is no copy for one
    std::string name;               ///< "DaemonSet hello-e383247e62b56585"
    std::string name_space;
    std::string image;              ///< of its first container, or of another that is made for the kernel
    std::string vendor;             ///< annotation driver-container-vendor
    std::vector<std::string> pull_secrets;
    std::string builder;            ///< "BuildConfig hello-build-e383247e62b56585"; "" if nothing builds the image; of
                                    ///< several builds the one whose output is the image, else the first
    std::string build_fault;        ///< why the builder cannot build; "" if nothing is known against it
    Position origin;
    std::size_t ordinal = 0;        ///< number among the containers of one template and kernel
};

/// In the order in which they are applied; an object stands once for each image of its Pod that counts. `rendered` has
/// all builds. `kernel`: the only one that it was rendered for, which objects that are no copies are for; "" for none.
[[nodiscard]] std::vector<DriverContainer> driver_containers(const plan::RenderedRecipes& rendered,
                                                             const std::string& kernel = "");

/// Whether an object is a build that is paired with driver containers by the annotation driver-container-vendor.
[[nodiscard]] bool is_paired_build(const tmpl::Value& object);
/// Whether `build` is paired with `container`. Several builds may be: one makes the base of the other's image.
[[nodiscard]] bool is_build_of(const plan::RecipeObject& build, const DriverContainer& container);

}  // namespace kmm::recipe::decide
