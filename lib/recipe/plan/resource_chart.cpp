// SPDX-License-Identifier: Apache-2.0
// Follows pkg/helmer of the Special Resource Operator.
#include "recipe/plan/resource_chart.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/resource/value_path.hpp"

namespace kmm::recipe::plan {

using tmpl::Map;
using tmpl::Value;

namespace {

Value without_nulls(const Value& value) {
    if (!value.is_map()) { return value; }
    Map members;
    for (const auto& [key, member] : value.members()) {
        if (!member.is_nil()) { members[key] = without_nulls(member); }
    }
    return Value::map(std::move(members));
}

}  // namespace

ResourceChart::ResourceChart(const SpecialResource& resource, const chart::Chart& chart, const Facts& facts,
                             const RenderOptions& options, std::function<void(Diagnostic)> notice)
    : resource_(resource), whole_(chart), facts_(facts), options_(options), notice_(std::move(notice)) {}

Value ResourceChart::values(const Expanded& own, const Value& runtime) const {
    chart::Chart chart = whole_;
    const auto nulls = options_.operator_only ? chart::Nulls::helm_3_7 : chart::Nulls::removed;
    chart.values = chart::coalesce_values(chart, own.set, nulls);
    // Each time Helm merges values over themselves, nulls vanish.
    return without_nulls(chart::coalesce_values(chart, runtime, nulls));
}

chart::Rendered ResourceChart::render(const RecipeState& state, const Expanded& own, const Value& values) {
    chart::Chart step = state.chart;
    step.values = values;
    try {
        if (options_.operator_only) { take_used_dependencies(step, values); }
        return chart::render_chart(std::move(step), values, release(own));
    } catch (Error& error) {
        explain_missing_template(error, state);
        throw;
    }
}

chart::Release ResourceChart::release(const Expanded& own) const {
    chart::Release made;
    made.name = resource_.name;
    made.name_space = own.name_space;
    made.limits = options_.limits;
    made.version_hint = "the fact kubeVersion is the cluster's: --fact kubeVersion=v1.30.0";
    made.is_helm_3_7 = options_.operator_only;
    if (facts_.kube_version) {
        const auto version = chart::parse_kube_version(*facts_.kube_version);
        if (!version) {
            throw Error(Exit::data, "bad-value",
                        fmt::format("kubeVersion: expected a version of Kubernetes, found '{}'",
                                    base::escape(*facts_.kube_version)))
                .hint("for example v1.27.10");
        }
        made.kube_version = *version;
    }
    made.api_versions = facts_.api_versions;
    made.parsed = parsed_;
    made.notice = options_.operator_only ? nullptr : notice_;
    return made;
}

void ResourceChart::take_used_dependencies(chart::Chart& step, const Value& values) {
    if (used_dependencies_) { step.metadata.dependencies = *used_dependencies_; }
    chart::Chart processed = step;
    chart::process_dependencies(processed, values, true);
    auto& left = processed.metadata.dependencies;
    std::erase_if(left, [&](const chart::Dependency& one) {
        return std::none_of(step.children.begin(), step.children.end(),
                            [&](const chart::Chart& child) { return child.name() == one.name; });
    });
    used_dependencies_ = std::move(left);
}

void ResourceChart::explain_missing_template(Error& error, const RecipeState& state) const {
    const std::string& message = error.message();
    const std::size_t at = message.find("template \"");
    if (at == std::string::npos ||
        (message.find("no template") == std::string::npos && message.find("not defined") == std::string::npos)) {
        return;
    }
    const std::size_t begin = at + 10;
    const std::string name = message.substr(begin, message.find('"', begin) - begin);
    const std::string file = defining_file(whole_, name);
    if (file.empty() || !is_state_name(file) || tmpl::base_path(file) == state.name) { return; }
    error.hint(fmt::format(
        "{} defines it, but a state sees files that begin with '_' alone: move the definition into one of them", file));
}

void note_unread_source(const SpecialResource& resource, const Value& spec, const Facts& facts,
                        const std::function<void(Diagnostic)>& notice) {
    const auto& served = facts.api_versions;
    if (!resource.is_built_in() ||
        std::find(served.begin(), served.end(), "build.openshift.io/v1") != served.end()) {
        return;
    }
    const std::string uri = text_at(spec, {"driverContainer", "source", "git", "uri"});
    const bool is_read = uri.starts_with("https://") || uri.starts_with("http://") || uri.starts_with("git://");
    if (uri.empty() || is_read) { return; }
    notice({Severity::warning, "source-not-read",
            fmt::format("{}: no Job builds from {}: where there is no OpenShift, sources are read by HTTPS or HTTP",
                        resource.name, base::escape(uri)),
            resource.place("spec.driverContainer.source.git.uri"),
            "give the repository as https://HOST/PATH, or push the images", Exit::data});
}

}  // namespace kmm::recipe::plan
