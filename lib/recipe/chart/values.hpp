// SPDX-License-Identifier: Apache-2.0
// How Helm merges values: files, --set, those of charts and their sub-charts, and `global`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/chart/chart.hpp"

namespace kmm::recipe::chart {

/// What null in values means where they are merged over a chart's.
enum class Nulls {
    removed,   ///< it removes the default
    kept,      ///< it stays, to remove the default of a sub-chart
    helm_3_7,  ///< as that Helm does it: removed in each mapping, whoever's it is
};

/// One values file over those before it: mappings are merged, everything else, null too, replaces.
[[nodiscard]] tmpl::Value merge_values(const tmpl::Value& under, const tmpl::Value& over);

/// `given` over the values of `chart` and its sub-charts. Null deletes a default, unless `merge`. Neither argument is
/// changed. Error: data "bad-values" if the values of a sub-chart are not a mapping.
[[nodiscard]] tmpl::Value coalesce_values(const Chart& chart, const tmpl::Value& given, Nulls nulls);

/// Merges `source` into `target`, whose values win. Changes both as Helm does: keys that are null in `target` are null
/// in `source`.
void coalesce_tables(const tmpl::Value& target, const tmpl::Value& source, Nulls nulls);

/// The member of a mapping, or the item of a list whose number `step` is; nullptr if there is none.
[[nodiscard]] const tmpl::Value* child_at(const tmpl::Value& value, const std::string& step);

/// The mapping at a path like "a.b"; nullptr if there is none.
[[nodiscard]] const tmpl::Value* find_table(const tmpl::Value& values, std::string_view path);

/// Sub-charts by condition, tags and alias; then import-values. Changes `chart`, and gives each its path.
void process_dependencies(Chart& chart, const tmpl::Value& values, bool is_helm_3_7 = false);

/// Sub-charts that Chart.yaml names and charts/ does not have.
[[nodiscard]] std::vector<std::string> missing_dependencies(const Chart& chart);

}  // namespace kmm::recipe::chart
