// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/access.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive/recorder.hpp"
#include "record/space.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"
#include "kmm-upgrade/craft.hpp"

namespace kmm::tool_upgrade {
namespace {

std::string state_place(const cli::Args& args) {
    const auto given = args.get("state-dir");
    if (given && given->empty())
        throw Error(Exit::usage, "bad-value", "--state-dir is empty, expected a directory")
            .hint("leave the option out for the usual one");
    return given.value_or(record::default_state_dir());
}

}  // namespace

RecordAccess::RecordAccess(Call& call)
    : call_(call), directory_(state_place(call.args()), call.files(), call.clock(), record::SealKey::of_user()) {}

std::optional<upgrade::Run> RecordAccess::load() {
    try {
        directory_.open(false);
    } catch (const Error& error) {
        if (error.exit() == Exit::not_found) return std::nullopt;
        throw;
    }
    std::vector<std::string> warnings;
    auto run = drive::load_run(directory_.load(), procedures_of(call_.context()), warnings);
    if (call_.context().verbosity >= 0)
        for (const auto& warning : warnings)
            if (warned_.insert(warning).second) call_.context().console.err("warning: " + warning + "\n");
    return run;
}

void RecordAccess::require_named(const upgrade::Run& run) const {
    const auto ns = call_.args().get("namespace");
    const auto text = upgrade::describe(run);
    if (!ns || *ns == text.space) return;
    throw Error(Exit::not_found, "no-run",
                fmt::format("the upgrade recorded in {} is of {}, none of namespace {}", directory_.path(),
                            text.subject(), base::escape(*ns)))
        .hint("leave --namespace out, or name another record with --state-dir");
}

upgrade::Run RecordAccess::must_load() {
    if (auto run = load()) {
        require_named(*run);
        return *run;
    }
    throw Error(Exit::not_found, "no-run", fmt::format("no upgrade is recorded in {}", directory_.path()))
        .hint(fmt::format("kmm-upgrade start module MODULE --to VERSION, or name {} with --state-dir",
                          call_.args().source("state-dir") == "option" ? "another record" : "the record"));
}

void RecordAccess::lock(const std::string& operation) {
    operation_ = operation;
    if (lock_) return;
    lock_.emplace(record::with_space_explained(directory_.path(), "the same command again", [&] {
        return directory_.lock(record::current_owner(operation, call_.clock()));
    }));
}

std::optional<int> RecordAccess::lock_descriptor() const {
    return lock_ ? std::optional(lock_->descriptor()) : std::nullopt;
}

void RecordAccess::open_locked(const std::string& operation) {
    directory_.open(true);
    lock(operation);
}

void require_free(const std::optional<upgrade::Run>& run) {
    if (!run || upgrade::is_final_run_state(run->state)) return;
    const auto text = upgrade::describe(*run);
    throw Error(Exit::paused, "run-exists",
                fmt::format("the upgrade of {} to {} is in state {}", text.subject(), text.to, run->state))
        .hint(upgrade::next_commands(*run).front() + ", or: kmm-upgrade abort");
}

namespace {

/// Options of a start that resume does not take: the record has those that count.
void tell_useless(const Call& call) {
    const auto& verbs = call.context().program.verbs;
    const auto resume =
        std::find_if(verbs.begin(), verbs.end(), [](const cli::Verb& verb) { return verb.name == "resume"; });
    if (resume == verbs.end()) throw bug("there is no verb resume");
    std::vector<std::string> useless;
    for (const auto& [name, source] : call.args().sources) {
        const bool is_taken = std::any_of(resume->options.begin(), resume->options.end(),
                                          [&](const cli::Option& option) { return option.name == name; });
        if (source == "option" && !is_taken && name != "or-resume" && name != "to") useless.push_back("--" + name);
    }
    if (useless.empty()) return;
    call.note(fmt::format("this upgrade goes on with the options of its start; of this command, {} would count for a "
                          "new one only",
                          base::join(useless, ", ")));
}

}  // namespace

bool is_to_be_resumed(const cli::Args& args, cli::Context& context,
                      const std::function<bool(const upgrade::Run&)>& asks_for) {
    if (!args.flag("or-resume") || args.flag("dry-run")) return false;
    Call call(args, context);
    const auto run = RecordAccess(call).load();
    if (!run || !asks_for(*run)) return false;
    // An apply finds by itself what is left of it; where the way of a cluster goes on is in the record.
    if (run->state == upgrade::k_run_complete) return upgrade::describe(*run).kind == "cluster" && is_followed(*run);
    if (!upgrade::is_final_run_state(run->state)) {
        tell_useless(call);
        return true;
    }
    const auto text = upgrade::describe(*run);
    throw Error(Exit::paused, "run-ended", fmt::format("this upgrade of {} to {} was aborted", text.subject(), text.to))
        .hint("the same command without --or-resume starts a new one");
}

std::vector<cli::Option> state_options() {
    auto option = cli::with_environment(
        cli::option(
            "state-dir", "DIR",
            "where the record is kept (default: /var/lib/kmm-upgrade for root, else ~/.local/state/kmm-upgrade)"),
        "KMM_STATE_DIR");
    return {option};
}

}  // namespace kmm::tool_upgrade
