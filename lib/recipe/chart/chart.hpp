// SPDX-License-Identifier: Apache-2.0
// A Helm chart in memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

/// A file of a chart: the name is relative to Chart.yaml's directory, with '/'.
struct File {
    std::string name;
    std::string data;
};

struct Dependency {
    std::string name, version, repository, condition, alias;
    std::vector<std::string> tags;
    std::vector<tmpl::Value> import_values;
    bool enabled = false;
};

struct Maintainer {
    std::string name, email, url;
};

/// A file of a chart: how messages name it, and what is in it.
struct ChartText {
    std::string name, text;
};

struct MetadataText {
    ChartText file;
    std::vector<std::string> keys;  ///< in lower case: the fields that it sets
};

/// Chart.yaml, and requirements.yaml over it.
struct Metadata {
    std::string name, home, version, description, icon, api_version, condition, tags, app_version, kube_version, type;
    std::vector<std::string> sources, keywords;
    std::vector<Maintainer> maintainers;
    tmpl::Value annotations = tmpl::Value::none(tmpl::Type::string_map);
    bool deprecated = false;
    std::vector<Dependency> dependencies;
    bool lists_maintainers = false, lists_dependencies = false;  ///< there is a list, even if it is empty
    std::vector<MetadataText> texts;  ///< Chart.yaml, and requirements.yaml if there is one
    [[nodiscard]] bool is_library() const { return type == "library"; }
};

struct Chart {
    std::string path;   ///< as Helm names its files: "top/charts/sub"; "" before process_dependencies
    std::string place;  ///< how messages name the chart's directory: "chart" or "chart/charts/sub"
    Metadata metadata;
    tmpl::Value values = tmpl::Value::none(tmpl::Type::map);
    std::string values_text;  ///< values.yaml
    std::optional<std::string> schema;
    std::vector<File> templates;
    std::vector<File> files;        ///< the others, that templates can read
    std::vector<Chart> children;
    Diagnostics notices;            ///< what was rarely meant when its files were read
    [[nodiscard]] const std::string& name() const { return metadata.name; }
};

/// A chart of its files. `place` is what the user calls it. Sub-charts are directories and .tgz below charts/.
/// Errors: data "bad-chart" with file and line; "bad-archive"; unsafe "recipe-too-large".
[[nodiscard]] Chart load_chart(std::vector<File> files, const std::string& place);

/// The files of a .tgz, without the directory that they are all in. Errors: data "bad-archive" for damage, absolute
/// names, names with '..' and entries that are neither files nor directories; "recipe-too-large" beyond 100 MiB, or 5
/// MiB for a file.
[[nodiscard]] std::vector<File> read_archive(std::string_view bytes, const std::string& place);

inline constexpr std::size_t k_chart_size_max = 100U << 20U;
inline constexpr std::size_t k_file_size_max = 5U << 20U;

}  // namespace kmm::recipe::chart
