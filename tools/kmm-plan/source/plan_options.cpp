// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/plan_options.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/fleet/what_if.hpp"
#include "plan/kmm/template.hpp"
#include "plan/kmm/version_labels.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::tool_plan {

std::vector<cli::Option> plan_option_list() {
    auto next = cli::option("next", "", "show the next pass only");
    auto missing = cli::repeatable(cli::option(
        "missing", "REF", "image that does not exist, * and ? match any characters; all others are assumed to exist"));
    return {next, missing, kmm_version_option()};
}

cli::Option kmm_version_option() {
    return cli::with_default(cli::option("kmm-version", "VERSION",
                                         "KMM release of the cluster, such as v2.6.0 or main; it decides the label "
                                         "keys; auto reads labels and CRDs"),
                             "auto");
}

std::vector<cli::Option> what_if_option_list() {
    return {cli::option("kernel", "KERNEL", "assume that all nodes run this kernel"),
            cli::repeatable(cli::option("reboot", "NODE[=KERNEL]", "assume that the node rebooted, into this kernel")),
            cli::repeatable(cli::option("taint", "[NODE=]KEY[=VALUE]:EFFECT",
                                        "assume this taint on the node, or all; KEY- removes")),
            cli::repeatable(
                cli::option("label", "[NODE=]KEY=VALUE", "assume this label on the node, or all; KEY- removes"))};
}

namespace {

bool makes_an_image(const api::Module& module) {
    if (!module.module_loader) { return false; }
    const auto& container = module.module_loader->container;
    const auto& mappings = container.kernel_mappings;
    return container.build || container.sign || std::any_of(mappings.begin(), mappings.end(), [](const auto& mapping) {
               return mapping.build || mapping.sign;
           });
}

/// Images that KMM makes once, for kernels of today, and that nodes with imagined ones use, too. `others`: Nodes beside
/// those of `source`.
Diagnostics shared_with(Source& source, std::vector<api::Node> others) {
    api::Objects both;
    both.nodes = std::move(others);
    both.nodes.insert(both.nodes.end(), source.objects.nodes.begin(), source.objects.nodes.end());
    both.modules.swap(source.objects.modules);
    Diagnostics findings;
    plan::check_shared_images(both, findings);
    both.modules.swap(source.objects.modules);
    // The same image with further kernels is the same fault.
    const auto image_of = [](const Diagnostic& finding) {
        return std::string_view(finding.message).substr(0, finding.message.find(" once, for kernel "));
    };
    const auto& told = source.diagnostics;
    std::erase_if(findings, [&](const Diagnostic& finding) {
        return finding.code != "image-kernels" || finding.severity == Severity::note ||
               std::any_of(told.begin(), told.end(), [&](const auto& one) {
                   return one.code == finding.code && image_of(one) == image_of(finding);
               });
    });
    return findings;
}

void warn_of(const Diagnostics& findings, const cli::Context& context) {
    for (const auto& finding : findings) { context.console.err(cli::diagnostic_text(finding, context.color_err)); }
}

bool shares_images(const Source& source, const cli::Context& context) {
    const auto& modules = source.objects.modules;
    return context.verbosity >= 0 && std::any_of(modules.begin(), modules.end(), makes_an_image);
}

}  // namespace

void apply_what_if(const cli::Args& args, Source& source, const cli::Context& context) {
    api::Objects& objects = source.objects;
    std::vector<api::Node> today;
    const bool has_kernels = args.get("kernel") || !args.all("reboot").empty();
    if (has_kernels && shares_images(source, context)) { today = objects.nodes; }
    std::vector<std::string> said;
    const auto each = [&](const char* option, const auto& apply) {
        for (const auto& text : args.all(option)) {
            with_context([&] { return fmt::format("option --{}", option); },
                         [&] { apply(plan::split_node(objects, text)); });
            said.push_back(fmt::format("{} {}", option, text));
        }
    };
    if (const auto kernel = args.get("kernel")) {
        plan::require_kernel_name(*kernel);
        plan::reboot(objects, std::nullopt, *kernel);
        said.push_back("kernel " + *kernel);
    }
    each("reboot", [&](const plan::NodeChange& change) {
        if (!change.node && !change.says_all) {
            const std::string name = change.text.substr(0, change.text.find('='));
            std::vector<std::string> known;
            for (const auto& node : objects.nodes) { known.push_back(node.meta.name); }
            const auto near = base::nearest(name, known);
            throw Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", base::escape(name)))
                .hint(near ? fmt::format("did you mean {}?", *near) : "--reboot NODE=KERNEL");
        }
        if (!change.text.empty()) { plan::require_kernel_name(change.text); }
        plan::reboot(objects, change.node, change.text);
    });
    const auto note_idle = [&](const char* option, const plan::NodeChange& change) {
        if (context.verbosity < 0) { return; }
        const std::string who = change.node ? fmt::format("node {} does not have", *change.node) : "no node has";
        context.console.err(fmt::format("note: --{} {}: {} that {}\n", option, base::escape(change.text), who, option));
    };
    each("taint", [&](const plan::NodeChange& change) {
        plan::check_node_name(objects, change);
        if (!plan::set_taint(objects, change)) { note_idle("taint", change); }
    });
    each("label", [&](const plan::NodeChange& change) {
        plan::check_node_name(objects, change);
        if (!plan::set_label(objects, change)) { note_idle("label", change); }
    });
    Diagnostics findings;
    if (!args.all("label").empty() && context.verbosity >= 0) { plan::check_selectors(objects, findings); }
    if (!today.empty()) {
        for (auto& finding : shared_with(source, std::move(today))) { findings.push_back(std::move(finding)); }
    }
    drop_notes(findings);
    warn_of(findings, context);
    if (!said.empty()) { source.description.set("whatIf", value::Node::strings(said)); }
}

void warn_of_shared_images(Source& source, const std::vector<const api::Node*>& nodes,
                           const std::vector<std::string>& kernels, const cli::Context& context) {
    if (kernels.empty() || !shares_images(source, context)) { return; }
    std::vector<api::Node> others;
    for (const auto& kernel : kernels) {
        for (const auto* node : nodes) { others.push_back(*node), others.back().kernel_version = kernel; }
    }
    warn_of(shared_with(source, std::move(others)), context);
}

std::optional<api::ScheduleKey> asked_schedule_key(const cli::Args& args) {
    const std::string version = args.get("kmm-version").value_or("auto");
    if (version == "auto") { return std::nullopt; }
    const auto key = plan::schedule_key_of(version);
    if (!key) {
        throw Error(Exit::usage, "bad-kmm-version",
                    fmt::format("option --kmm-version: expected auto, main or a version like v2.6.0, found \"{}\"",
                                base::escape(version)))
            .hint("KMM has ordered upgrades since v2.0.0");
    }
    return key;
}

std::optional<plan::Release> asked_release(const cli::Args& args) {
    return asked_schedule_key(args) ? plan::parse_release(args.get("kmm-version").value_or("auto")) : std::nullopt;
}

std::vector<std::string> missing_images(const cli::Args& args) {
    auto names = args.all("missing");
    if (std::find(names.begin(), names.end(), "") != names.end()) {
        throw Error(Exit::usage, "bad-value", "--missing: expected the name of an image, found ''")
            .hint("leave it out where every image exists");
    }
    return names;
}

plan::Options plan_options(const cli::Args& args, const Source& source) {
    plan::Options options;
    options.next = args.flag("next");
    options.missing_images = missing_images(args);
    options.schedule_key = asked_schedule_key(args);
    return plan::complete(std::move(options), source.objects);
}

}  // namespace kmm::tool_plan
