// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/node/kubernetes_step.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kubeadm/node/facts.hpp"
#include "net/http.hpp"
#include "sys/enter.hpp"

namespace kmm::tool_worker {
namespace {

/// A Pod of the node goes to where a command over ssh would be: files, programs and services are then as they are
/// there. True if only the cgroup is still that of the Pod.
bool enter_node(const cli::Args& args) {
    const auto root = args.get("node-root"), namespaces = args.get("node-namespaces");
    if (!root && !namespaces) return false;
    if ((root && namespaces) || args.get("host-root"))
        throw Error(Exit::usage, "bad-value",
                    "expected one of --node-root, --node-namespaces and --host-root, found several")
            .hint("leave the others out");
    net::load_curl();
    keep_termination_log();
    if (root) sys::enter_root(*root);
    else sys::enter_namespaces(*namespaces);
    sys::take_service_environment("KMM_TERMINATION_LOG");
    return true;
}

/// Where the node is, for a worker that is not on it.
std::vector<cli::Option> place_options() {
    auto root = cli::with_environment(
        cli::option("node-root", "DIR", "enter the node's / that is mounted here (chroot)"), "KMM_NODE_ROOT");
    auto namespaces = cli::with_environment(
        cli::option("node-namespaces", "DIR", "enter the namespaces of the node, as /proc/1/ns in a Pod with hostPID"),
        "KMM_NODE_NAMESPACES");
    return host_options() + std::vector<cli::Option>{root, namespaces};
}

value::Node step_document(const kubeadm::StepResult& result) {
    value::Node made = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                             {"kind", "KubernetesNodeStep"},
                                             {"step", result.step},
                                             {"outcome", result.already ? "already" : "done"},
                                             {"adopted", result.adopted},
                                             {"message", result.message}});
    value::Node facts = value::Node::mapping();
    for (const auto& [name, text] : result.facts) facts.set(name, text);
    made.set("verified", std::move(facts));
    made.set("job", result.job ? kubeadm::job_document(*result.job) : value::Node());
    made.set("warnings", value::Node::strings(result.warnings));
    return made;
}

}  // namespace

Here::Here(const cli::Args& args, cli::Context& context)
    : is_in_pod(enter_node(args)),
      node{kubeadm::Place(host_paths(args).root),
           ops,
           clock,
           random,
           std::nullopt,
           [&context] { return context.console.out_is_gone(); },
           is_in_pod} {
    take_trusted_path(node.place.root(), context);
    if (const auto limit = timeout_of(args); limit.count() > 0) node.deadline = clock.monotonic() + limit;
}

cli::Option name_option() { return cli::required(cli::option("name", "NAME", "name of the backup")); }

void refuse_without_effect(const cli::Args& args, std::initializer_list<const char*> names, std::string_view with) {
    for (const char* name : names) {
        if (args.source(name) == "option")
            throw Error(Exit::usage, "usage", fmt::format("--{} has no effect with {}", name, with))
                .hint("leave one of the two out");
    }
}

std::string name_of_backup(const cli::Args& args) {
    if (const auto name = args.get("name")) return *name;
    throw Error(Exit::usage, "missing-option", "expected --name NAME").hint("as --name before-v1.35.4");
}

cli::Verb step_verb(std::string name, std::string summary, std::string description, std::vector<cli::Example> examples,
                    std::vector<cli::Option> options) {
    cli::Verb verb;
    verb.name = "kubernetes " + std::move(name);
    verb.summary = std::move(summary);
    verb.description = std::move(description);
    verb.examples = std::move(examples);
    verb.options = std::move(options) + place_options() + cli::common_options();
    return verb;
}

Exit report_step(const kubeadm::StepResult& result, nodejob::JobSlot slot, cli::Context& context) {
    for (const std::string& warning : result.warnings) {
        if (context.verbosity >= 0) context.console.err(fmt::format("warning: {}\n", base::escape(warning)));
    }
    const value::Node document = step_document(result);
    leave_whole_message(document);
    if (!cli::print_document(context, document)) {
        context.console.out(context.output == "name"
                                ? (result.already ? "already\n" : "done\n")
                                : fmt::format("{}{}\n", result.already ? "nothing to do: " : "", result.message));
    }
    if (result.job && !result.job->received && context.console.out_ok() && !context.console.out_is_gone())
        slot.mark_received(result.job->id);
    return Exit::ok;
}

}  // namespace kmm::tool_worker
