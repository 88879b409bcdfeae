// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "cluster/directory_store.hpp"
#include "cluster/documents.hpp"
#include "cluster/selector.hpp"
#include "plan/lint.hpp"
#include "plan/validate.hpp"
#include "sys/file_ops.hpp"

namespace kmm::tool_plan {

namespace {

/// True if the option is on the command line or in a configuration file: the environment alone does not count, since
/// KUBECONFIG is often set for other programs.
bool chosen(const cli::Args& args, std::string_view option) {
    return args.get(option) && args.source(option) != "environment";
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
        if (std::any_of(over.begin(), over.end(), [&](const auto& module) { return module.full_name() == old.full_name(); })) {
            source.replaced.push_back(old);
        }
    }
}

}  // namespace

void drop_notes(Diagnostics& diagnostics) {
    std::erase_if(diagnostics, [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::note; });
}

std::vector<cli::Option> source_options() {
    cli::Option file;
    file.name = "filename";
    file.short_name = 'f';
    file.value_name = "FILE";
    file.help = "documents, a directory of them, or - for standard input";
    file.repeatable = true;
    return std::vector<cli::Option>{file} + cli::cluster_options();
}

Source read_source(const cli::Args& args, const std::vector<std::string>& more_files) {
    if (chosen(args, "kubeconfig") || args.get("context")) {
        throw Error(Exit::usage, "unsupported", "reading from an API server is not supported by this version")
            .hint("kubectl get nodes,modules,nodemodulesconfigs -A -o json | kmm-plan ... -f -");
    }
    Source source;
    source.description = value::Node::mapping();
    std::vector<std::string> names = args.all("filename");
    names.insert(names.end(), more_files.begin(), more_files.end());
    // Documents named on the command line win over a cluster that only the environment names.
    const auto cluster = args.get("cluster");
    const bool use_cluster = cluster && (names.empty() || chosen(args, "cluster"));
    if (!use_cluster && names.empty()) {
        throw Error(Exit::usage, "no-source", "no cluster given, expected one of --cluster, --kubeconfig or -f")
            .detail("directory", "--cluster DIR, or KMM_CLUSTER: one Kubernetes object per YAML file")
            .detail("api server", "--kubeconfig FILE, or KUBECONFIG: not supported by this version")
            .detail("documents", "-f FILE|DIR|-: YAML, JSON, output of kubectl get -o json")
            .hint("kmm-plan show --cluster DIR");
    }
    if (use_cluster) {
        sys::LinuxFileOps ops;
        cluster::Snapshot snapshot = cluster::DirectoryStore(*cluster, ops).read();
        source.objects = std::move(snapshot.objects);
        source.diagnostics = std::move(snapshot.diagnostics);
        source.description.set("cluster", *cluster);
    }
    if (!names.empty()) {
        api::Objects objects;
        const auto files = cluster::read_documents(names, objects, source.diagnostics);
        api::finish(objects, source.diagnostics);
        keep_replaced(source, objects.modules);
        cluster::overlay(source.objects, std::move(objects));
        source.description.set("files", value::Node::strings(files));
    }
    sort_and_merge(source.diagnostics);
    return source;
}

std::vector<std::string> read_files(const Source& source) {
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
    add(objects.preflight_validations);
    add(objects.namespaces);
    for (const auto& finding : source.diagnostics) {
        if (finding.position) { files.insert(finding.position->file); }
    }
    if (const value::Node* named = source.description.find("files"); named != nullptr) {
        for (const auto& file : named->items()) { files.insert(file.text()); }
    }
    return {files.begin(), files.end()};
}

Source read_valid_source(const cli::Args& args, cli::Context& context) {
    Source source = read_source(args);
    append(source.diagnostics, plan::validate(source.objects));
    append(source.diagnostics, plan::lint(source.objects));
    drop_notes(source.diagnostics);
    sort_and_merge(source.diagnostics);
    if (has_errors(source.diagnostics)) { throw Error::from_diagnostics(std::move(source.diagnostics)); }
    if (context.verbosity >= 0) {
        for (const auto& diagnostic : source.diagnostics) {
            context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
        }
    }
    return source;
}

std::vector<const api::Node*> select_nodes(const Source& source, const cli::Args& args,
                                           const std::vector<std::string>& names) {
    const auto selector = cluster::Selector::parse(args.get("selector").value_or(""));
    std::vector<std::string> known;
    for (const auto& node : source.objects.nodes) { known.push_back(node.meta.name); }
    for (const auto& name : names) {
        if (std::find(known.begin(), known.end(), name) != known.end()) { continue; }
        throw Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", base::escape(name)))
            .hint(did_you_mean(name, known));
    }
    std::vector<const api::Node*> result;
    for (const auto& node : source.objects.nodes) {
        const bool named = names.empty() || std::find(names.begin(), names.end(), node.meta.name) != names.end();
        if (named && selector.matches(node.meta.labels)) { result.push_back(&node); }
    }
    return result;
}

const api::Module& find_module(const Source& source, const cli::Args& args, const std::string& name) {
    const std::size_t slash = name.find('/');
    const std::string ns = slash == std::string::npos ? args.get("namespace").value_or("") : name.substr(0, slash);
    const std::string bare = slash == std::string::npos ? name : name.substr(slash + 1);
    std::vector<const api::Module*> found;
    std::vector<std::string> known;
    for (const auto& module : source.objects.modules) {
        known.push_back(slash == std::string::npos ? module.meta.name : module.full_name());
        if (module.meta.name == bare && (ns.empty() || module.meta.namespace_ == ns)) { found.push_back(&module); }
    }
    if (found.size() == 1) { return *found.front(); }
    if (!found.empty()) {
        throw Error(Exit::usage, "ambiguous-module", fmt::format("there are {} Modules {}", found.size(), base::escape(bare)))
            .hint(fmt::format("write {}, or give -n", found.front()->full_name()));
    }
    const std::string asked = slash == std::string::npos && !ns.empty() ? ns + "/" + bare : name;
    throw Error(Exit::not_found, "module-not-found", fmt::format("there is no Module {}", base::escape(asked)))
        .hint(did_you_mean(name, known));
}

}  // namespace kmm::tool_plan
