// SPDX-License-Identifier: Apache-2.0
// The chart of one resource, rendered state by state as Helm does. Internal to this room.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "recipe/chart/render.hpp"
#include "recipe/functions/functions.hpp"
#include "recipe/plan/render.hpp"
#include "recipe/plan/states.hpp"
#include "recipe/resource/expand.hpp"

namespace kmm::recipe::plan {

class ResourceChart {
public:
    /// The references outlive it; `chart` is the whole one, of all states.
    ResourceChart(const SpecialResource& resource, const chart::Chart& chart, const Facts& facts,
                  const RenderOptions& options, std::function<void(Diagnostic)> notice);

    /// The values of the chart, of `own` and of the cluster; those of the cluster win.
    [[nodiscard]] tmpl::Value values(const Expanded& own, const tmpl::Value& runtime) const;

    /// One state. Errors: those of chart::render_chart, with a hint where a state calls what another one defines.
    [[nodiscard]] chart::Rendered render(const RecipeState& state, const Expanded& own, const tmpl::Value& values);

private:
    [[nodiscard]] chart::Release release(const Expanded& own) const;
    /// All runs of the operator share one Chart.yaml, in which Helm renames what has an alias and removes what a
    /// condition turns off: from the second run on those sub-charts are no dependencies, so they are rendered under
    /// their own names whatever a condition says.
    void take_used_dependencies(chart::Chart& step, const tmpl::Value& values);
    /// A state sees the helpers alone, not what another state defines.
    void explain_missing_template(Error& error, const RecipeState& state) const;

    const SpecialResource& resource_;
    const chart::Chart& whole_;
    const Facts& facts_;
    const RenderOptions& options_;
    std::function<void(Diagnostic)> notice_;
    std::shared_ptr<tmpl::ParsedFiles> parsed_ = std::make_shared<tmpl::ParsedFiles>(tmpl::chart_library());
    /// Of Chart.yaml, after the runs so far; with the operator's faults only.
    std::optional<std::vector<chart::Dependency>> used_dependencies_;
};

/// A warning if the source of a resource without a chart is one that no Job reads: it takes no keys along, as a
/// BuildConfig does with its source secret. `spec`: the expanded one.
void note_unread_source(const SpecialResource& resource, const tmpl::Value& spec, const Facts& facts,
                        const std::function<void(Diagnostic)>& notice);

}  // namespace kmm::recipe::plan
