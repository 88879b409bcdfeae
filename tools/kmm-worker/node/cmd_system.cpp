// SPDX-License-Identifier: Apache-2.0
// node: which kernel this node runs, installing another one, and the reboot into it.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kubeadm/node/node.hpp"
#include "sys/clock.hpp"
#include "sys/random.hpp"

namespace kmm::tool_worker {

namespace {

constexpr std::chrono::milliseconds k_reboot_patience{3000};
constexpr std::size_t k_output_shown = 64U << 10U;

/// The machine, for the time of one call.
struct System {
    System(const cli::Args& args, cli::Context& context)
        : host(host_paths(args)), facts(this_node(host)), node{kubeadm::Place(host.root),
                                                               ops,
                                                               clock,
                                                               random,
                                                               std::nullopt,
                                                               [&context] { return context.console.out_is_gone(); }} {
        require_release(host, facts);
        take_trusted_path(host.root, context);
        if (const auto limit = timeout_of(args); limit.count() > 0) node.deadline = clock.monotonic() + limit;
    }
    /// One slot for both steps: nothing reboots a node that is being installed.
    [[nodiscard]] nodejob::JobSlot slot() {
        return nodejob::JobSlot({node.place.here(std::string(kubeadm::k_state_directory) + "/jobs/system"),
                                 facts.boot_id, node.place.here("/sys/fs/cgroup")},
                                ops, clock, random);
    }

    kmod::HostPaths host;
    kmod::NodeFacts facts;
    sys::LinuxFileOps ops;
    sys::LinuxClock clock;
    sys::LinuxRandom random;
    kubeadm::Node node;
};

/// The value of an option that must not be empty.
std::string needed(const cli::Args& args, const char* name, const char* example) {
    const auto text = args.get(name).value_or("");
    if (text.empty())
        throw Error(Exit::usage, "missing-option", fmt::format("expected --{} with a value", name)).hint(example);
    return text;
}

Exit report(cli::Context& context, const System& system, const std::string& step, const std::string& outcome,
            const std::string& message, const std::optional<nodejob::JobView>& job,
            const std::vector<std::string>& warnings) {
    for (const auto& warning : warnings)
        if (context.verbosity >= 0) context.console.err(fmt::format("warning: {}\n", base::escape(warning)));
    auto document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                          {"kind", "NodeSystemStep"},
                                          {"step", step},
                                          {"outcome", outcome},
                                          {"message", message},
                                          {"kernel", system.facts.kernel},
                                          {"bootID", system.facts.boot_id}});
    if (job)
        document.set("job",
                     value::Node::mapping(
                         {{"id", job->id}, {"key", job->key}, {"started", job->started}, {"finished", job->finished}}));
    if (!warnings.empty()) document.set("warnings", value::Node::strings(warnings));
    if (!cli::print_document(context, document))
        context.console.out(context.output == "name" ? outcome + "\n" : message + "\n");
    return Exit::ok;
}

Exit run_system_facts(const cli::Args& args, cli::Context& context) {
    System system(args, context);
    const auto& facts = system.facts;
    const auto job = system.slot().look();
    auto document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                          {"kind", "NodeSystem"},
                                          {"node", facts.name},
                                          {"kernel", facts.kernel},
                                          {"bootID", facts.boot_id},
                                          {"architecture", facts.architecture}});
    auto told = value::Node::mapping({{"state", std::string(nodejob::to_string(job.state))}});
    if (!job.key.empty()) told.set("key", job.key);
    document.set("job", std::move(told));
    if (cli::print_document(context, document)) return Exit::ok;
    if (context.output == "name") {
        context.console.out(fmt::format("{}\n", cli::plain_name(facts.kernel)));
        return Exit::ok;
    }
    context.console.out(cli::format_properties(
        {{"node", base::escape(facts.name)},
         {"kernel", base::escape(facts.kernel)},
         {"boot id", dash(facts.boot_id)},
         {"architecture", facts.architecture},
         {"job", job.key.empty() ? std::string(nodejob::to_string(job.state))
                                 : fmt::format("{}: {}", base::escape(job.key), nodejob::to_string(job.state))}}));
    return Exit::ok;
}

Exit run_install(const cli::Args& args, cli::Context& context) {
    const auto release = needed(args, "to", "as --to 6.1.0-60-amd64");
    require_release_name("--to", release);
    const auto command = needed(args, "command", "as --command 'apt-get install -y linux-image-$1'");
    System system(args, context);
    auto slot = system.slot();
    const nodejob::JobSpec spec{
        fmt::format("install {} {}", release, command),
        {{system.node.place.command({"sh", "-c", command, "sh", release}),
          {{"KMM_KERNEL_RELEASE", release}, {"NODE_NAME", system.facts.name}, {"DEBIAN_FRONTEND", "noninteractive"}},
          false}}};
    const auto before = slot.look();
    const bool was_cut_off = before.key == spec.key && before.state == nodejob::JobState::lost &&
                             before.lost_reason == "rebooted" && !before.received;
    // A command that reboots the node would do so again and again.
    if (was_cut_off && system.facts.kernel == release)
        return report(context, system, "install", "done",
                      fmt::format("{} runs: the node was rebooted before the command ended", release), before, {});
    if (was_cut_off) {
        if (!context.console.out_is_gone()) slot.mark_received(before.id);
        throw Error(Exit::other, "install-failed",
                    fmt::format("the node was rebooted while the command that installs {} ran, and runs {}", release,
                                base::escape(system.facts.kernel)))
            .hint("leave the reboot out of the command: it comes as a step of its own; the same call runs it again");
    }
    kubeadm::StepResult result;
    const auto job = kubeadm::run_job(
        system.node, slot, spec, result, [&](const nodejob::JobView& failed, const std::string& output) {
            Error error(
                Exit::other, "install-failed",
                fmt::format("the command that installs {} ended with {}", release, kubeadm::how_it_ended(failed)));
            kubeadm::tell_output(error, output);
            return std::move(error).hint("run it on the node by hand and see why it fails");
        });
    const auto exit =
        report(context, system, "install", "done", fmt::format("installed {}", release), job, result.warnings);
    if (!job.received && context.console.out_ok() && !context.console.out_is_gone()) slot.mark_received(job.id);
    return exit;
}

Exit run_reboot(const cli::Args& args, cli::Context& context) {
    const auto before = needed(args, "boot-id", "kmm-worker node facts prints it");
    System system(args, context);
    if (system.facts.boot_id.empty())
        throw Error(Exit::io, "host-not-mounted", "the boot id of this node cannot be read")
            .hint("mount the host's /proc");
    if (system.facts.boot_id != before)
        return report(context, system, "reboot", "already", "the node runs another boot", std::nullopt, {});
    auto slot = system.slot();
    const bool has_systemd = !system.node.place.find_program("systemctl").empty();
    const nodejob::JobSpec spec{
        "reboot " + before,
        {{system.node.place.command(has_systemd ? std::vector<std::string>{"systemctl", "reboot"}
                                                : std::vector<std::string>{"reboot"}),
          {},
          false}}};
    const auto begun = slot.begin(spec);
    auto job = begun.job;
    // The machine may stop this very process: who asks believes the next boot id alone.
    try {
        job = slot.wait(system.clock.monotonic() + k_reboot_patience);
    } catch (const Error& error) {
        if (error.code() != "timeout") throw;
    }
    if (job.state == nodejob::JobState::finished) {
        slot.mark_received(job.id);
        if (!job.succeeded()) {
            Error error(Exit::other, "reboot-failed",
                        fmt::format("the node could not be asked to reboot: {}", kubeadm::how_it_ended(job)));
            kubeadm::tell_output(error, slot.output_end(k_output_shown));
            throw std::move(error).hint("systemctl reboot on the node, and see what it says");
        }
    }
    return report(context, system, "reboot", "requested", "the node was asked to reboot", job, {});
}

cli::Verb system_verb(std::string name, std::string summary, std::string description,
                      std::vector<cli::Example> examples, std::vector<cli::Option> options,
                      decltype(cli::Verb::run) run) {
    cli::Verb verb;
    verb.name = "node " + std::move(name);
    verb.summary = std::move(summary);
    verb.description = std::move(description);
    verb.examples = std::move(examples);
    verb.options = std::move(options) + host_options() + cli::common_options();
    verb.run = std::move(run);
    return verb;
}

}  // namespace

std::vector<cli::Verb> verbs_system() {
    return {
        system_verb("facts", "kernel, boot id and the job of a kernel update",
                    "What kmm-upgrade start kernel asks before and after each step. Changes nothing.",
                    {{"kmm-worker node facts -o json", "for programs"}}, {}, run_system_facts),
        system_verb("install", "install a kernel release with a command",
                    "Runs COMMAND by sh, as root, with the release as $1 and as KMM_KERNEL_RELEASE. It is run on a "
                    "node that runs the release, too: the default of its boot loader may be another. It runs as a "
                    "detached job: a lost connection, a killed caller or --timeout does not end it, and the same "
                    "command waits for it or takes its result. COMMAND is run again if its result was lost, so it "
                    "must be repeatable. Only a boot proves what it did: the exit code says that COMMAND succeeded.",
                    {{"kmm-worker node install --to 6.1.0-60-amd64 --command 'apt-get install -y linux-image-$1'",
                      "with apt-get"}},
                    {cli::required(cli::option("to", "RELEASE", "kernel release, as uname -r prints it")),
                     cli::required(cli::option("command", "COMMAND", "installs the release; $1 is the release"))},
                    run_install),
        system_verb("reboot", "reboot this node, once for a boot",
                    "Asks systemd for a reboot if the node still runs the boot of --boot-id; a node that has "
                    "rebooted since is left alone. Refused (exit 75) while a job of node install runs.",
                    {{"kmm-worker node reboot --boot-id 5f0e7d0c-0f0d-4a43-8b3c-d1a4e3a0c9f1",
                      "the boot id is that of node facts"}},
                    {cli::required(cli::option("boot-id", "ID", "boot that is to end"))}, run_reboot),
    };
}

}  // namespace kmm::tool_worker
