// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/render/hub.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cluster/folder/documents.hpp"
#include "kmm-plan/render/directory.hpp"
#include "kmm-plan/render/output.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/source/source.hpp"
#include "plan/lint/lint.hpp"
#include "plan/lint/validate.hpp"
#include "render/hub.hpp"
#include "render/manifests.hpp"

namespace kmm::tool_plan {

namespace {

/// Everything that says something about clusters and what they get.
struct HubInput {
    api::Objects objects;  ///< ManagedClusterModules and ManagedClusters alone
    std::map<std::string, std::vector<std::string>> kernels;  ///< by cluster, of those whose Nodes were read
    Diagnostics diagnostics;
};

void refuse_other_options(const cli::Args& args) {
    if (args.positionals("WHAT").size() != 1) {
        throw Error(Exit::usage, "usage", "hub stands alone, found other manifests beside it")
            .hint("run render once for each");
    }
    for (const char* name : {"node", "selector", "next", "kernel", "reboot", "taint", "label"}) {
        if (args.flag(name) || !args.all(name).empty()) {
            throw Error(Exit::usage, "usage",
                        fmt::format("--{} does not go with hub, which looks at whole clusters", name))
                .hint("ManagedClusterModules select clusters by spec.selector");
        }
    }
}

/// --cluster-name: names by context; the one without a context under "".
std::map<std::string, std::string> asked_names(const cli::Args& args, const std::vector<Source>& sources) {
    std::map<std::string, std::string> result;
    for (const auto& text : args.all("cluster-name")) {
        const std::size_t equals = text.rfind('=');
        const std::string context = equals == std::string::npos ? "" : text.substr(0, equals);
        const std::string name = equals == std::string::npos ? text : text.substr(equals + 1);
        const bool known = context.empty() ? sources.size() == 1
                                           : std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
                                                 return source.cluster == context;
                                             });
        if (!known || !result.emplace(context, name).second) {
            throw Error(Exit::usage, "usage",
                        fmt::format("option --cluster-name: expected one CONTEXT=NAME for each --context, found \"{}\"",
                                    base::escape(text)))
                .hint("kubectl config get-contexts lists the contexts");
        }
    }
    return result;
}

void check_cluster_name(const std::string& name) {
    if (api::is_dns1123_label(name)) { return; }
    throw Error(Exit::usage, "bad-cluster-name",
                fmt::format("\"{}\" is not a valid cluster name, expected at most 63 lower-case letters, "
                            "digits and '-'",
                            base::escape(name)))
        .hint("--cluster-name CONTEXT=NAME says what its ManagedCluster is called");
}

/// The server's answers have no lines.
template <typename T>
bool has_from_server(const std::vector<T>& objects) {
    return std::any_of(objects.begin(), objects.end(), [](const T& object) { return object.meta.origin.line == 0; });
}

std::vector<std::string> node_kernels(const api::Objects& objects) {
    std::set<std::string> kernels;
    for (const auto& node : objects.nodes) {
        if (!node.kernel_version.empty()) { kernels.insert(node.kernel_version); }
    }
    return {kernels.begin(), kernels.end()};
}

HubInput gather(const cli::Args& args, cli::Context& context) {
    std::vector<Source> sources = read_sources(args, context);
    const auto names = asked_names(args, sources);
    HubInput input;
    std::string hub_context;
    for (auto& source : sources) {
        api::Objects& objects = source.objects;
        const bool is_hub = source.live && (has_from_server(objects.managed_cluster_modules) ||
                                            has_from_server(objects.managed_clusters));
        const auto asked = names.find(names.contains("") ? "" : source.cluster);
        if (is_hub && !hub_context.empty()) {
            throw Error(Exit::usage, "several-hubs",
                        fmt::format("expected one hub, found {} and {}", base::escape(hub_context),
                                    base::escape(source.cluster)))
                .hint("leave one of them away: both have ManagedClusterModules or ManagedClusters");
        }
        if (is_hub) { hub_context = source.cluster; }
        if (asked != names.end() || (source.live && !is_hub)) {
            const std::string& name = asked != names.end() ? asked->second : source.cluster;
            check_cluster_name(name);
            if (!input.kernels.emplace(name, node_kernels(objects)).second) {
                throw Error(Exit::usage, "bad-cluster-name", fmt::format("two clusters are called {}", name))
                    .hint("--cluster-name CONTEXT=NAME gives one of them another name");
            }
        }
        api::Objects of_hub;
        of_hub.managed_cluster_modules = std::move(objects.managed_cluster_modules);
        of_hub.managed_clusters = std::move(objects.managed_clusters);
        cluster::overlay(input.objects, std::move(of_hub));
        input.diagnostics.insert(input.diagnostics.end(), source.diagnostics.begin(), source.diagnostics.end());
    }
    return input;
}

void check_input(HubInput& input, cli::Context& context) {
    const Diagnostics rules = plan::validate(input.objects);
    input.diagnostics.insert(input.diagnostics.end(), rules.begin(), rules.end());
    plan::check_hub_images(input.objects, input.diagnostics);
    drop_notes(input.diagnostics);
    sort_and_merge(input.diagnostics);
    if (has_errors(input.diagnostics)) { throw Error::from_diagnostics(std::move(input.diagnostics)); }
    for (const auto& finding : input.diagnostics) {
        if (context.verbosity >= 0) { context.console.err(cli::diagnostic_text(finding, context.color_err)); }
    }
    if (input.objects.managed_cluster_modules.empty()) {
        throw Error(Exit::not_found, "no-managed-cluster-module",
                    "there is no ManagedClusterModule, expected at least one")
            .hint("-f FILE adds them; of single Modules, kmm-plan render gives the manifests");
    }
    if (input.objects.managed_clusters.empty() && input.kernels.empty()) {
        throw Error(Exit::not_found, "no-managed-cluster", "there is no cluster, expected ManagedClusters or contexts")
            .detail("hub", "ManagedClusters with -f, or --context of the hub")
            .detail("spokes", "--context A --context B, whose Nodes are read")
            .detail("dump", "--cluster-name NAME: the Nodes of --cluster or -f are those of NAME")
            .hint("kmm-plan render hub -f hub.yaml --context A");
    }
}

std::vector<render::HubCluster> clusters_of(const HubInput& input) {
    std::map<std::string, render::HubCluster> clusters;
    for (const auto& object : input.objects.managed_clusters) {
        render::HubCluster& cluster = clusters[object.meta.name];
        cluster.labels = object.meta.labels;
        const auto claim = object.claims.find(std::string(render::k_kernel_claim));
        if (claim != object.claims.end()) { cluster.kernels = render::claimed_kernels(claim->second); }
    }
    for (const auto& [name, kernels] : input.kernels) { clusters[name].kernels = kernels; }
    std::vector<render::HubCluster> result;
    for (auto& [name, cluster] : clusters) {
        cluster.name = name;
        result.push_back(std::move(cluster));
    }
    return result;
}

/// Names of the files, without ending: CLUSTER/MODULE for the cluster, CLUSTER/manifest-works/WORK for its hub.
void write_bundles(const std::vector<render::HubBundle>& bundles, const cli::Args& args, cli::Context& context) {
    std::vector<value::Node> documents;
    std::vector<std::string> names;
    for (const auto& bundle : bundles) {
        documents.push_back(bundle.module);
        names.push_back(bundle.cluster + "/" + render::file_names({bundle.module}).front());
        documents.push_back(bundle.manifest_work);
        names.push_back(bundle.cluster + "/manifest-works/" + render::file_names({bundle.manifest_work}).front());
    }
    write_directory(documents, names, {}, args, context);
}

}  // namespace

bool asks_for_hub(const cli::Args& args) {
    const auto whats = args.positionals("WHAT");
    return std::find(whats.begin(), whats.end(), k_what_hub) != whats.end();
}

Exit run_render_hub(const cli::Args& args, cli::Context& context) {
    refuse_other_options(args);
    const auto out = args.get("out");
    check_out(args);
    HubInput input = gather(args, context);
    check_input(input, context);
    Source asked;
    asked.objects.managed_cluster_modules = input.objects.managed_cluster_modules;
    check_namespace({&asked, 1}, args);
    render::HubBundles rendered =
        render::hub_bundles(input.objects.managed_cluster_modules, clusters_of(input), missing_images(args));
    for (const auto& finding : rendered.findings) {
        if (context.verbosity >= 0) { context.console.err(cli::diagnostic_text(finding, context.color_err)); }
    }
    if (const auto ns = args.get("namespace")) {
        std::erase_if(rendered.bundles, [&](const render::HubBundle& bundle) {
            return bundle.module.get_string({"metadata", "namespace"}) != *ns;
        });
    }
    if (out) {
        write_bundles(rendered.bundles, args, context);
        return Exit::ok;
    }
    std::vector<value::Node> works;
    for (auto& bundle : rendered.bundles) { works.push_back(std::move(bundle.manifest_work)); }
    context.console.out(documents_text(works, context.output));
    return Exit::ok;
}

}  // namespace kmm::tool_plan
