// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/trust.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cluster/live/cluster.hpp"
#include "kmm-upgrade/session/call.hpp"
#include "record/seal.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

/// One thing that a record decides.
struct Decision {
    std::string name, text;
    std::string directory;  ///< where a command runs, "" for here

    [[nodiscard]] std::string place() const { return directory.empty() ? "" : " (in " + directory + ")"; }
};

/// The directory of the run's own commands, "" if it is this one.
std::string directory_elsewhere(const upgrade::Run& run) {
    const auto& directory = run.options.command_directory;
    return directory == absolute_path(".") ? std::string() : directory;
}

/// What is run, by option.
std::vector<Decision> commands_of(const upgrade::Run& run) {
    std::vector<Decision> found;
    const auto add = [&](std::string_view option, const std::string& text) {
        const bool has_directory = option == "check" || option == "on-event" || option == "patch-query";
        if (!text.empty()) found.push_back({std::string(option), text, has_directory ? directory_elsewhere(run) : ""});
    };
    add("check", run.options.check);
    add("on-event", run.options.on_event);
    for (const auto& [option, text] : upgrade::describe(run).commands) add(option, text);
    if (run.options.via == upgrade::Via::ssh) add("ssh-config", run.options.ssh_config);
    add("worker", run.options.worker);
    return found;
}

/// All of what it decides that is not for people only.
std::vector<Decision> decisions_of(const upgrade::Run& run) {
    constexpr std::size_t k_named = 8;
    const auto words = upgrade::describe(run);
    std::vector<Decision> found{{"upgrade", fmt::format("{} {} {}", words.kind, words.subject(), words.versions()), ""},
                                {"state", run.state, ""},
                                {"cluster", run.cluster_place, ""},
                                {"via", std::string(to_string(run.options.via)), ""}};
    for (auto& command : commands_of(run)) found.push_back(std::move(command));
    const auto add = [&](const char* name, const std::string& text) {
        if (!text.empty()) found.push_back({name, text, ""});
    };
    add("worker-image", run.options.worker_image);
    add("worker-namespace", run.options.worker_namespace);
    add("image policy", run.options.image_policy.empty() ? "none: no signature is asked for" : "of the record");
    add("rollback to", base::join_some(upgrade::procedure_of(run).former(run), k_named));
    return found;
}

/// True if the command line says it, and the record does not count.
bool is_given(const cli::Args& args, const Decision& decision) {
    if (decision.name == "cluster") return args.get("context") || args.get("cluster") || args.get("kubeconfig");
    // The other commands of a start with --or-resume do not replace the recorded ones.
    for (const auto* option : {"ssh-config", "worker", "worker-image", "worker-namespace"})
        if (decision.name == option) return args.source(option) == "option";
    return false;
}

}  // namespace

cli::Option trust_option() {
    return cli::option("trust-record", "", "go on with a record that was not made here");
}

std::vector<std::string> recorded_commands(const upgrade::Run& run) {
    std::vector<std::string> texts;
    for (const auto& command : commands_of(run))
        texts.push_back(fmt::format("--{} {}{}", command.name, command.text, command.place()));
    return texts;
}

std::string seal_fault(RecordAccess& record) {
    switch (record.directory().seal()) {
        case record::Seal::own: return "";
        case record::Seal::none: return "it has no seal";
        case record::Seal::foreign: return "its seal is of another user or machine, or it was changed";
        case record::Seal::unknown: break;
    }
    return "its seal cannot be checked without a key";
}

void note_unsealed(RecordAccess& record) {
    if (seal_fault(record).empty()) return;
    const auto key = record::SealKey::of_user();
    record.call().note(fmt::format("the record could not be sealed, so that resume needs --trust-record: {}",
                                   key ? "no key in " + key->path() : "there is no place for a key, HOME is not set"));
}

void require_trust(RecordAccess& record, const upgrade::Run& run) {
    const auto fault = seal_fault(record);
    if (fault.empty()) return;
    const auto& args = record.call().args();
    auto& context = record.call().context();
    if (!args.flag("trust-record")) {
        auto decisions = decisions_of(run);
        std::erase_if(decisions, [&](const Decision& decision) { return is_given(args, decision); });
        const auto is_not_ours = fmt::format("the record in {} is not known to be this user's: {}",
                                             base::escape(record.directory().path()), fault);
        std::string shown;
        for (const auto& decision : decisions)
            shown += fmt::format("  {}: {}\n", decision.name, base::escape(decision.text + decision.place()));
        const bool can_ask = !args.flag("no-input") && context.console.in_is_terminal();
        const auto answer =
            can_ask ? context.console.ask(fmt::format("{}; it decides:\n{}go on? [y/N] ", is_not_ours, shown),
                                          std::nullopt)
                    : std::nullopt;
        if (!answer || (*answer != "y" && *answer != "Y" && *answer != "yes")) {
            Error error(Exit::no_permission, "record-untrusted", is_not_ours);
            for (const auto& decision : decisions)
                error.detail(decision.name, base::escape(decision.text + decision.place()));
            throw std::move(error).hint("if you know where it comes from and want all of this: --trust-record");
        }
    }
    record.directory().vouch();
}

}  // namespace kmm::tool_upgrade
