// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/chart_files.hpp"

#include "cluster/folder/folder_notes.hpp"

namespace kmm::cluster {

namespace {

bool is_chart_setting(std::string_view file) {
    const auto name = file.substr(file.rfind('/') + 1);
    return name == "Chart.yaml" || name.starts_with("values");
}

}  // namespace

std::set<std::string> charts_among(const std::vector<std::string>& files) {
    std::set<std::string> charts;
    for (const auto& file : files) {
        const auto directory = directory_part(file);
        if (file.ends_with("/Chart.yaml") || file == "Chart.yaml") { charts.emplace(directory); }
    }
    return charts;
}

std::optional<std::string> chart_of(const std::set<std::string>& charts, std::string_view file,
                                    std::string_view front) {
    const auto directory = std::string(directory_part(file));
    if (charts.contains(directory)) {
        return is_chart_setting(file) ? std::optional(directory) : std::nullopt;
    }
    if (front.find("{{") == std::string_view::npos) { return std::nullopt; }
    for (auto at = file.find("/templates/"); at != std::string_view::npos; at = file.find("/templates/", at + 1)) {
        if (const auto chart = std::string(file.substr(0, at)); charts.contains(chart)) { return chart; }
    }
    return std::nullopt;
}

bool is_in_chart(const std::set<std::string>& charts, std::string_view file) {
    const auto own = directory_part(file);
    if (charts.contains(std::string(own)) && is_chart_setting(file)) { return true; }
    for (auto below = own; !below.empty() && below != ".";) {
        below = directory_part(below);
        if (charts.contains(std::string(below))) { return true; }
    }
    return false;
}

}  // namespace kmm::cluster
