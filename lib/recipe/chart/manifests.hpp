// SPDX-License-Identifier: Apache-2.0
// Rendered files as objects, in Helm's order.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

/// One document of a rendered template.
struct Manifest {
    std::string source;       ///< the template: "chart/templates/x.yaml"
    std::string content;
    tmpl::Value object = tmpl::Value::nil();  ///< `content`, whole numbers exact; nil for an empty document
    std::string api_version, kind, name;
    std::string hooks;        ///< the annotation helm.sh/hook
    bool is_definitions = false;  ///< a whole file of crds/: source and content alone, see definitions_of
    std::size_t line = 1;     ///< of the rendered text in which it starts
    std::function<Position(std::size_t line)> origin =
        {};  ///< leads from a line of `content`, from 1, to the template; never empty for what was rendered
};

/// A template that was rendered. `origin` leads from a line of the text, from 1, to the place in a template that made
/// it.
struct RenderedFile {
    std::string name;
    std::string text;
    std::function<Position(std::size_t line)> origin;
};

/// The documents of `files`, which are in order of their names. Hooks stand apart. Error: data "bad-manifest" at the
/// template's line for a document that is not YAML, or whose kind, name or annotations have another type than string.
struct Manifests {
    std::vector<Manifest> objects, hooks;
    std::vector<Manifest> left_out;  ///< hooks with an event that Helm does not know: it installs them never
};
[[nodiscard]] Manifests sort_manifests(const std::vector<RenderedFile>& files);
/// The documents of a file of crds/ in their order: no template, whatever its name, and without hooks. Error: as
/// sort_manifests.
[[nodiscard]] std::vector<Manifest> definitions_of(const Manifest& file);

/// The first event of an annotation helm.sh/hook that Helm does not know, as it stands there; nullopt if it knows
/// all.
[[nodiscard]] std::optional<std::string> unknown_event(const std::string& hooks);
/// The events that Helm knows.
[[nodiscard]] std::vector<std::string> hook_events();

/// Kinds in Helm's install order.
[[nodiscard]] std::span<const std::string_view> install_order() noexcept;
/// Where kinds stand in Helm's install order; unknown kinds are last, in order of their names.
[[nodiscard]] bool installs_before(std::string_view kind, std::string_view other);

}  // namespace kmm::recipe::chart
