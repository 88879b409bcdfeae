// SPDX-License-Identifier: Apache-2.0
// kmm-plan render: manifests that the plan stands for.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/reference_option.hpp"
#include "kmm-plan/source/operator_config.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/source/read_summary.hpp"
#include "kmm-plan/render/directory.hpp"
#include "kmm-plan/render/hub.hpp"
#include "kmm-plan/render/output.hpp"
#include "kmm-plan/source/source.hpp"
#include "kmm-plan/verbs.hpp"
#include "render/manifests.hpp"
#include "sys/file_ops.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

std::vector<std::string> what_names() {
    std::vector<std::string> names;
    for (const auto& row : render::whats()) { names.emplace_back(row.name); }
    names.emplace_back(k_what_hub);
    return names;
}

std::vector<render::What> parse_whats(const std::vector<std::string>& names) {
    auto known = what_names();
    known.insert(known.end(), {"chart", "recipe"});  // verbs of their own
    std::vector<render::What> result;
    for (const auto& name : names) {
        const auto rows = render::whats();
        const auto row =
            std::find_if(rows.begin(), rows.end(), [&](const render::WhatName& r) { return r.name == name; });
        if (row != rows.end()) {
            result.push_back(row->what);
            continue;
        }
        const auto near = base::nearest(name, known);
        throw Error(Exit::usage, "unsupported",
                    fmt::format("cannot render '{}', expected one of {}", base::escape(name), base::join(known, ", ")))
            .hint(near ? fmt::format("did you mean {}?", *near) : "kmm-plan render --help");
    }
    return result;
}

/// The objects of the named nodes only.
api::Objects selected_objects(const Source& source, const cli::Args& args) {
    api::Objects objects = source.objects;
    std::vector<api::Node> nodes;
    for (const auto* node : require_nodes(source, args, args.all("node"))) { nodes.push_back(*node); }
    objects.nodes = std::move(nodes);
    return objects;
}

bool in_namespace(const value::Node& node, const std::string& ns) {
    const bool is_namespace = node.get_string({"kind"}) == "Namespace";
    const std::string own = node.get_string({"metadata", is_namespace ? "name" : "namespace"});
    return own.empty() || own == ns;
}

/// --operator-config, else the operator's ConfigMap if it was read, else its defaults; --firmware-host-path over all.
render::OperatorConfig operator_config(const cli::Args& args, const api::Objects& objects) {
    render::OperatorConfig config;
    const auto release = asked_release(args);
    if (const auto file = args.get("operator-config")) {
        config = parse_operator_config(*file == "-" ? sys::read_fd(0, "-") : sys::read_file(*file), *file, release);
    } else {
        for (const auto& map : objects.config_maps) {
            if (map.meta.name != render::k_operator_config_map) { continue; }
            const auto text = map.data.find(std::string(render::k_operator_config_key));
            if (text == map.data.end()) { continue; }
            config =
                parse_operator_config(text->second, fmt::format("{}({})", map.meta.origin.file, text->first), release);
        }
    }
    if (const auto path = args.get("firmware-host-path")) {
        if (const std::string fault = render::firmware_path_fault(*path); !fault.empty()) {
            throw Error(Exit::usage, "usage", "--firmware-host-path " + fault)
                .hint("for example --firmware-host-path /var/lib/firmware");
        }
        config.worker_firmware_host_path = *path;
    }
    return config;
}

render::Options render_options(const cli::Args& args, const Source& source) {
    render::Options options;
    options.plan = plan_options(args, source);
    options.worker_style = args.get("worker-style").value_or("pull") == "extract" ? render::WorkerStyle::extract
                                                                                  : render::WorkerStyle::pull;
    options.finalizers = args.flag("no-finalizers") ? render::Finalizers::none : render::Finalizers::as_operator;
    const auto image_of = [&](const char* option, std::string fallback) {
        const auto given = args.get(option);
        // Without a value of the user's --sign-image is empty: the operator's own image stands for it.
        return given && (!given->empty() || args.source(option) == "option") ? image::require_reference(option, *given)
                                                                              : std::move(fallback);
    };
    options.worker_image = image_of("worker-image", "kmm-worker:" KMM_VERSION);
    options.build_image = image_of("build-image", options.build_image);
    options.sign_image = image_of("sign-image", options.sign_image);
    options.operator_config = operator_config(args, source.objects);
    return options;
}

Exit run_render(const cli::Args& args, cli::Context& context) {
    if (asks_for_hub(args)) { return run_render_hub(args, context); }
    const auto whats = parse_whats(args.positionals("WHAT"));
    const auto out = args.get("out");
    check_out(args);
    if (!args.all("cluster-name").empty()) {
        throw Error(Exit::usage, "usage", "--cluster-name is for render hub alone")
            .hint("leave it out, or use kmm-plan render hub");
    }
    Source source = read_valid_source(args, context);
    check_namespace({&source, 1}, args);
    apply_what_if(args, source, context);
    const api::Objects objects = selected_objects(source, args);
    const render::Options options = render_options(args, source);
    render::Rendered rendered =
        whats.empty() ? render::render_needed(objects, options) : render::render(objects, options, whats);
    if (context.verbosity >= 0) {
        for (const auto& finding : rendered.findings) {
            context.console.err(cli::diagnostic_text(finding, context.color_err));
        }
    }
    if (const auto ns = args.get("namespace")) {
        std::erase_if(rendered.objects, [&](const value::Node& node) { return !in_namespace(node, *ns); });
    }
    if (rendered.objects.empty() && context.verbosity >= 0) {
        context.console.err(fmt::format("nothing to render{}{}; read: {}\n", whats.empty() ? "" : ": ",
                                        base::join(args.positionals("WHAT"), ", "), read_summary({&source, 1})));
    }
    if (out) {
        write_directory(rendered.objects, render::file_names(rendered.objects),
                        render::files_in_use(source.objects, options.plan), args, context);
    } else {
        context.console.out(documents_text(rendered.objects, context.output));
    }
    return Exit::ok;
}

/// An image that KMM's operator takes from an environment variable.
cli::Option image_option(std::string name, std::string help, std::string default_text, std::string environment) {
    return cli::with_environment(
        cli::with_default(cli::option(std::move(name), "REF", std::move(help)), std::move(default_text)),
        std::move(environment));
}

std::vector<cli::Option> own_options() {
    const render::Options defaults;
    auto style = cli::with_default(
        cli::with_choices(cli::option("worker-style", "STYLE", "how worker Pods get the files of the image"),
                          {"pull", "extract"}),
        "pull");
    return {
        cli::repeatable(
            cli::option("cluster-name", "[CONTEXT=]NAME", "hub: name of the ManagedCluster whose Nodes are read")),
        cli::repeatable(cli::option("node", "NODE", "only this node")),
        cli::option("out", "DIR", "write one file per object into this directory"),
        cli::option("prune", "", "with --out: remove files of earlier runs that are not rendered"),
        style,
        image_option("worker-image", "image of the worker", "kmm-worker:" KMM_VERSION, "RELATED_IMAGE_WORKER"),
        image_option("build-image", "image of kaniko", defaults.build_image, "RELATED_IMAGE_BUILD"),
        image_option("sign-image", "image with sign-file (default: that of KMM)", "", "RELATED_IMAGE_SIGN"),
        cli::option("operator-config", "FILE", "controller_config.yaml of KMM's operator, or its ConfigMap"),
        cli::option("firmware-host-path", "DIR", "firmware directory of the hosts, overrides the operator's"),
        cli::option("no-finalizers", "", "leave out finalizers that only KMM's operator removes"),
    };
}

}  // namespace

cli::Verb render_verb() {
    cli::Verb verb;
    verb.name = "render";
    verb.summary = "render the manifests of the plan";
    verb.description = "WHAT is any of:";
    for (const auto& row : render::whats()) { verb.description += fmt::format("\n  {:<14} {}", row.name, row.summary); }
    verb.description +=
        fmt::format("\n  {:<14} {}", k_what_hub, "what KMM's hub creates for each cluster; only by itself");
    verb.description +=
        "\n\nWithout WHAT the manifests that the plan needs are rendered: namespace, nmc, device-plugin, dra and "
        "worker-pods, and build and sign for images of --missing.\n\n"
        "Worker Pods have two styles. pull: kmm-worker pulls the module image itself, so images need no shell. "
        "extract: as KMM's operator creates them today, an init container of the module image copies the files; "
        "give the operator's worker image with --worker-image. A reloaded module has two Pods of the same name: "
        "apply the second, which loads, when the first has succeeded and is deleted.\n\n"
        "DaemonSets, build and sign Pods and worker Pods of style extract have KMM's finalizers. Where no "
        "operator runs, nothing removes these: use --no-finalizers.\n\n"
        "--kernel, --reboot, --taint and --label render for changed nodes, such as build and sign Pods for a "
        "kernel that no node runs.\n\n"
        "hub takes ManagedClusterModules and the clusters they select: ManagedClusters with their labels and the "
        "kernels they claim, and contexts of --context, whose Nodes say which kernels run. A context is named "
        "like its ManagedCluster, or --cluster-name says which one it is. hub prints the ManifestWorks of the "
        "hub. --out gives each cluster its own directory: the Modules, ready for kubectl apply on that cluster "
        "where there is no hub, and manifest-works/ for a hub.\n\n"
        "With --next, worker Pods are those of the next pass; everything else is the settled state.\n\n"
        "--out keeps the list of its files in DIR/.kmm-render.json. Other files are neither replaced nor removed. "
        "Use one directory for one choice of WHAT, nodes and namespace: --prune removes files that this run did "
        "not make.";
    verb.examples = {
        {"kmm-plan render nmc --cluster ./fleet", "settled NodeModulesConfigs"},
        {"kmm-plan render worker-pods --cluster ./fleet --node node-a", "Pods of one node"},
        {"kmm-plan render --cluster ./fleet --out ./manifests --prune", "one file per object"},
        {"kmm-plan render build --cluster ./fleet", "Pods that build every image of the fleet"},
        {"kmm-plan render build sign --cluster ./fleet --kernel 6.1.0-60-amd64",
         "and those of a kernel that no node runs yet"},
    };
    verb.examples.push_back({"kmm-plan render hub -f hub.yaml --context east --context west --out ./clusters",
                             "bundles of two clusters, without a hub"});
    const auto names = what_names();
    verb.positionals = {{"WHAT", base::join(names, ", "), false, true, names}};
    verb.options =
        own_options() + plan_option_list() + what_if_option_list() + source_options() + cli::common_options();
    verb.run = run_render;
    return verb;
}

}  // namespace kmm::tool_plan
