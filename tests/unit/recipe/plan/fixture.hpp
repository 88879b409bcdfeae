// SPDX-License-Identifier: Apache-2.0
// Recipes of texts, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/plan/render.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/resource/resource.hpp"
#include "value/reader.hpp"

namespace kmm::recipe_test {

using recipe::chart::File;

inline const std::string k_affine = "    specialresource.openshift.io/kernel-affine: \"true\"\n";

inline std::vector<recipe::plan::SpecialResource> resources_of(const std::string& yaml, Diagnostics& faults) {
    std::vector<recipe::plan::SpecialResource> made;
    for (const auto& document : value::read_yaml(yaml, "cr.yaml", faults)) {
        made.push_back(recipe::plan::decode_special_resource(document, faults));
    }
    return made;
}

/// A resource whose spec is `spec`, indented by two.
inline std::string cr(const std::string& more = "", const std::string& name = "demo") {
    return "apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResource\nmetadata:\n  name: " + name +
           "\nspec:\n  namespace: " + name + "\n  chart: {name: " + name +
           ", version: 0.0.1, repository: {name: r, url: 'file:///x'}}\n" + more;
}

inline recipe::plan::Facts two_kernels() {
    recipe::plan::Facts facts;
    facts.cluster_version = "4.17.4";
    facts.os_image_url = "quay.example.test/os";
    facts.push_secret = "builder-dockercfg-x";
    facts.proxy = recipe::plan::Proxy{"http://proxy:3128", "", ".svc", ""};
    facts.kernels = {{"5.14.0-427.40.1.el9_4.x86_64",
                      "CoreOS 417.94.202410211619-0 (Plow)",
                      {{"disk", "fast"}},
                      recipe::plan::DriverToolkit{"dtk@9", "", "", "9.4"}},
                     {"4.18.0-305.40.2.el8_4.x86_64",
                      "CoreOS 49.84.202201102104-0 (Ootpa)",
                      {},
                      recipe::plan::DriverToolkit{"dtk@8", "", "", "8.4"}}};
    return facts;
}

inline recipe::plan::Facts one_kernel() {
    auto facts = two_kernels();
    facts.kernels.resize(1);
    return facts;
}

struct Case {
    std::string resource = cr();
    std::vector<File> files;
    recipe::plan::Facts facts = two_kernels();
    bool compat = false;
    std::string values;
    std::string chart_yaml;  ///< more of Chart.yaml
    std::string owner_uid;
    base::RunTogether run;   ///< threads that share the resources
    std::uint64_t steps_max = recipe::tmpl::Limits().steps_max;

    recipe::plan::RenderedRecipes render() const {
        Diagnostics faults;
        const auto resources = resources_of(resource, faults);
        if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
        std::vector<File> all = files;
        all.push_back({"values.yaml", values});
        recipe::plan::RenderOptions options;
        options.operator_only = compat;
        options.owner_uid = owner_uid;
        options.run = run;
        options.limits.steps_max = steps_max;
        return recipe::plan::render_recipes(
            resources, {},
            [&](const std::string& name, const recipe::plan::ChartReference&) {
                auto own = all;
                own.push_back({"Chart.yaml", "apiVersion: v2\nname: " + name + "\nversion: 0.0.1\n" + chart_yaml});
                return recipe::chart::load_chart(own, "charts/" + name);
            },
            facts, options);
    }

    std::string text() const { return recipe::plan::recipe_text(render()); }
};

inline std::string config_map(const std::string& name, const std::string& data = "{}",
                              const std::string& annotations = "") {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n" +
           (annotations.empty() ? "" : "  annotations:\n" + annotations) + "data: " + data + "\n";
}

inline std::string daemon_set(const std::string& annotations, const std::string& spec = "") {
    return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: ds\n  annotations:\n    note: x\n" + annotations +
           "spec:\n  selector: {matchLabels: {app: ds}}\n  template:\n    metadata: {labels: {app: ds}}\n    spec:\n   "
           "   containers: [{name: c, image: i}]\n" +
           spec;
}

inline std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) { ++found; }
    return found;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline bool found(const Diagnostics& findings, const std::string& code) {
    for (const auto& one : findings) {
        if (one.code == code) { return true; }
    }
    return false;
}

template <typename Body>
Error error_of(Body&& body) {
    try {
        body();
    } catch (const Error& error) { return error; }
    return bug("no error");
}

}  // namespace kmm::recipe_test
