// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/chart/metadata.hpp"

namespace kmm::recipe::chart {

namespace {

constexpr int k_nesting_max = 30;

Chart load_nested(std::vector<File> files, const std::string& place, int depth) {
    if (depth > k_nesting_max) {
        throw Error(Exit::data, "recipe-too-large", fmt::format("charts are nested more than {} deep", k_nesting_max))
            .at(Position{place, 0, 0});
    }
    Chart chart;
    chart.place = place;
    bool has_metadata = false;
    const auto named = [&](const std::string& name) { return place + '/' + name; };
    for (const auto& file : files) {
        if (file.name != "Chart.yaml") { continue; }
        has_metadata = true;
        decode_metadata(chart.metadata, {named(file.name), file.data});
        if (chart.metadata.api_version.empty()) { chart.metadata.api_version = "v1"; }
    }
    std::map<std::string, std::vector<File>> children;
    std::string misnamed;  // a file that was meant to be Chart.yaml
    for (auto& file : files) {
        const std::string& name = file.name;
        if (name == "Chart.yaml") { continue; }
        if (const std::string lower = base::to_lower(name); lower == "chart.yaml" || lower == "chart.yml") {
            misnamed = name;
        }
        if (name == "Chart.lock" || name == "requirements.lock") {
            check_lock({named(name), file.data});
            if (name == "requirements.lock" && chart.metadata.api_version == "v1") {
                chart.files.push_back(std::move(file));
            }
        } else if (name == "values.yaml") {
            chart.values = read_chart_yaml({named(name), file.data});
            chart.values_text = file.data;
            if (chart.values.is_nil()) { chart.values = tmpl::Value::none(tmpl::Type::map); }
        } else if (name == "values.schema.json") {
            chart.schema = file.data;
        } else if (name == "requirements.yaml") {
            decode_metadata(chart.metadata, {named(name), file.data});
            if (chart.metadata.api_version == "v1") { chart.files.push_back(std::move(file)); }
        } else if (name.starts_with("templates/")) {
            chart.templates.push_back(std::move(file));
        } else if (name.starts_with("charts/")) {
            if (name.ends_with(".prov")) {
                chart.files.push_back(std::move(file));
                continue;
            }
            const std::string inner = name.substr(7);
            children[inner.substr(0, inner.find('/'))].push_back({inner, std::move(file.data)});
        } else {
            chart.files.push_back(std::move(file));
        }
    }
    if (!has_metadata) {
        throw Error(Exit::data, "bad-chart", "Chart.yaml is missing")
            .at(Position{place, 0, 0})
            .hint(!misnamed.empty() ? fmt::format("rename {} to Chart.yaml", base::escape(misnamed))
                  : depth == 0      ? "name the directory that holds Chart.yaml, or a .tgz that helm package has made"
                                    : "all below charts/ is a chart, but for names that begin with '_' or '.'");
    }
    validate_metadata(chart.metadata);
    for (auto& [name, inner] : children) {
        if (name.empty() || name[0] == '_' || name[0] == '.') { continue; }
        const std::string below = named("charts/" + name);
        if (name.ends_with(".tgz")) {
            if (inner[0].name != name) {
                throw Error(Exit::data, "bad-chart",
                            fmt::format("expected an archive {}, found a directory", base::escape(name)))
                    .at(Position{below, 0, 0});
            }
            chart.children.push_back(load_nested(read_archive(inner[0].data, below), below, depth + 1));
            continue;
        }
        std::vector<File> own;
        for (auto& file : inner) {
            const std::size_t slash = file.name.find('/');
            if (slash != std::string::npos) { own.push_back({file.name.substr(slash + 1), std::move(file.data)}); }
        }
        chart.children.push_back(load_nested(std::move(own), below, depth + 1));
    }
    return chart;
}

}  // namespace

Chart load_chart(std::vector<File> files, const std::string& place) { return load_nested(std::move(files), place, 0); }

}  // namespace kmm::recipe::chart
