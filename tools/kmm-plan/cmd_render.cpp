// SPDX-License-Identifier: Apache-2.0
// kmm-plan render: manifests that the plan stands for.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/documents.hpp"
#include "kmm-plan/verbs.hpp"
#include "render/manifests.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

void check_what(const std::vector<std::string>& what) {
    const std::vector<std::string> supported{"nmc", "worker-pods"};
    for (const auto& name : what) {
        if (std::find(supported.begin(), supported.end(), name) != supported.end()) { continue; }
        const auto near = base::nearest(name, supported);
        throw Error(Exit::usage, "unsupported", fmt::format("cannot render '{}', expected nmc or worker-pods", base::escape(name)))
            .hint(near ? fmt::format("did you mean {}?", *near) : "kmm-plan render --help");
    }
}

/// The objects of the named nodes and namespace only.
api::Objects selected(const Source& source, const cli::Args& args) {
    api::Objects objects = source.objects;
    std::vector<api::Node> nodes;
    for (const auto* node : select_nodes(source, args, args.all("node"))) { nodes.push_back(*node); }
    objects.nodes = std::move(nodes);
    return objects;
}

bool in_namespace(const value::Node& node, const std::optional<std::string>& ns) {
    const std::string own = node.get_string({"metadata", "namespace"});
    return !ns || own.empty() || own == *ns;
}

std::string documents_text(const std::vector<value::Node>& documents, const std::string& output) {
    if (output == "json") {
        const value::Node list =
            value::Node::mapping({{"apiVersion", "v1"}, {"kind", "List"}, {"items", value::Node::sequence(documents)}});
        return value::to_json_pretty(list);
    }
    std::string text;
    for (const auto& document : documents) {
        if (output == "jsonl") {
            text += value::to_json(document) + "\n";
        } else if (output == "name") {
            text += fmt::format("{}/{}\n", base::to_lower(document.get_string({"kind"})),
                                document.get_string({"metadata", "name"}));
        } else {
            text += (text.empty() ? "" : "---\n") + value::to_yaml(document);
        }
    }
    return text;
}

Exit run_render(const cli::Args& args, cli::Context& context) {
    std::vector<std::string> what = args.positionals("WHAT");
    check_what(what);
    if (what.empty()) { what = {"nmc", "worker-pods"}; }
    if (args.get("worker-style").value_or("pull") != "pull") {
        throw Error(Exit::usage, "unsupported", "worker style extract is not supported by this version")
            .hint("--worker-style pull: the worker pulls the image itself");
    }
    const Source source = read_valid_source(args, context);
    const api::Objects objects = selected(source, args);
    plan::Options options;
    options.next = args.flag("next");
    render::WorkerOptions worker;
    worker.image = args.get("worker-image").value_or("kmm-worker:" KMM_VERSION);
    worker.firmware_host_path = args.get("firmware-host-path").value_or("");

    std::vector<value::Node> documents;
    for (const auto& name : what) {
        auto rendered = name == "nmc" ? render::node_modules_configs(objects) : render::worker_pods(objects, options, worker);
        std::move(rendered.begin(), rendered.end(), std::back_inserter(documents));
    }
    std::erase_if(documents, [&](const value::Node& node) { return !in_namespace(node, args.get("namespace")); });
    context.console.out(documents_text(documents, context.output));
    return Exit::ok;
}

cli::Option option(std::string name, std::string value_name, std::string help) {
    cli::Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

}  // namespace

cli::Verb render_verb() {
    cli::Verb verb;
    verb.name = "render";
    verb.summary = "the manifests that the plan stands for";
    verb.description =
        "WHAT is nmc (the NodeModulesConfigs and node labels the cluster settles at) or worker-pods (the Pods that load and unload "
        "modules to get there). Without WHAT: both. The worker pulls the module image itself, so images need no shell.\n\n"
        "A module that is reloaded has two Pods of the same name: apply the second, which loads, when the first has succeeded "
        "and is deleted.";
    verb.examples = {
        {"kmm-plan render nmc --cluster ./fleet", "settled NodeModulesConfigs"},
        {"kmm-plan render worker-pods --cluster ./fleet --node node-a", "Pods of one node"},
    };
    verb.positionals = {{"WHAT", "nmc, worker-pods", false, true}};
    cli::Option node = option("node", "NODE", "only this node");
    node.repeatable = true;
    cli::Option style = option("worker-style", "STYLE", "how worker Pods get the module image");
    style.choices = {"pull", "extract"};
    style.default_text = "pull";
    cli::Option image = option("worker-image", "REF", "image of kmm-worker");
    image.default_text = "kmm-worker:" KMM_VERSION;
    verb.options = std::vector<cli::Option>{node, option("next", "", "Pods of the very next pass only"), style, image,
                                            option("firmware-host-path", "DIR", "the hosts' firmware directory")} +
                   source_options() + cli::common_options();
    verb.run = run_render;
    return verb;
}

}  // namespace kmm::tool_plan
