// SPDX-License-Identifier: Apache-2.0
// kmm-plan validate: all faults of all documents at once.
#include <algorithm>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/made_objects.hpp"
#include "base/clean_path.hpp"
#include "base/counted.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "kmm-plan/check/reporting.hpp"
#include "kmm-plan/source/asked.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/operator_config.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/fleet/lines.hpp"
#include "plan/lint/lint.hpp"
#include "plan/lint/validate.hpp"
#include "recipe/files/documents.hpp"

namespace kmm::tool_plan {

namespace {

/// The objects of one kind.
struct KindNames {
    const char* kind;
    std::vector<std::string> names;  ///< "NAMESPACE/NAME", "NAME" without a namespace
    const char* ending = "s";        ///< of several
};

template <class Kind>
std::vector<std::string> names_of(const std::vector<Kind>& objects) {
    std::vector<std::string> names;
    names.reserve(objects.size());
    for (const auto& object : objects) { names.push_back(object.meta.full_name()); }
    return names;
}

std::vector<std::string> operator_config_names(const api::Objects& objects) {
    std::vector<std::string> names;
    for (const auto& document : objects.operator_configs) { names.push_back(document.file); }
    return names;
}

std::vector<std::string> recipe_names(const api::Objects& objects, std::string_view kind) {
    std::vector<std::string> names;
    for (const auto& document : objects.recipes) {
        if (document.root.get_string({"kind"}) == kind) {
            names.push_back(document.root.get_string({"metadata", "name"}));
        }
    }
    return names;
}

/// What was read. The first five are always told, the others, which few clusters have, where there are any.
std::vector<KindNames> names_of(const api::Objects& objects) {
    return {{"Node", names_of(objects.nodes)},
            {"Module", names_of(objects.modules)},
            {"NodeModulesConfig", names_of(objects.node_modules_configs)},
            {"Secret", names_of(objects.secrets)},
            {"ConfigMap", names_of(objects.config_maps)},
            {"ManagedClusterModule", names_of(objects.managed_cluster_modules)},
            {"ManagedCluster", names_of(objects.managed_clusters)},
            {"PreflightValidation", names_of(objects.preflight_validations)},
            {"Namespace", names_of(objects.namespaces)},
            {"CustomResourceDefinition", names_of(objects.custom_resource_definitions)},
            {"Pod", names_of(objects.pods)},
            {"DaemonSet", names_of(objects.daemon_sets)},
            {"DeviceClass", names_of(objects.device_classes), "es"},
            {"ModuleImagesConfig", names_of(objects.module_images_configs)},
            {"ModuleBuildSignConfig", names_of(objects.module_build_sign_configs)},
            {"BootModuleConfig", names_of(objects.boot_module_configs)},
            {"OperatorConfig", operator_config_names(objects)},
            {"SpecialResource", recipe_names(objects, "SpecialResource")},
            {"SpecialResourceModule", recipe_names(objects, "SpecialResourceModule")}};
}

std::string counts_text(const std::vector<KindNames>& kinds) {
    constexpr std::size_t k_always = 5;
    std::vector<std::string> told;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const auto& [kind, names, ending] = kinds[i];
        if (i < k_always || !names.empty()) {
            told.push_back(fmt::format("{} {}{}", names.size(), kind, names.size() == 1 ? "" : ending));
        }
    }
    return base::join(told, ", ");
}

/// A part that is in order would say nothing about the rest: Modules of other namespaces meet on the same nodes.
void tell_of_selections(const cli::Args& args, cli::Context& context) {
    for (const auto* name : {"namespace", "selector"}) {
        if (args.source(name) != "option" || context.verbosity < 0) { continue; }
        const bool is_namespace = std::string_view(name) == "namespace";
        context.console.err(
            fmt::format("note: --{} leaves nothing out here{}: validate checks everything that it reads\n", name,
                        is_namespace ? ", it is for objects that name no namespace" : ""));
    }
}

/// Checks an object that another one holds, as far as it stands there already.
void check_wrapped(const api::WrappedObject& wrapped, const plan::ValidateOptions& options, Diagnostics& diagnostics) {
    Diagnostics faults;
    if (wrapped.is_template) {
        Diagnostic note;
        note.severity = Severity::note;
        note.code = "unknown-kind";
        note.message =
            wrapped.document.root.get_string({"kind"}) + " with values that are filled in later: not checked";
        note.position = wrapped.document.position(wrapped.document.root.mark());
        if (wrapped.holder.starts_with("Template ")) {
            note.hint = fmt::format("oc process -f {} -p NAME=VALUE | kmm-plan validate -f -",
                                    base::command_word(note.position->file));
        }
        faults.push_back(std::move(note));
    } else {
        api::Objects objects;
        // A namespace that is not written is that of the cluster where the object is made.
        api::decode(wrapped.document, objects, faults, "default");
        api::finish(objects, faults);
        for (auto& finding : plan::validate(objects, options)) { faults.push_back(std::move(finding)); }
    }
    for (auto& fault : faults) {
        if (wrapped.is_partial && fault.code == "missing-field" && fault.severity == Severity::error) {
            fault.severity = Severity::warning;
            fault.hint = "the policy can only complete an object that exists";
        }
        fault.message += fmt::format(" (in {})", wrapped.holder);
        diagnostics.push_back(std::move(fault));
    }
}

/// An empty directory, or a template that made nothing, must not end as "valid".
void require_objects(Source& source) {
    const auto kinds = names_of(source.objects);
    const bool has_objects =
        std::any_of(kinds.begin(), kinds.end(), [](const KindNames& kind) { return !kind.names.empty(); });
    const bool has_wrapped = std::any_of(source.objects.wrapped.begin(), source.objects.wrapped.end(),
                                         [](const api::WrappedObject& object) { return !object.is_template; });
    if (has_objects || has_wrapped || !source.objects.recipes.empty() || has_errors(source.diagnostics)) { return; }
    for (auto& diagnostic : source.diagnostics) {
        if (diagnostic.code != "no-documents") { continue; }
        diagnostic.severity = Severity::error;
        return;
    }
    for (auto& diagnostic : source.diagnostics) {
        const bool is_left_out = diagnostic.code == "unknown-kind" || diagnostic.code == "missing-field" ||
                                 diagnostic.code == "kustomize-not-built";
        if (is_left_out && diagnostic.severity == Severity::note) {
            diagnostic.severity = Severity::warning;
        }  // it tells what was there
    }
    Diagnostic finding;
    finding.code = "no-objects";
    finding.message = "nothing was validated: what was read has no object of a kind that KMM works with";
    finding.hint = "name the files with the Modules; look whether the command before a pipe made any";
    source.diagnostics.push_back(std::move(finding));
}

/// A tree with a directory for each cluster has a Module of one name in several of them. Within one directory it stays
/// an error.
void soften_doubles(Source& source) {
    for (auto& finding : source.diagnostics) {
        if (finding.code != "duplicate-object" || !finding.position) { continue; }
        const std::size_t at = finding.message.rfind(" at ");
        std::string other = at == std::string::npos ? "" : finding.message.substr(at + 4);
        for (int i = 0; i < 2; ++i) { other.resize(std::min(other.size(), other.rfind(':'))); }
        if (base::directory_of(other) == base::directory_of(finding.position->file)) { continue; }
        finding.severity = Severity::warning;
        finding.hint = "validate each cluster's directory by itself, unless one of the two is to go";
    }
}

std::string findings_text(const Source& source) {
    std::string text;
    for (const auto& diagnostic : source.diagnostics) { text += cli::diagnostic_text(diagnostic, false); }
    return text;
}

/// "module/drivers/kmm-hello", one a line.
std::string names_text(const api::Objects& objects) {
    std::string text;
    for (const auto& [kind, names, ending] : names_of(objects)) {
        for (const auto& name : names) { text += fmt::format("{}/{}\n", base::to_lower(kind), cli::plain_name(name)); }
    }
    return text;
}

std::string text_of(const Source& source, const Reporting& reporting) {
    std::string text = findings_text(source);
    const auto notes = static_cast<std::size_t>(
        std::count_if(source.diagnostics.begin(), source.diagnostics.end(),
                      [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::note; }));
    std::string counts = counts_text(names_of(source.objects));
    if (const auto& wrapped = source.objects.wrapped; !wrapped.empty()) {
        counts += fmt::format(", {} inside other kinds", base::counted(wrapped.size(), "object"));
    }
    text += fmt::format("valid: {}; {}{}\n", counts,
                        base::counted(source.diagnostics.size() - notes, "warning"),
                        (notes == 0 ? "" : ", " + base::counted(notes, "note")) +
                            (reporting.known() ? fmt::format(", {} known", *reporting.known()) : ""));
    return text;
}

Diagnostic unknown_release(const plan::Release& release) {
    Diagnostic finding;
    finding.severity = Severity::note;
    finding.code = "kmm-version-later";
    finding.message =
        fmt::format("KMM {} is later than {}, the last whose fields and rules are known: those of main are taken",
                    plan::to_string(release), plan::to_string(plan::k_last_known));
    finding.hint = "a field that only that release has is reported as unknown";
    return finding;
}

Exit run_validate(const cli::Args& args, cli::Context& context) {
    tell_of_selections(args, context);
    Reporting reporting(args);
    plan::ValidateOptions options;
    if (const auto version = args.get("kubernetes-version")) {
        with_context([] { return std::string("option --kubernetes-version"); },
                     [&] { plan::require_kubernetes_version(*version); });
        options.kubernetes_version = *version;
    }
    Source source = read_source(args, context, args.positionals("FILE"));
    const bool is_whole = !has_errors(source.diagnostics);
    plan::Options planned;
    planned.schedule_key = asked_schedule_key(args);
    options.release = asked_release(args);
    static_cast<void>(recipe::files::decode_documents(source.objects.recipes, source.diagnostics));
    soften_doubles(source);
    check_operator_configs(source, OperatorConfigUse::checked, options.release);
    if (options.release && *options.release != plan::k_main && *options.release >= plan::k_after_last_known) {
        source.diagnostics.push_back(unknown_release(*options.release));
    }
    plan::check_node_labels(source.objects, source.diagnostics);
    plan::check_namespace_labels(source.objects, source.diagnostics);
    for (auto& finding : plan::validate(source.objects, options)) { source.diagnostics.push_back(std::move(finding)); }
    for (auto& finding : plan::lint(source.objects)) { source.diagnostics.push_back(std::move(finding)); }
    check_secrets(source);
    std::erase_if(source.objects.wrapped, api::is_made);  // all others are for another cluster
    for (const auto& wrapped : source.objects.wrapped) { check_wrapped(wrapped, options, source.diagnostics); }
    for (const auto& before : source.replaced) {
        const auto after = std::find_if(source.objects.modules.begin(), source.objects.modules.end(),
                                        [&](const auto& module) { return module.full_name() == before.full_name(); });
        if (after != source.objects.modules.end()) { plan::validate_update(before, *after, source.diagnostics); }
    }
    for (auto& finding : plan::visit_plan(source.objects, planned, [](const plan::Line&) {})) {
        // Faults of mappings are among the rules above already, with the Module's name.
        if (finding.severity != Severity::error) { source.diagnostics.push_back(std::move(finding)); }
    }
    if (!is_whole) { drop_absent(source.diagnostics); }
    sort_and_merge(source.diagnostics);
    place_hints(source.diagnostics, place_options(args, context));
    const auto files = read_files(source);
    reporting.forget_known(source.diagnostics);
    require_objects(source);
    reporting.publish("validate", files, source.diagnostics, context);
    if (reporting.failed(source.diagnostics)) {
        Diagnostics serious = source.diagnostics;
        drop_notes(serious);
        Error error = reporting.failure(std::move(serious));
        // A baseline of it is to have the notes, too.
        if (cli::document_form(context)) { error.attach(std::move(source.diagnostics)); }
        throw std::move(error);
    }
    if (context.output == "name") {
        if (context.verbosity >= 0) { context.console.err(findings_text(source)); }
        context.console.out(names_text(source.objects));
        return Exit::ok;
    }
    if (cli::document_form(context)) {
        print_document(context, validation_node(source));
    } else {
        context.console.out(text_of(source, reporting));
    }
    return Exit::ok;
}

}  // namespace

cli::Verb validate_verb() {
    cli::Verb verb;
    verb.name = "validate";
    verb.summary = "report all faults of documents, with line and column";
    verb.description =
        "Checks syntax, and fields and types of every document against the definitions of the KMM release, its "
        "admission rules, and traps that it admits; SpecialResources against their own. Documents on top of "
        "--cluster are checked as a change to it. Errors exit 65, or 66 if files are missing; warnings alone exit 0, "
        "unless --fail-on warning is given. It is an error if nothing can be checked. `kmm-plan explain CODE` "
        "describes a finding.";
    verb.examples = {
        {"kmm-plan validate module.yaml", "one file"},
        {"kmm-plan validate --cluster ./fleet", "a directory cluster"},
        {"kmm-plan validate manifests --report sarif=kmm.sarif,junit=junit.xml", "reports for a pipeline"},
        {"kmm-plan validate manifests --baseline known.json", "only what an earlier -o json did not have"},
        {"helm template chart | kmm-plan validate -", "standard input"},
    };
    verb.positionals = {{"FILE", "document, directory of documents, or - for standard input", false, true}};
    auto version =
        cli::option("kubernetes-version", "VERSION",
                    "version of the API server, such as 1.34; without it, rules about the version are skipped");
    auto kmm = kmm_version_option();
    kmm.help =
        "KMM release whose fields, rules and label keys apply, such as v2.6.0 or main; auto takes those of main and "
        "warns where v2.6.0 differs";
    std::vector<cli::Option> sources = source_options();
    for (auto& option : sources) {
        option.hidden = option.hidden || option.name == "namespace" || option.name == "selector";
    }
    verb.options = std::vector<cli::Option>{version, kmm} + report_options() + sources + cli::common_options();
    verb.run = run_validate;
    return verb;
}

}  // namespace kmm::tool_plan
