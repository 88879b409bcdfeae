// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/source.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/names.hpp"
#include "api/unnamed.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/manifest_words.hpp"
#include "cluster/folder/directory_store.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/folder/ignored.hpp"
#include "cluster/seam/selector.hpp"
#include "kmm-plan/source/asked.hpp"
#include "kmm-plan/source/live.hpp"
#include "kmm-plan/source/operator_config.hpp"
#include "kmm-plan/source/outputs.hpp"
#include "kube/kubeconfig.hpp"
#include "plan/decide/policy.hpp"
#include "plan/kmm/release.hpp"
#include "plan/lint/lint.hpp"
#include "plan/lint/validate.hpp"
#include "recipe/files/options.hpp"
#include "sys/file_ops.hpp"

namespace kmm::tool_plan {

namespace {

bool is_option(const cli::Args& args, std::string_view option) { return args.source(option) == "option"; }

bool is_configured(const cli::Args& args, std::string_view option) {
    return args.source(option) == "configuration file";
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    const auto near = base::nearest(word, candidates);
    return near ? fmt::format("did you mean {}?", *near) : "";
}

void append(Diagnostics& to, Diagnostics from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void keep_replaced(Source& source, const std::vector<api::Module>& over) {
    for (const auto& old : source.objects.modules) {
        if (std::any_of(over.begin(), over.end(),
                        [&](const auto& module) { return module.full_name() == old.full_name(); })) {
            source.replaced.push_back(old);
        }
    }
}

}  // namespace

void check_secrets(Source& source) {
    if (source.live) {
        plan::check_secrets(source.objects, source.absent_secrets, source.diagnostics);
    } else {
        const bool is_directory = source.description.find("cluster") != nullptr;
        plan::check_secrets(source.objects, is_directory ? plan::Reading::whole : plan::Reading::part,
                            source.diagnostics);
    }
}

void drop_notes(Diagnostics& diagnostics) {
    std::erase_if(diagnostics, [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::note; });
}

namespace {

/// What kubectl has and people write by habit.
std::vector<cli::Option> kubectl_options() {
    auto recursive =
        cli::hidden(cli::option("recursive", 'R', "", "directories are always read with everything below them"));
    auto all = cli::hidden(cli::option("all-namespaces", 'A', "", "all namespaces are read unless -n is given"));
    auto kustomize = cli::hidden(cli::option("kustomize", 'k', "DIR", "refused, with the command that does it"));
    return {recursive, all, kustomize};
}

void check_kubectl_options(const cli::Args& args, const cli::Context& context) {
    if (const auto directory = args.get("kustomize")) {
        std::string words;
        for (const auto& positional : context.verb.positionals) {
            if (positional.name == "FILE") { continue; }  // place_options gives them as -f
            for (const auto& word : args.positionals(positional.name)) { words += " " + base::command_word(word); }
        }
        throw Error(Exit::usage, "unsupported", "-k is not supported: kmm-plan does not run kustomize")
            .hint(fmt::format("kubectl kustomize {} | kmm-plan {}{} -f -{}{}", base::command_word(*directory),
                              context.verb.name, words, place_options(args, context),
                              given_options(args, {"namespace", "selector"})));
    }
    if (args.flag("all-namespaces") && is_option(args, "namespace")) {
        throw Error(Exit::usage, "usage", "-A and --namespace exclude each other")
            .hint("leave out one of them; without -n all namespaces are read");
    }
}

}  // namespace

std::vector<cli::Option> source_options() {
    auto file = cli::repeatable(
        cli::option("filename", 'f', "FILE", "documents, a directory of them, or - for standard input"));
    auto timeout = cli::with_default(
        cli::option("api-timeout", "DURATION", "how long to wait for an API server that does not answer"), "30s");
    std::vector<cli::Option> options =
        std::vector<cli::Option>{file, recipe::files::ignore_option()} + cli::cluster_options() + kubectl_options();
    for (auto& option : options) {
        if (option.name == "namespace") {
            option.help = "namespace of modules given by name alone, and of documents of -f without one";
        }
        if (option.name != "context") { continue; }
        option.repeatable = true;
        option.help = "context of the kubeconfig (default: the current one)";
    }
    options.push_back(std::move(timeout));
    return options;
}

namespace {

enum class Place { documents, directory, api_server };

Error several_sources(const std::string& found) {
    return Error(Exit::usage, "several-sources", fmt::format("expected one cluster, found {}", found))
        .hint("leave one of them out; -f adds documents to either");
}

/// What the command line says wins, then the environment, then the configuration files. KUBECONFIG alone does not
/// count, since it is often set for other programs.
Place place_of(const cli::Args& args, bool has_documents) {
    const bool directory = is_option(args, "cluster");
    const bool server = is_option(args, "kubeconfig") || is_option(args, "context");
    if (directory && server) {
        throw several_sources(is_option(args, "context") ? "--cluster and --context" : "--cluster and --kubeconfig");
    }
    if (server) { return Place::api_server; }
    if (directory) { return Place::directory; }
    if (has_documents) { return Place::documents; }
    const bool configured_server = is_configured(args, "kubeconfig") || is_configured(args, "context");
    if (configured_server && is_configured(args, "cluster")) {
        throw several_sources("cluster and kubeconfig or context in the configuration files");
    }
    if (args.get("cluster")) { return Place::directory; }
    if (configured_server) { return Place::api_server; }
    if (finds_api_server(args)) { return Place::api_server; }
    Error error(Exit::usage, "no-source", "no cluster specified, expected one of --cluster, --kubeconfig or -f");
    if (auto absent = kube::absent_kubeconfig(kube::request_from_environment()); !absent.empty()) {
        error.detail("KUBECONFIG", std::move(absent));
    }
    throw std::move(error)
        .detail("directory", "--cluster DIR, or KMM_CLUSTER: one Kubernetes object per YAML file")
        .detail("api server", "--kubeconfig FILE, --context NAME, KUBECONFIG or ~/.kube/config")
        .detail("documents", "-f FILE|DIR|-: YAML, JSON, output of kubectl get -o json")
        .hint("add --cluster DIR or -f FILE to the command");
}

Source read_directory(const std::string& directory) {
    Source source;
    sys::LinuxFileOps ops;
    cluster::Snapshot snapshot = cluster::DirectoryStore(directory, ops).read();
    source.objects = std::move(snapshot.objects);
    source.diagnostics = std::move(snapshot.diagnostics);
    source.description = value::Node::mapping({{"cluster", directory}});
    return source;
}

Source read_live(const cli::Args& args, cli::Context& context, const std::string& name, bool has_documents) {
    auto live = std::make_shared<LiveCluster>(args, name, context);
    const kube::FleetQuery query = fleet_query(context.verb.name, args);
    kube::Fleet fleet;
    with_context([&] { return "cluster " + base::escape(live->name()); },
                 [&] { live->in_time([&] { fleet = kube::read_fleet(live->client(), query); }); });
    if (!fleet.has_kmm && !has_documents && query.hub != kube::FleetQuery::Hub::all) {
        throw Error(
            Exit::not_found, "kmm-not-installed",
            fmt::format("cluster {} has no kind Module (kmm.sigs.x-k8s.io/v1beta1)", base::escape(live->name())))
            .hint("install KMM, or its CRDs alone; -f FILE adds Modules without it");
    }
    Source source;
    source.objects = std::move(fleet.objects);
    source.diagnostics = std::move(fleet.diagnostics);
    source.absent_secrets = std::move(fleet.absent_secrets);
    source.cluster = live->name();
    source.description =
        value::Node::mapping({{"context", live->name()}, {"server", live->client().connection().server}});
    source.live = std::move(live);
    return source;
}

void add_documents(const std::vector<std::string>& names, api::Objects objects, const Diagnostics& faults,
                   const std::vector<std::string>& files, Source& source) {
    if (names.empty()) { return; }
    append(source.diagnostics, faults);
    keep_replaced(source, objects.modules);
    cluster::overlay(source.objects, std::move(objects));
    source.description.set("files", value::Node::strings(files));
}

/// Of objects that say none. Errors: usage "bad-value".
std::string given_namespace(const cli::Args& args) {
    const std::string name = args.get("namespace").value_or("");
    if (!name.empty() && !api::is_dns1123_label(name)) {
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--namespace: expected the name of a namespace, found '{}'", base::escape(name)))
            .hint("a namespace has lower-case letters, digits and '-', at most 63 of them");
    }
    return name;
}

/// `held`: code of the warnings that are not printed here.
void check_source(Source& source, const cli::Args& args, cli::Context& context, std::string_view held = {}) {
    // What releases take as a PreflightValidation differs, and no plan depends on it.
    std::erase_if(source.objects.release_marks, [](const api::ReleaseMark& mark) {
        return mark.subject.starts_with("PreflightValidation") && mark.what != api::ReleaseMark::What::kind;
    });
    const bool is_whole = !has_errors(source.diagnostics);
    append(source.diagnostics, plan::validate(source.objects));
    append(source.diagnostics, plan::lint(source.objects));
    check_secrets(source);
    check_operator_configs(source, OperatorConfigUse::beside);
    for (auto& finding : source.diagnostics) {
        if (finding.code != "kustomize-not-built") { continue; }
        finding.severity = Severity::warning;  // the plan may differ
        constexpr std::string_view k_verb = "kmm-plan validate";
        if (const auto at = finding.hint.find(k_verb); at != std::string::npos) {
            finding.hint.replace(at, k_verb.size(), "kmm-plan " + context.verb.name);
        }
    }
    drop_notes(source.diagnostics);
    if (!is_whole) { drop_absent(source.diagnostics); }
    place_hints(source.diagnostics, place_options(args, context));
    // Which KMM the documents are for is what validate is asked.
    std::erase_if(source.diagnostics, [](const Diagnostic& finding) { return finding.code == "newer-field"; });
    // The Nodes that were read have other taints than those that are asked for.
    if (!args.all("taint").empty() ||
        !plan::pulls_without_tolerations(plan::parse_release(args.get("kmm-version").value_or("")))) {
        std::erase_if(source.diagnostics, [](const Diagnostic& finding) { return finding.code == "pull-pod-taints"; });
    }
    // apply_what_if judges selectors by the labels that are asked for.
    if (!args.all("label").empty()) {
        std::erase_if(source.diagnostics, [](const Diagnostic& finding) { return finding.code == "selects-no-node"; });
    }
    sort_and_merge(source.diagnostics);
    if (has_errors(source.diagnostics)) { throw Error::from_diagnostics(std::move(source.diagnostics)); }
    if (context.verbosity >= 0) {
        for (const auto& diagnostic : source.diagnostics) {
            if (!is_asked(diagnostic, args) || diagnostic.code == held) { continue; }
            context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
        }
    }
}

/// The files that objects come from, and those that were named.
std::set<std::string> files_of_objects(const Source& source) {
    std::set<std::string> files;
    const auto add = [&](const auto& objects) {
        for (const auto& object : objects) {
            if (!object.meta.origin.file.empty()) { files.insert(object.meta.origin.file); }
        }
    };
    const api::Objects& objects = source.objects;
    add(objects.nodes);
    add(objects.modules);
    add(objects.node_modules_configs);
    add(objects.secrets);
    add(objects.config_maps);
    add(objects.managed_cluster_modules);
    add(objects.managed_clusters);
    add(objects.preflight_validations);
    add(objects.namespaces);
    add(objects.doubles);
    add(objects.pods);
    add(objects.module_images_configs);
    add(objects.module_build_sign_configs);
    add(objects.boot_module_configs);
    for (const auto* documents : {&objects.operator_configs, &objects.recipes}) {
        for (const auto& document : *documents) { files.insert(document.file); }
    }
    if (const value::Node* named = source.description.find("files"); named != nullptr) {
        for (const auto& file : named->items()) { files.insert(file.text()); }
    }
    return files;
}

}  // namespace

std::vector<Source> read_sources(const cli::Args& args, cli::Context& context,
                                 const std::vector<std::string>& more_files, const IsLeftOut& is_left_out) {
    check_kubectl_options(args, context);
    std::vector<std::string> names = args.all("filename");
    names.insert(names.end(), more_files.begin(), more_files.end());
    cluster::Ignored ignored(args.all("ignore"), args.get("out").value_or(""));
    ignored.require_directory(names);
    const Place place = place_of(args, !names.empty());
    // Standard input can be read once: the documents are read before any cluster.
    api::Objects objects;
    Diagnostics faults;
    const auto files = names.empty() ? names
                                     : cluster::read_documents(
                                           names, objects, faults, given_namespace(args),
                                           [&](std::string_view path) {
                                               return ignored.takes(path) || (is_left_out && is_left_out(path));
                                           });
    if (is_option(args, "ignore") && context.verbosity >= 0) { context.console.err(ignored.notes()); }
    if (!names.empty()) {
        api::finish(objects, faults);
        api::fold_unnamed(objects, faults, [&](const Diagnostic& one) {
            return one.position && std::find(names.begin(), names.end(), one.position->file) == names.end();
        });
    }
    std::vector<Source> sources;
    switch (place) {
        case Place::documents:
            sources.emplace_back().description = value::Node::mapping();
            break;
        case Place::directory: sources.push_back(read_directory(*args.get("cluster"))); break;
        case Place::api_server:
            for (const auto& name : chosen_contexts(args)) {
                sources.push_back(read_live(args, context, name, !names.empty()));
            }
    }
    for (auto& source : sources) {
        // A large fleet is not to be held twice: the last source takes the objects themselves.
        add_documents(names, &source == &sources.back() ? std::move(objects) : objects, faults, files, source);
        sort_and_merge(source.diagnostics);
        require_outputs_apart(args, files_of_objects(source));
    }
    return sources;
}

Source read_source(const cli::Args& args, cli::Context& context, const std::vector<std::string>& more_files,
                   const IsLeftOut& is_left_out) {
    if (const auto contexts = chosen_contexts(args); contexts.size() > 1) {
        throw Error(
            Exit::usage, "one-context",
            fmt::format("{} takes one cluster, found --context {} times", context.verb.name, contexts.size()))
            .hint("kmm-plan show takes several");
    }
    return std::move(read_sources(args, context, more_files, is_left_out).front());
}

std::vector<std::string> read_files(const Source& source) {
    auto files = files_of_objects(source);
    for (const auto& finding : source.diagnostics) {
        if (finding.position) { files.insert(finding.position->file); }
    }
    return {files.begin(), files.end()};
}

Source read_valid_source(const cli::Args& args, cli::Context& context, const IsLeftOut& is_left_out,
                         std::string_view held) {
    Source source = read_source(args, context, {}, is_left_out);
    check_source(source, args, context, held);
    return source;
}

std::vector<Source> read_valid_sources(const cli::Args& args, cli::Context& context) {
    std::vector<Source> sources = read_sources(args, context);
    for (auto& source : sources) { check_source(source, args, context); }
    return sources;
}

std::vector<const api::Node*> select_nodes(const Source& source, const cli::Args& args,
                                           const std::vector<std::string>& names) {
    const auto selector = cluster::Selector::parse(args.get("selector").value_or(""));
    std::vector<std::string> known;
    for (const auto& node : source.objects.nodes) { known.push_back(node.meta.name); }
    for (const auto& name : names) {
        if (std::find(known.begin(), known.end(), name) != known.end()) { continue; }
        if (name.empty()) {
            throw Error(Exit::usage, "bad-value", "the name of a node is empty, expected the name of a Node")
                .hint("leave it out for all nodes");
        }
        const bool is_list = name.find(',') != std::string::npos;
        throw Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", base::escape(name)))
            .hint(cli::is_manifest_name(name) ? cli::option_before_file_hint(name)
                  : !is_list                    ? did_you_mean(name, known)
                  : args.all("node").empty() ? "write the names of several nodes one by one, with blanks between them"
                                             : "give --node once for each node");
    }
    std::vector<const api::Node*> result;
    for (const auto& node : source.objects.nodes) {
        const bool named = names.empty() || std::find(names.begin(), names.end(), node.meta.name) != names.end();
        if (named && selector.matches(node.meta.labels)) { result.push_back(&node); }
    }
    return result;
}

std::vector<const api::Node*> require_nodes(const Source& source, const cli::Args& args,
                                            const std::vector<std::string>& names) {
    auto nodes = select_nodes(source, args, names);
    if (nodes.empty() && !source.objects.nodes.empty()) {
        const std::size_t count = names.empty() ? source.objects.nodes.size() : names.size();
        const std::string selector = base::escape(args.get("selector").value_or(""));
        throw Error(Exit::checks_failed, "no-nodes",
                    fmt::format("no node is selected: none of {} matches -l {}", count, selector))
            .hint("kmm-plan show without -l lists the nodes");
    }
    return nodes;
}

void keep_nodes(Source& source, const cli::Args& args, const std::vector<std::string>& names) {
    std::vector<api::Node> kept;
    for (const auto* node : require_nodes(source, args, names)) { kept.push_back(*node); }
    source.objects.nodes = std::move(kept);
}

const api::Module& find_module(const Source& source, const cli::Args& args, const std::string& name) {
    const auto [said_ns, bare] = api::parse_module_name(name);
    const auto given = args.get("namespace");
    if (!said_ns.empty() && given && *given != said_ns) {
        throw Error(
            Exit::usage, "bad-value",
            fmt::format("module {} and --namespace {} contradict each other", base::escape(name), base::escape(*given)))
            .hint("write NAMESPACE/NAME alone");
    }
    const bool is_bare = said_ns.empty();
    const std::string ns = is_bare ? given.value_or("") : said_ns;
    std::vector<const api::Module*> found;
    std::vector<std::string> known, elsewhere;
    for (const auto& module : source.objects.modules) {
        known.push_back(is_bare ? module.meta.name : module.full_name());
        if (module.meta.name == bare) { elsewhere.push_back(module.full_name()); }
        if (module.meta.name == bare && (ns.empty() || module.meta.namespace_ == ns)) { found.push_back(&module); }
    }
    if (found.size() == 1) { return *found.front(); }
    if (!found.empty()) {
        throw Error(Exit::usage, "ambiguous-module",
                    fmt::format("there are {} Modules {}", found.size(), base::escape(bare)))
            .hint(fmt::format("write {}, or give -n", found.front()->full_name()));
    }
    const std::string asked = is_bare && !ns.empty() ? ns + "/" + bare : name;
    throw Error(Exit::not_found, "module-not-found", fmt::format("there is no Module {}", base::escape(asked)))
        .hint(elsewhere.empty() ? did_you_mean(name, known)
                                : fmt::format("did you mean {}?", base::join(elsewhere, " or ")));
}

/// A value of an option as it is typed again: "-" is standard input, not a file of that name.
static std::string value_word(const std::string& value) { return value == "-" ? value : base::shell_word(value); }

std::string given_options(const cli::Args& args, const std::vector<std::string_view>& options) {
    std::string text;
    for (const auto option : options) {
        if (!is_option(args, option)) { continue; }
        for (const auto& value : args.all(option)) {
            const auto name = option == "filename"   ? std::string("-f")
                              : option == "selector" ? std::string("-l")
                                                     : fmt::format("--{}", option);
            text += fmt::format(" {} {}", name, value_word(value));
        }
    }
    return text;
}

std::string place_options(const cli::Args& args, const cli::Context& context) {
    std::string text;
    for (const auto& file : args.positionals("FILE")) { text += " -f " + value_word(file); }
    text += given_options(args, {"filename", "ignore", "cluster", "kubeconfig", "context"});
    const auto& options = context.verb.options;
    const bool assumes = std::any_of(options.begin(), options.end(),
                                     [](const cli::Option& option) { return option.name == "reboot"; });
    // --kernel of other verbs asks about a kernel that no node runs.
    if (assumes) { text += given_options(args, {"kernel", "reboot", "taint", "label"}); }
    return text + given_options(args, {"missing", "kmm-version"});
}

void place_hints(Diagnostics& diagnostics, std::string_view place) {
    for (auto& finding : diagnostics) {
        if (finding.hint.starts_with("kmm-plan why ")) { finding.hint += place; }
    }
}

void check_namespace(std::span<const Source> sources, const cli::Args& args) {
    const auto asked = args.get("namespace");
    std::set<std::string> known;
    for (const auto& source : sources) {
        known.merge(api::module_namespaces(source.objects));
        for (const auto& module : source.objects.managed_cluster_modules) { known.insert(module.spoke_namespace); }
        for (const auto& object : source.objects.namespaces) { known.insert(object.meta.name); }
        for (const auto& object : source.objects.daemon_sets) { known.insert(object.meta.namespace_); }
    }
    if (!asked || known.empty() || known.contains(*asked)) { return; }
    const std::vector<std::string> names(known.begin(), known.end());
    const auto near = did_you_mean(*asked, names);
    throw Error(Exit::not_found, "no-modules", fmt::format("there is no Module in namespace {}", base::escape(*asked)))
        .hint(near.empty() ? "what was read is in " + base::join(names, ", ") : near);
}

}  // namespace kmm::tool_plan
