// SPDX-License-Identifier: Apache-2.0
// Charts and values on the disk.
#pragma once

#include <string>
#include <vector>

#include "recipe/chart/chart.hpp"

namespace kmm::recipe::files {

/// The chart in a directory, without what its .helmignore leaves out, or in a .tgz. Links are followed.
/// Errors: not_found "io" if it is not there, those of load_chart; data "bad-chart" for devices, sockets and pipes in
/// it, "recipe-too-large" for more than 100 MiB.
[[nodiscard]] recipe::chart::Chart read_chart(const std::string& path);

/// --values files over each other, then --set. "-" is standard input. Errors: not_found, data "bad-values" with file
/// and line, usage "bad-set".
[[nodiscard]] recipe::tmpl::Value read_values(const std::vector<std::string>& files,
                                              const std::vector<std::string>& sets);

}  // namespace kmm::recipe::files
