// SPDX-License-Identifier: Apache-2.0
// Parts of what a chart renders: definitions, hooks of an event in order, and how objects are named. Internal to this
// room.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipe/chart/manifests.hpp"
#include "recipe/chart/render.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::plan {

/// The text of a member of a map; empty if it is missing or not a string.
[[nodiscard]] std::string member_text(const tmpl::Value& object, std::string_view key);

/// Equal for objects that an API server takes for one: group, kind, namespace and name, whatever the version.
[[nodiscard]] std::string identity(const tmpl::Value& object);

/// Kind and name, for messages.
[[nodiscard]] std::string shown(const tmpl::Value& object);

/// Where the template of a manifest stands.
[[nodiscard]] Position place_of(const chart::Manifest& manifest);

/// Lists (kind List, ConfigMapList, ...) as what they hold: kubectl and Helm apply each item as an object of its own.
void open_lists(std::vector<chart::Manifest>& manifests);

/// The objects of `crds/`, in the order in which they are installed.
[[nodiscard]] std::vector<chart::Manifest> definitions(const chart::Rendered& rendered);

/// The same as the operator reads them: in order of the file, with an empty document, which it refuses, where a file
/// begins or ends with a separator. Error: data "bad-manifest".
[[nodiscard]] std::vector<chart::Manifest> operator_definitions(const chart::Rendered& rendered);

/// What a hook is run for, in lower case: "pre-install", "pre-upgrade".
[[nodiscard]] std::vector<std::string> events_of(const chart::Manifest& hook);
/// The hooks of an event ("pre-install"), by weight, then by name.
[[nodiscard]] std::vector<chart::Manifest> hooks_of(const chart::Rendered& rendered, std::string_view event);

/// Hooks of upgrades, rollbacks and removals, and those whose place in an upgrade differs; tests are run by those
/// who ask for them.
void warn_of_hooks(const chart::Rendered& rendered, const std::function<void(Diagnostic)>& notice);

}  // namespace kmm::recipe::plan
