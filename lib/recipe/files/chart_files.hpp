// SPDX-License-Identifier: Apache-2.0
// Charts and values on the disk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/chart/render.hpp"
#include "recipe/chart/strvals.hpp"

namespace kmm::recipe::files {

/// What is done with links in a chart that lead out of it. None is followed to /proc, /sys and /dev.
enum class OuterLinks { refuse, follow };

/// The name of the option that makes links OuterLinks::follow.
constexpr std::string_view k_follow_links = "follow-links";

/// The option k_follow_links.
[[nodiscard]] cli::Option follow_links_option();

/// The chart in a directory, without what its .helmignore leaves out, or in a .tgz. Links within the directory are
/// followed; those that lead out of it are errors, or followed and among its notices. Errors: not_found "io" if it is
/// not there, usage "bad-value" for an address, those of load_chart; data "chart-link" for links, "bad-chart" for
/// devices, sockets and pipes in it, "recipe-too-large" for more than 100 MiB.
[[nodiscard]] recipe::chart::Chart read_chart(const std::string& path, OuterLinks links);

/// One --set, --set-string, --set-json, --set-file or --set-literal.
struct SetArgument {
    recipe::chart::SetForm form;
    std::string text;
};

/// What the user gives a chart.
struct UserValues {
    recipe::tmpl::Value values;                     ///< of all files and of --set and its forms
    std::vector<recipe::chart::GivenValues> files;  ///< in the order of the command line
};
/// --values files over each other, then `sets` in their order. Each of `files` is a list, "a.yaml,b.yaml", as Helm
/// reads it: a name with a comma stands in double quotes. "-" is standard input. Errors: not_found, data "bad-values"
/// with file and line, usage "bad-set", and "bad-value" for "-" given twice, for addresses, for empty names in a list
/// and for misplaced quotes.
[[nodiscard]] UserValues read_values(const std::vector<std::string>& files, const std::vector<SetArgument>& sets);

}  // namespace kmm::recipe::files
