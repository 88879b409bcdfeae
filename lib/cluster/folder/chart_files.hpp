// SPDX-License-Identifier: Apache-2.0
// Helm charts among the files of a directory: which of their files are no objects.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::cluster {

/// The directories of Helm charts among files.
[[nodiscard]] std::set<std::string> charts_among(const std::vector<std::string>& files);

/// The chart whose description, values or template with actions a file is. What else is in a chart stands as it is.
[[nodiscard]] std::optional<std::string> chart_of(const std::set<std::string>& charts, std::string_view file,
                                                  std::string_view front);

/// Whether a file lies in the directory of a chart or below it, but for what lies beside its Chart.yaml and is neither
/// that nor values: a SpecialResource may lie there with its chart.
[[nodiscard]] bool is_in_chart(const std::set<std::string>& charts, std::string_view file);

}  // namespace kmm::cluster
