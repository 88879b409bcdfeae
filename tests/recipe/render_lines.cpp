// SPDX-License-Identifier: Apache-2.0
// Renders charts with lib/recipe: the requests and answers of tests/recipe/reference, one JSON document a line.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "recipe/chart/render.hpp"
#include "recipe/chart/strvals.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace {

using namespace kmm;
using recipe::tmpl::Map;
using recipe::tmpl::Value;

const Value& member(const Value& request, const char* name) {
    static const Value none{};
    const auto found = request.members().find(std::string_view(name));
    return found == request.members().end() ? none : found->second;
}

std::string explained(const Error& error) {
    std::string text = error.position() ? error.position()->to_string() + ": " : "";
    text += error.code() + ": " + error.message();
    for (const auto& [key, value] : error.details()) { text += " [" + key + ": " + value + "]"; }
    for (const auto& finding : error.diagnostics()) { text += " {" + finding.message + "}"; }
    return text;
}

using recipe::chart::SetForm;
/// In the order in which Helm applies them.
constexpr std::pair<std::string_view, SetForm> k_forms[] = {{"json", SetForm::json},
                                                            {"set", SetForm::typed},
                                                            {"string", SetForm::text},
                                                            {"literal", SetForm::literal}};

std::string render(const Value& request) {
    std::vector<recipe::chart::File> files;
    for (const auto& [name, data] : member(request, "files").members()) { files.push_back({name, data.text()}); }
    recipe::chart::Chart chart = recipe::chart::load_chart(std::move(files), "chart");
    Value values = Value::map({});
    for (const auto& text : member(request, "values").items()) {
        recipe::tmpl::YamlFault fault;
        const Value given = recipe::tmpl::read_yaml_text(text.text(), fault);
        if (!fault.message.empty() || (!given.is_map() && !given.is_nil())) {
            throw Error(Exit::data, "bad-values", fault.message);
        }
        values = recipe::chart::merge_values(values, given);
    }
    const auto flags = member(request, "flags").items();
    for (const auto& [word, form] : k_forms) {
        for (std::size_t i = 0; i + 1 < flags.size(); i += 2) {
            if (flags[i].text() == word) { recipe::chart::set_values(values, flags[i + 1].text(), form); }
        }
    }
    for (const auto& set : member(request, "set").items()) { recipe::chart::set_values(values, set.text()); }
    recipe::chart::Release release;
    release.name = member(request, "release").text();
    release.name_space = member(request, "namespace").text();
    release.placeholders = member(request, "placeholders").as_bool();
    if (const auto& version = member(request, "kubeVersion"); version.is_text() && !version.text().empty()) {
        const auto parsed = recipe::chart::parse_kube_version(version.text());
        if (!parsed) { throw Error(Exit::usage, "bad-version", version.text()); }
        release.kube_version = *parsed;
    }
    for (const auto& version : member(request, "apiVersions").items()) {
        release.api_versions.push_back(version.text());
    }
    if (member(request, "bare").as_bool()) {
        return recipe::chart::render_bare(std::move(chart), values, release, "templates/t.yaml");
    }
    return recipe::chart::release_text(recipe::chart::render_chart(std::move(chart), values, release),
                                       member(request, "includeCRDs").as_bool());
}

}  // namespace

int main() {
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) {
        std::string fault, out, error;
        const Value request = recipe::tmpl::read_json_text(line, fault);
        try {
            out = fault.empty() ? render(request) : "";
            error = fault;
        } catch (const Error& e) {
            error = explained(e);
        } catch (const std::exception& e) {
            error = std::string("crash: ") + e.what();
        }
        std::cout << recipe::tmpl::write_json(
                         Value::map({{"out", Value::string(out)}, {"error", Value::string(error)}}))
                  << '\n'
                  << std::flush;
    }
    return 0;
}
