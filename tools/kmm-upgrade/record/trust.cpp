// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/trust.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/live/cluster.hpp"
#include "kmm-upgrade/session/call.hpp"
#include "record/seal.hpp"
#include "upgrade/engine/replay.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::string_view k_kubeconfig = "kubeconfig";  ///< it may name a login program

/// What the seal is of: the header's options, and where the cluster is.
std::string sealed_text(const upgrade::Run& run) {
    const auto tree = upgrade::encode(run);
    const auto* options = tree.find("options");
    const auto description = upgrade::describe(run);
    auto text = "kmm-upgrade record 2\n" + run.created + "\n" + description.subject() + "\n" + run.cluster_place +
                "\n" + run.cluster_context + "\n" + (options == nullptr ? "" : value::to_json(*options));
    for (const auto& [option, command] : description.commands)
        text += fmt::format("\n{} {}", option, base::escape(command));
    return text;
}

struct RecordedCommand {
    std::string option, text;
    std::string directory;  ///< where it runs, "" for here

    /// As options, and where that is not here.
    [[nodiscard]] std::string line() const {
        return fmt::format("--{} {}{}", option, text, directory.empty() ? "" : " (in " + directory + ")");
    }
};

/// The directory of the run's own commands, "" if it is this one.
std::string directory_elsewhere(const upgrade::Run& run) {
    const auto& directory = run.options.command_directory;
    return directory == absolute_path(".") ? std::string() : directory;
}

std::vector<RecordedCommand> commands_of(const upgrade::Run& run) {
    std::vector<RecordedCommand> found;
    const auto add = [&](std::string_view option, const std::string& text) {
        const bool has_directory = option == "check" || option == "on-event" || option == "patch-query";
        if (!text.empty()) found.push_back({std::string(option), text, has_directory ? directory_elsewhere(run) : ""});
    };
    add("check", run.options.check);
    add("on-event", run.options.on_event);
    for (const auto& [option, text] : upgrade::describe(run).commands) add(option, text);
    if (run.options.via == upgrade::Via::ssh) add("ssh-config", run.options.ssh_config);
    if (run.options.via == upgrade::Via::local) add("worker", run.options.worker);
    add(k_kubeconfig, cluster::Place::read(run.cluster_place, run.cluster_context).kubeconfig.value_or(""));
    return found;
}

}  // namespace

cli::Option trust_option() {
    return cli::option("trust-record", "", "run the commands of a record that was not made here");
}

std::vector<std::string> recorded_commands(const upgrade::Run& run) {
    std::vector<std::string> texts;
    for (const auto& command : commands_of(run))
        if (command.option != k_kubeconfig) texts.push_back(command.line());
    return texts;
}

void seal_record(const std::string& directory, const upgrade::Run& run) {
    static_cast<void>(record::seal(directory, sealed_text(run)));
}

void require_trust(const std::string& directory, const upgrade::Run& run, const cli::Args& args,
                   cli::Context& context) {
    std::vector<RecordedCommand> commands = commands_of(run);
    const auto run_directory = directory_elsewhere(run);
    const bool is_here = run_directory.empty();
    std::erase_if(commands, [&](const RecordedCommand& command) {
        const auto& option = command.option;
        const bool elsewhere = option == k_kubeconfig && (args.get("context") || args.get("cluster"));
        // Those of a start with --or-resume do not replace the recorded ones: they must be the same, in the same place.
        if (option != k_kubeconfig && option != "ssh-config" && option != "worker") {
            return is_here && args.source(option) == "option" && args.get(option) == command.text;
        }
        return elsewhere || args.source(option) == "option";
    });
    if (commands.empty() || record::is_sealed(directory, sealed_text(run))) return;
    if (!args.flag("trust-record")) {
        std::string shown;
        for (const auto& command : commands) shown += fmt::format("  {}\n", base::escape(command.line()));
        const bool can_ask = !args.flag("no-input") && context.console.in_is_terminal();
        const auto answer =
            can_ask ? context.console.ask(
                          fmt::format(
                              "the record in {} was not made by this user on this machine; it runs:\n{}go on? [y/N] ",
                              base::escape(directory), shown),
                          std::nullopt)
                    : std::nullopt;
        if (!answer || (*answer != "y" && *answer != "Y" && *answer != "yes")) {
            Error error(Exit::no_permission, "record-untrusted",
                        fmt::format("the record in {} has commands and was not made by this user on this machine",
                                    base::escape(directory)));
            for (const auto& command : commands) error.detail(command.option, base::escape(command.text));
            if (!is_here) error.detail("directory", base::escape(run_directory));
            throw std::move(error).hint(
                "if you know where it comes from and want these commands to run: --trust-record");
        }
    }
    seal_record(directory, run);
}

}  // namespace kmm::tool_upgrade
