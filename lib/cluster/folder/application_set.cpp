// SPDX-License-Identifier: Apache-2.0
// Source: Argo CD docs/operator-manual/applicationset (Generators-List.md, Generators-Git.md, Generators-Matrix.md).
#include "cluster/folder/application_set.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace kmm::cluster {

namespace {

constexpr std::size_t k_applications_max = 1000;
constexpr int k_nesting_max = 3;

/// Parameters of one Application.
struct Parameters {
    std::map<std::string, std::string> values;
    std::vector<std::string> excluded;
};

void add_values(const value::Node& node, const std::string& name, std::map<std::string, std::string>& values) {
    for (const auto& member : node.members()) {
        add_values(member.value, name.empty() ? member.key : name + "." + member.key, values);
    }
    if (!name.empty() && node.members().empty()) { values[name] = node.text(); }
}

std::vector<Parameters> parameters_of_directories(const value::Node& directories) {
    std::vector<Parameters> found;
    std::vector<std::string> excluded;
    for (const auto& item : directories.items()) {
        const auto path = item.get_string({"path"});
        const auto* flag = item.find("exclude");
        if (flag != nullptr && flag->as_bool().value_or(false)) {
            excluded.push_back(path);
            continue;
        }
        const auto name = is_path_pattern(path) ? std::string(1, k_matched_name) : path.substr(path.rfind('/') + 1);
        found.push_back({{{"path", path}, {"path.path", path}, {"path.basename", name}}, {}});
    }
    for (auto& each : found) { each.excluded = excluded; }
    return found;
}

/// What a generator makes; one without parameters for those that are not followed.
std::vector<Parameters> parameters_of(const value::Node& generator, int nesting) {
    if (const auto* elements = generator.find_path({"list", "elements"})) {
        std::vector<Parameters> found;
        for (const auto& element : elements->items()) { add_values(element, "", found.emplace_back().values); }
        return found;
    }
    if (const auto* directories = generator.find_path({"git", "directories"})) {
        return parameters_of_directories(*directories);
    }
    const auto* children = generator.find_path({"matrix", "generators"});
    std::vector<Parameters> all(1);
    if (children == nullptr || nesting >= k_nesting_max) { return all; }
    for (const auto& child : children->items()) {
        std::vector<Parameters> products;
        for (const auto& more : parameters_of(child, nesting + 1)) {
            for (const auto& one : all) {
                if (products.size() >= k_applications_max) { break; }
                auto& product = products.emplace_back(one);
                product.values.insert(more.values.begin(), more.values.end());
                product.excluded.insert(product.excluded.end(), more.excluded.begin(), more.excluded.end());
            }
        }
        all = std::move(products);
    }
    return all;
}

std::string filled(const std::string& text, const std::map<std::string, std::string>& values) {
    std::string result;
    std::size_t at = 0;
    for (auto begin = text.find("{{"); begin != std::string::npos; begin = text.find("{{", at)) {
        const auto end = text.find("}}", begin);
        if (end == std::string::npos) { break; }
        auto name = base::trim(std::string_view(text).substr(begin + 2, end - begin - 2));
        if (name.starts_with('.')) { name.remove_prefix(1); }
        const auto found = values.find(std::string(name));
        result.append(text, at, begin - at);
        result += found == values.end() ? text.substr(begin, end + 2 - begin) : found->second;
        at = end + 2;
    }
    return result.append(text, at, std::string::npos);
}

}  // namespace

std::vector<GeneratedPath> generated_paths(const value::Node& set, const std::string& path, const std::string& ns) {
    std::vector<GeneratedPath> paths;
    std::set<GeneratedPath> seen;
    const auto* generators = set.find_path({"spec", "generators"});
    if (generators == nullptr) { return {{path, ns, {}}}; }
    for (const auto& generator : generators->items()) {
        for (const auto& each : parameters_of(generator, 0)) {
            if (paths.size() >= k_applications_max) { return paths; }
            GeneratedPath made{filled(path, each.values), filled(ns, each.values), each.excluded};
            if (seen.insert(made).second) { paths.push_back(std::move(made)); }
        }
    }
    return paths;
}

bool is_path_pattern(std::string_view path) noexcept { return path.find_first_of("*?[") != std::string_view::npos; }

bool matches_path(const std::string& pattern, const std::string& directory) {
    return ::fnmatch(pattern.c_str(), directory.c_str(), FNM_PATHNAME) == 0;
}

}  // namespace kmm::cluster
