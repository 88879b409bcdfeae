// SPDX-License-Identifier: Apache-2.0
// Chart.yaml and requirements.yaml.
#pragma once

#include <string>

#include "base/error.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

/// What sigs.k8s.io/yaml makes of a scalar where a string is wanted: numbers and booleans as text, "" for null; nullopt
/// for lists and mappings. Whole numbers have all their digits, others those of a float32.
[[nodiscard]] std::optional<std::string> scalar_text(const tmpl::Value& value);
/// YAML of a file of a chart; nil if it is empty. Error: data "bad-chart" with file, line and column.
[[nodiscard]] tmpl::Value read_chart_yaml(const ChartText& file,
                                          tmpl::WholeNumbers whole = tmpl::WholeNumbers::real);
/// Takes the fields that are there into `metadata`, as encoding/json decodes into a structure that is filled: items
/// of lists into the items of the same number, annotations beside the others. Error: data "bad-chart" for a field of
/// another type.
void decode_metadata(Metadata& metadata, const ChartText& file);
/// Whether `file` has the form of Chart.lock. Error: data "bad-chart".
void check_lock(const ChartText& file);
/// data "bad-chart" at `path` of the file that sets that field.
[[nodiscard]] Error metadata_fault(const Metadata& metadata, std::string message, const std::vector<std::string>& path);
/// What Helm demands of the fields. Error: data "bad-chart".
void validate_metadata(Metadata& metadata);
/// .Chart of templates.
[[nodiscard]] tmpl::Value metadata_value(const Metadata& metadata, bool is_root);

}  // namespace kmm::recipe::chart
