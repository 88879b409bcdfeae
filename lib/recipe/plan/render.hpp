// SPDX-License-Identifier: Apache-2.0
// Recipes as objects, in the order in which they are applied.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/shared_work.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/resource/release_kinds.hpp"
#include "recipe/resource/resource.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::plan {

struct RenderOptions {
    bool operator_only = false;  ///< as the Special Resource Operator does it, with its faults
    std::string owner_uid;  ///< of the resources in ownerReferences; "": that of each document, none if it has none
    bool all_builds = false;     ///< builds of every vendor, also those that are not needed
    tmpl::Limits limits;         ///< of each chart that is rendered
    base::RunTogether run;       ///< threads that share the resources; empty: the caller's alone
};

struct RecipeObject {
    std::string cr;      ///< name of the SpecialResource that it is made for
    std::string state;   ///< "1000-driver.yaml", "(namespace)", "(stateless)" or "(dependency)"
    std::string kernel;  ///< "" unless it is the copy for one kernel
    tmpl::Value object;
    Position origin;     ///< of the template
};

struct RenderedRecipes {
    std::vector<RecipeObject> objects;
    Diagnostics
        findings;  ///< warnings, and notes "sro-differs" where the operator does something else; merged and sorted
    std::string main;      ///< the resource that was asked for; "" if there are several
};

/// Gives the chart of a resource, or of a dependency that is no document. Called by several threads at the same time,
/// if RenderOptions::run has them, each for another resource. Errors: its own.
using ChartOf = std::function<recipe::chart::Chart(const std::string& resource, const ChartReference& reference)>;

/// The resources `names` (all if empty), each after what it depends on. Errors: not_found "recipe-not-found" with the
/// nearest name; data "dependency-cycle" with the path, "no-kernels", "unknown-fact", "recipe-duplicate" for copies of
/// several kernels that have one name and differ, those of templates and charts.
[[nodiscard]] RenderedRecipes render_recipes(std::span<const SpecialResource> all,
                                             const std::vector<std::string>& names, const ChartOf& chart_of,
                                             const Facts& facts, const RenderOptions& options);

/// The SpecialResourceModules `names` (all if empty) for the releases that their watches find among `objects`. Errors:
/// not_found "recipe-not-found"; those of watched_releases, templates and charts.
[[nodiscard]] RenderedRecipes render_modules(std::span<const SpecialResourceModule> all,
                                             const std::vector<std::string>& names,
                                             std::span<const value::Document> objects, const ChartOf& chart_of,
                                             const Facts& facts, const RenderOptions& options);

/// The YAML stream: each object headed by comments with its state, kernel and resource. `run` has the threads that
/// write it.
[[nodiscard]] std::string recipe_text(const RenderedRecipes& rendered, const base::RunTogether& run = {});

/// {"apiVersion": "kmmtools/v1", "kind": "Recipe", "objects": [{"cr", "state", "kernel", "object"}]}; absent parts are
/// left out.
[[nodiscard]] std::string recipe_json(const RenderedRecipes& rendered);
/// The entries of recipe_json, one a line.
[[nodiscard]] std::string recipe_lines(const RenderedRecipes& rendered);
/// The objects, a line with "kind/name" each.
[[nodiscard]] std::string recipe_names(const RenderedRecipes& rendered);

}  // namespace kmm::recipe::plan
