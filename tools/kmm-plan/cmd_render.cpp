// SPDX-License-Identifier: Apache-2.0
// kmm-plan render: manifests that the plan stands for.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/plan_options.hpp"
#include "kmm-plan/render_output.hpp"
#include "kmm-plan/source.hpp"
#include "kmm-plan/verbs.hpp"
#include "render/manifests.hpp"
#include "sys/file_ops.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

std::vector<render::What> parse_whats(const std::vector<std::string>& names) {
    std::vector<std::string> known;
    for (const auto& row : render::whats()) { known.emplace_back(row.name); }
    std::vector<render::What> result;
    for (const auto& name : names) {
        const auto rows = render::whats();
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const render::WhatName& r) { return r.name == name; });
        if (row != rows.end()) {
            result.push_back(row->what);
            continue;
        }
        if (name == "recipe") {
            throw Error(Exit::usage, "unsupported", "rendering a recipe is not supported by this version")
                .hint("kmm-plan render -o yaml gives the manifests themselves");
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
    for (const auto* node : select_nodes(source, args, args.all("node"))) { nodes.push_back(*node); }
    objects.nodes = std::move(nodes);
    return objects;
}

bool in_namespace(const value::Node& node, const std::string& ns) {
    const bool is_namespace = node.get_string({"kind"}) == "Namespace";
    const std::string own = node.get_string({"metadata", is_namespace ? "name" : "namespace"});
    return own.empty() || own == ns;
}

/// The configuration in a text, which may be a ConfigMap around it.
render::OperatorConfig parse_operator_config(const std::string& text, const std::string& file) {
    Diagnostics faults;
    const auto documents = value::read_any(text, file, faults);
    render::OperatorConfig config;
    if (documents.size() > 1) {
        throw Error(Exit::data, "bad-value", fmt::format("expected one document with the operator's configuration, found {}",
                                                         documents.size()))
            .at(documents[1].position(documents[1].root.mark()));
    }
    if (!documents.empty() && documents[0].root.get_string({"kind"}) == "ConfigMap") {
        const value::Node* inner = documents[0].root.find_path({"data", render::k_operator_config_key});
        if (inner == nullptr || !inner->is_string()) {
            throw Error(Exit::data, "missing-field", fmt::format("the ConfigMap has no data.{}", render::k_operator_config_key))
                .at(documents[0].position(documents[0].root.mark()));
        }
        return parse_operator_config(inner->text(), fmt::format("{}({})", file, render::k_operator_config_key));
    }
    if (!documents.empty()) { config = render::decode_operator_config(documents[0], faults); }
    if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    return config;
}

/// --operator-config, else the operator's ConfigMap if it was read, else its defaults; --firmware-host-path over all.
render::OperatorConfig operator_config(const cli::Args& args, const api::Objects& objects) {
    render::OperatorConfig config;
    if (const auto file = args.get("operator-config")) {
        config = parse_operator_config(*file == "-" ? sys::read_fd(0, "-") : sys::read_file(*file), *file);
    } else {
        for (const auto& map : objects.config_maps) {
            if (map.meta.name != render::k_operator_config_map) { continue; }
            const auto text = map.data.find(std::string(render::k_operator_config_key));
            if (text == map.data.end()) { continue; }
            config = parse_operator_config(text->second, fmt::format("{}({})", map.meta.origin.file, text->first));
        }
    }
    if (const auto path = args.get("firmware-host-path")) {
        if (const std::string fault = render::firmware_path_fault(*path); !fault.empty()) {
            throw Error(Exit::usage, "usage", "--firmware-host-path " + fault);
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
    options.worker_image = args.get("worker-image").value_or("kmm-worker:" KMM_VERSION);
    options.build_image = args.get("build-image").value_or(options.build_image);
    options.sign_image = args.get("sign-image").value_or(options.sign_image);
    options.operator_config = operator_config(args, source.objects);
    return options;
}

bool is_inside(const std::string& path, const std::string& directory) {
    std::error_code error;
    const auto inner = std::filesystem::weakly_canonical(path, error);
    const auto outer = std::filesystem::weakly_canonical(directory, error);
    if (!std::filesystem::is_directory(outer, error)) { return false; }
    const auto [end, rest] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
    return end == outer.end();
}

/// What is written is read as part of the cluster by the next run, if it lies there.
void warn_about_out(const std::string& out, const cli::Args& args, cli::Context& context) {
    std::vector<std::string> inputs = args.all("filename");
    if (const auto cluster = args.get("cluster")) { inputs.push_back(*cluster); }
    for (const auto& input : inputs) {
        if (input == "-" || context.verbosity < 0 || !is_inside(out, input)) { continue; }
        Diagnostic warning;
        warning.severity = Severity::warning;
        warning.code = "out-in-input";
        warning.message = fmt::format("--out {} lies in {}, which is read", base::escape(out), base::escape(input));
        warning.hint = "the next run will take the manifests for objects of the cluster; write them beside it";
        context.console.err(cli::diagnostic_text(warning, context.color_err));
    }
}

void print_changes(const OutputChanges& changes, const std::string& directory, cli::Context& context) {
    if (context.verbosity < 0) { return; }
    for (const auto& name : changes.changed_by_others) {
        context.console.err(fmt::format("warning: {}/{} is no longer wanted, but somebody changed it: left alone\n",
                                        base::escape(directory), name));
    }
    for (const auto& name : changes.in_use) {
        context.console.err(fmt::format("{}/{} is kept: nodes are still labelled with its version\n", base::escape(directory), name));
    }
    context.console.err(fmt::format("{}: {} written, {} unchanged, {} removed\n", base::escape(directory),
                                    changes.written.size(), changes.unchanged.size(), changes.removed.size()));
}

void write_directory(const std::vector<value::Node>& documents, const std::vector<std::string>& in_use, const cli::Args& args,
                     cli::Context& context) {
    const bool json = context.output == "json";
    if (!json && context.output != "table" && context.output != "yaml") {
        throw Error(Exit::usage, "usage", fmt::format("--out writes yaml or json files, found -o {}", context.output))
            .hint("leave -o away, or -o json");
    }
    const std::string ending = json ? ".json" : ".yaml";
    const auto names = render::file_names(documents);
    std::vector<OutputFile> files;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        files.push_back({names[i] + ending, json ? value::to_json_pretty(documents[i]) : value::to_yaml(documents[i])});
    }
    std::vector<std::string> kept;
    for (const auto& name : in_use) { kept.push_back(name + ending); }
    const std::string directory = *args.get("out");
    sys::LinuxFileOps ops;
    print_changes(write_files(ops, directory, files, args.flag("prune") ? Prune::yes : Prune::no, kept), directory, context);
}

Exit run_render(const cli::Args& args, cli::Context& context) {
    const auto whats = parse_whats(args.positionals("WHAT"));
    const auto out = args.get("out");
    if (args.flag("prune") && !out) {
        throw Error(Exit::usage, "usage", "--prune needs --out DIR").hint("it removes files that an earlier --out wrote");
    }
    if (out && out->empty()) { throw Error(Exit::usage, "usage", "--out needs a directory"); }
    if (out) { warn_about_out(*out, args, context); }
    Source source = read_valid_source(args, context);
    apply_what_if(args, source);
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
    if (out) {
        write_directory(rendered.objects, render::files_in_use(source.objects, options.plan), args, context);
    } else {
        context.console.out(documents_text(rendered.objects, context.output));
    }
    return Exit::ok;
}

cli::Option option(std::string name, std::string value_name, std::string help) {
    cli::Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

cli::Option repeatable(cli::Option made) {
    made.repeatable = true;
    return made;
}

/// An image that KMM's operator takes from an environment variable.
cli::Option image_option(std::string name, std::string help, std::string default_text, std::string environment) {
    cli::Option made = option(std::move(name), "REF", std::move(help));
    made.default_text = std::move(default_text);
    made.environment = std::move(environment);
    return made;
}

std::vector<cli::Option> own_options() {
    const render::Options defaults;
    cli::Option style = option("worker-style", "STYLE", "how worker Pods get the files of the image");
    style.choices = {"pull", "extract"};
    style.default_text = "pull";
    return {
        repeatable(option("node", "NODE", "only this node")),
        option("out", "DIR", "one file per object in this directory"),
        option("prune", "", "with --out: remove our files that are no longer wanted"),
        style,
        image_option("worker-image", "image of the worker", "kmm-worker:" KMM_VERSION, "RELATED_IMAGE_WORKER"),
        image_option("build-image", "image of kaniko", defaults.build_image, "RELATED_IMAGE_BUILD"),
        image_option("sign-image", "image with sign-file; default: that of KMM", "", "RELATED_IMAGE_SIGN"),
        option("operator-config", "FILE", "controller_config.yaml of KMM's operator, or its ConfigMap"),
        option("firmware-host-path", "DIR", "the hosts' firmware directory, over the operator's"),
        option("no-finalizers", "", "leave out finalizers that only KMM's operator removes"),
    };
}

}  // namespace

cli::Verb render_verb() {
    cli::Verb verb;
    verb.name = "render";
    verb.summary = "the manifests that the plan stands for";
    verb.description = "WHAT is any of:";
    for (const auto& row : render::whats()) { verb.description += fmt::format("\n  {:<14} {}", row.name, row.summary); }
    verb.description +=
        "\n\nWithout WHAT: what the plan needs, which is namespace, nmc, device-plugin, dra and worker-pods, and build and sign for "
        "images named by --missing.\n\n"
        "Worker Pods come in two styles. pull: kmm-worker pulls the module image itself, so images need no shell. extract: as KMM's "
        "operator makes them today, an init container made of the module image copies the files; give the operator's worker image "
        "with --worker-image. A module that is reloaded has two Pods of the same name: apply the second, which loads, when the first "
        "has succeeded and is deleted.\n\n"
        "DaemonSets, build and sign Pods and worker Pods of style extract bear KMM's finalizers. Where no operator runs, nothing "
        "takes these away: use --no-finalizers.\n\n"
        "--kernel, --reboot, --taint and --label render for nodes as they are imagined: build and sign Pods of a kernel that nobody "
        "runs yet, say.\n\n"
        "With --next, worker Pods are those of the very next pass; everything else is the settled state.\n\n"
        "--out keeps the list of its files in DIR/.kmm-render.json. Files that are not on it are neither replaced nor removed. One "
        "directory belongs to one choice of WHAT, nodes and namespace: --prune removes what this run did not make.";
    verb.examples = {
        {"kmm-plan render nmc --cluster ./fleet", "settled NodeModulesConfigs"},
        {"kmm-plan render worker-pods --cluster ./fleet --node node-a", "Pods of one node"},
        {"kmm-plan render --cluster ./fleet --out ./manifests --prune", "one file per object"},
        {"kmm-plan render build --cluster ./fleet", "Pods that build every image of the fleet"},
        {"kmm-plan render build sign --cluster ./fleet --kernel 6.1.0-60-amd64", "and those of a kernel that nobody runs yet"},
    };
    std::string names;
    for (const auto& row : render::whats()) { names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name); }
    verb.positionals = {{"WHAT", names, false, true}};
    verb.options = own_options() + plan_option_list() + what_if_option_list() + source_options() + cli::common_options();
    verb.run = run_render;
    return verb;
}

}  // namespace kmm::tool_plan
