// SPDX-License-Identifier: Apache-2.0
// kmm-plan render chart: the objects of a Helm chart.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/verbs.hpp"
#include "recipe/chart/render.hpp"
#include "recipe/files/chart_files.hpp"
#include "recipe/files/findings.hpp"
#include "recipe/plan/objects.hpp"

namespace kmm::tool_plan {

namespace {

recipe::chart::Release chart_release(const cli::Args& args) {
    recipe::chart::Release release;
    release.name = args.get("release").value_or(release.name);
    if (!recipe::chart::is_release_name(release.name)) {
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--release: expected the name of a release, found '{}'", base::escape(release.name)))
            .hint("a release has lower-case letters, digits, '-' and '.', at most 53 of them");
    }
    release.name_space = args.get("namespace").value_or(release.name_space);
    if (const auto text = args.get("kube-version")) {
        const auto version = recipe::chart::parse_kube_version(*text);
        if (!version) {
            throw Error(
                Exit::usage, "bad-value",
                fmt::format("--kube-version: expected a version of Kubernetes, found '{}'", base::escape(*text)))
                .hint("for example v1.27.10");
        }
        release.kube_version = *version;
    }
    for (const auto& list : args.all("api-versions")) {
        for (const auto& version : base::split(list, ',')) { release.api_versions.emplace_back(version); }
    }
    return release;
}

/// The form of --set and its siblings, in the order in which Helm applies them, whatever theirs on the command line.
std::vector<recipe::files::SetArgument> set_arguments(const cli::Args& args) {
    using recipe::chart::SetForm;
    std::vector<recipe::files::SetArgument> found;
    for (const auto form : {SetForm::json, SetForm::typed, SetForm::text, SetForm::file, SetForm::literal}) {
        for (const auto& text : args.all(recipe::chart::set_option(form).substr(2))) { found.push_back({form, text}); }
    }
    return found;
}

void leave_out_hooks(recipe::chart::Rendered& rendered, const cli::Args& args) {
    if (args.flag("no-hooks")) { rendered.hooks.clear(); }
    if (!args.flag("skip-tests")) { return; }
    std::erase_if(rendered.hooks, [](const recipe::chart::Manifest& hook) {
        const auto events = base::split(hook.hooks, ',');
        return std::any_of(events.begin(), events.end(), [](std::string_view event) {
            const std::string name = base::to_lower(base::trim(event));
            return name == "test" || name == "test-success";
        });
    });
}

Exit run_render_chart(const cli::Args& args, cli::Context& context) {
    auto release = chart_release(args);
    release.placeholders = args.flag("placeholders");
    release.is_upgrade = args.flag("is-upgrade");
    release.skip_schemas = args.flag("skip-schema-validation");
    auto chart = recipe::files::read_chart(
        args.positional("CHART"), args.flag(recipe::files::k_follow_links) ? recipe::files::OuterLinks::follow
                                                                           : recipe::files::OuterLinks::refuse);
    auto read = recipe::files::read_values(args.all("values"), set_arguments(args));
    release.given = std::move(read.files);
    Diagnostics findings;
    release.notice = [&](Diagnostic finding) { findings.push_back(std::move(finding)); };
    auto rendered = recipe::chart::render_chart(std::move(chart), read.values, release);
    leave_out_hooks(rendered, args);
    if (!args.flag("include-crds")) { rendered.crds.clear(); }
    if (const auto patterns = args.all("show-only"); !patterns.empty()) {
        recipe::chart::keep_files(rendered, patterns);
    }
    for (const auto* list : {&rendered.objects, &rendered.hooks}) {
        for (const auto& manifest : *list) {
            if (!manifest.is_definitions) { recipe::plan::check_texts(manifest, release.notice); }
        }
    }
    recipe::files::report_findings(std::move(findings), args, context);
    const bool with_crds = args.flag("include-crds");
    using recipe::chart::ObjectForm;
    const auto form = context.output == "json"    ? std::optional(ObjectForm::list)
                      : context.output == "jsonl" ? std::optional(ObjectForm::lines)
                      : context.output == "name"  ? std::optional(ObjectForm::names)
                                                  : std::nullopt;
    context.console.out(form ? recipe::chart::release_objects(rendered, with_crds, *form)
                             : recipe::chart::release_text(rendered, with_crds, recipe::chart::Inert::yes));
    return Exit::ok;
}

}  // namespace

cli::Verb render_chart_verb() {
    cli::Verb verb;
    verb.name = "render chart";
    verb.summary = "render the objects of a Helm chart";
    verb.description =
        "Prints what `helm template` prints: the objects in Helm's install order, then the hooks. NOTES.txt is left "
        "out. The cluster is not asked: `lookup` finds nothing, and the API versions are those that Helm knows and "
        "those of --api-versions.\n\n"
        "Functions whose result differs each time, such as now, randAlphaNum and genCA, are errors. With "
        "--placeholders they give fixed texts and warnings: for reading, not for a cluster. An error names the "
        "template, line and column, the expression and the value found.";
    verb.examples = {
        {"kmm-plan render chart ./kmm-hello-chart", "with the values of the chart"},
        {"kmm-plan render chart ./kmm-hello-chart --values prod.yaml --set image.tag=v2",
         "with values of a file and of the command line"},
        {"kmm-plan render chart kmm-hello-1.2.0.tgz --kube-version v1.30.0 --include-crds",
         "a packed chart, for another Kubernetes"},
    };
    verb.positionals = {{"CHART", "directory with Chart.yaml, or a .tgz"}};
    verb.surplus_hint = "kmm-plan render chart CHART --release NAME, where helm takes NAME and CHART";
    auto name_space = cli::with_default(cli::option("namespace", 'n', "NAME", "namespace of the release"), "default");
    verb.options =
        std::vector<cli::Option>{
            cli::repeatable(
                cli::option("values", 'f', "FILE",
                            "values over those of the chart, as a.yaml,b.yaml; - is standard input")),
            cli::repeatable(cli::option("set", "KEY=VALUE", "set a value: a.b=1,c={x,y},d[0].e=z")),
            cli::repeatable(cli::option("set-string", "KEY=TEXT", "set a text, whatever it looks like: a.b=1")),
            cli::repeatable(cli::option("set-json", "KEY=JSON", "set a value from JSON: a.b={\"c\": 1}")),
            cli::repeatable(cli::option("set-file", "KEY=FILE", "set a text from a file")),
            cli::repeatable(cli::option("set-literal", "KEY=TEXT", "set a text without escapes, commas and all")),
            cli::with_default(cli::option("release", "NAME", "name of the release"), "release-name"),
            name_space,
            cli::with_default(cli::option("kube-version", "VERSION", "Kubernetes' version in .Capabilities"),
                              recipe::chart::KubeVersion().version),
            cli::repeatable(cli::option("api-versions", 'a', "LIST", "more API versions, separated by commas")),
            cli::option("include-crds", "", "print the files of crds/ first"),
            cli::repeatable(
                cli::option("show-only", 's', "NAME", "print what these files render: templates/a*.yaml")),
            cli::option("no-hooks", "", "leave hooks out"),
            cli::option("skip-tests", "", "leave hooks for tests out"),
            cli::option("is-upgrade", "", "set .Release.IsUpgrade in place of .Release.IsInstall"),
            cli::option("skip-schema-validation", "", "do not compare values with values.schema.json"),
            cli::option("placeholders", "", "fixed texts for random ones, now and certificates"),
            recipe::files::follow_links_option(),
            cli::option("strict", "", "warnings are errors"),
        } +
        cli::common_options();
    verb.run = run_render_chart;
    return verb;
}

}  // namespace kmm::tool_plan
