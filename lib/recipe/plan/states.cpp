// SPDX-License-Identifier: Apache-2.0
#include "recipe/plan/states.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/text.hpp"

namespace kmm::recipe::plan {

namespace {

/// (?m)^\s+specialresource\.openshift\.io/kernel-affine: in the text. \s takes line feeds, too.
bool has_affine_line(std::string_view text) {
    constexpr std::string_view k_key = "specialresource.openshift.io/kernel-affine:";
    for (std::size_t at = text.find(k_key); at != std::string_view::npos; at = text.find(k_key, at + 1)) {
        std::size_t start = at;
        while (start > 0 && std::string_view(" \t\r\f\n").find(text[start - 1]) != std::string_view::npos) { --start; }
        if (start == at) { continue; }
        const auto blanks = text.substr(start, at - start - 1);
        if (start == 0 || blanks.find('\n') != std::string_view::npos) { return true; }
    }
    return false;
}

}  // namespace

bool is_state_name(std::string_view file) {
    const std::string name = tmpl::base_path(file);
    if (name.size() < 10 || !name.ends_with(".yaml") || (name[4] != '-' && name[4] != '_')) { return false; }
    return std::all_of(name.begin(), name.begin() + 4, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<RecipeState> recipe_states(recipe::chart::Chart chart) {
    std::vector<recipe::chart::File> states, others, helpers;
    for (auto& file : chart.templates) {
        auto& list = is_state_name(file.name) ? states : tmpl::base_path(file.name).starts_with('_') ? helpers : others;
        list.push_back(std::move(file));
    }
    std::sort(states.begin(), states.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    chart.templates = helpers;
    std::vector<RecipeState> made;
    for (auto& file : states) {
        RecipeState state{tmpl::base_path(file.name), chart, has_affine_line(file.data)};
        state.chart.templates.push_back(std::move(file));
        made.push_back(std::move(state));
    }
    RecipeState stateless{std::string(k_stateless), std::move(chart), false};
    for (auto& file : others) { stateless.chart.templates.push_back(std::move(file)); }
    made.push_back(std::move(stateless));
    return made;
}

void join_templates(recipe::chart::Chart& chart, const recipe::chart::Chart& others) {
    for (const auto& file : others.templates) {
        const bool has = std::any_of(chart.templates.begin(), chart.templates.end(),
                                     [&](const recipe::chart::File& one) { return one.name == file.name; });
        if (!has) { chart.templates.push_back(file); }
    }
}

std::string defining_file(const recipe::chart::Chart& chart, std::string_view defined) {
    const std::string quoted = fmt::format("define \"{}\"", defined);
    for (const auto& file : chart.templates) {
        if (file.data.find(quoted) != std::string::npos) { return file.name; }
    }
    return {};
}

}  // namespace kmm::recipe::plan
